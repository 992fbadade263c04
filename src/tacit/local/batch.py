r"""The likelihood of many regressions with the same number of gates as one tensor program.

For one row of data let $z = (f, m, l, \phi)$ be the output without gated edges, the messages and the logits of the $g$
gated edges, and the parameters of the noise. With the posterior of the states of the gates, $q_a = p(a \mid y, x)$,

$$\frac{\partial \ell}{\partial z} = \sum_a q_a\, s_a, \qquad
\frac{\partial^2 \ell}{\partial z^2} = \sum_a q_a \Big(\frac{\partial s_a}{\partial z} + s_a s_a^\top\Big)
  - \Big(\sum_a q_a s_a\Big)\Big(\sum_a q_a s_a\Big)^\top$$

where $s_a = (u_a, a\, u_a, a - \theta, v_a)$ with the derivatives $u_a$ and $v_a$ of $\log p(y \mid f_a)$ by the output
and by the noise. Each number of $z$ is linear in the parameters, so gradient and curvature of the regression follow by
products with its columns.

The parameters of a regression are the weights of the columns that always act, the weights of the gated edges, for each
gate its logit and the slopes of its features, the noise, and the coefficients of its logarithmic scale $t$. If noise is
added to the output, its derivatives by $t$ follow from those by $f$: with $d = (y - f)\, e^{-t}$, and the score $u$ and
the curvature $c$ at the scaled values,

$$\frac{\partial \ell}{\partial t} = u\, d - 1, \qquad \frac{\partial^2 \ell}{\partial t^2} = c\, d^2 - u\, d, \qquad
\frac{\partial^2 \ell}{\partial f\, \partial t} = e^{-t} (c\, d - u), \qquad
\frac{\partial^2 \ell}{\partial \phi\, \partial t} = \frac{\partial^2 \ell}{\partial \phi\, \partial f}\, d$$
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.graph import PRIOR_DEVIATION as SLOPE_DEVIATION
from tacit.local.newton import Values, maximise
from tacit.local.regression import (
    MOST_LOGIT,
    NOISE_DEVIATION,
    SPREAD_DEVIATION,
    GatedFit,
    GatedRegression,
    fill_noise,
    noise_vector,
    states,
)
from tacit.observation import Derivatives, ObservationModel

AT_ONCE = 2**18  # rows times states evaluated at once
MOST_NUMBERS = 2**23  # rows times columns of the regressions that are fitted together
MANY_ROWS, ROWS_PER_COLUMN = 2**12, 40  # rows of a first fit, from which the fit of all rows starts
LOGIT_REACH, NOISE_REACH = 3.0, 2.0  # largest changes in one step


class RowDerivatives(NamedTuple):
    r"""Log likelihood of rows, and its derivatives by $z$.

    ``second``  $\sum_a q_a (\partial s_a / \partial z + s_a s_a^\top)$, set on and above the diagonal only;
                None if it is not asked for
    """

    values: Float[Tensor, "fit row"]
    scores: Float[Tensor, "fit row number"]
    second: Float[Tensor, "fit row number number"] | None


class GatedBatch:
    """Regressions with the same number of gates and the same kind of noise, at given fits.

    Shorter regressions are padded with rows of weight 0, and with columns of zeros.
    """

    def __init__(self, data: list[GatedRegression], fits: list[GatedFit], fixed: list[int | None]) -> None:
        self.data, self.fits = data, fits
        self.num_gates = int(fits[0].gated.sum())
        self.num_lags, self.num_features = data[0].sent.shape[2], _num_features(data[0], fits[0])
        rows = max(len(one.targets) for one in data)
        self.rest = max(_num_rest(one, fit) for one, fit in zip(data, fits, strict=True))
        self.observation = data[0].observation.stacked([one.observation for one in data])
        self.center = torch.stack([noise_vector(one.observation) for one in data])
        gates, lags, features, noise = self.num_gates, self.num_lags, self.num_features, self.center.shape[1]
        self.num_weights = self.rest + gates * lags
        spread = 0 if data[0].spread is None else data[0].spread.shape[1]
        self.first_noise = self.num_weights + gates * features
        self.first_spread = self.first_noise + noise
        self.num_columns = self.first_spread + spread
        # the number of z of each column after the first ones, which all belong to the output
        each = torch.arange(gates)
        self.owner = torch.cat(
            [
                1 + each.repeat_interleave(lags),
                1 + gates + each.repeat_interleave(features),
                1 + 2 * gates + torch.arange(noise),
                torch.full((spread,), 1 + 2 * gates + noise),
            ]
        )
        self.owned = [lags] * gates + [features] * gates + [1] * noise + [spread] * (spread > 0)
        new = data[0].own.new_zeros
        self.columns = new(len(data), rows, self.num_columns)
        self.offset, self.targets, self.weights = (new(len(data), rows) for _ in range(3))
        self.precision = torch.eye(self.num_columns, dtype=torch.float64).repeat(len(data), 1, 1)
        self.free = torch.ones(len(data), self.num_columns, dtype=torch.bool)
        for place, (one, fit, gate) in enumerate(zip(data, fits, fixed, strict=True)):
            count = len(one.targets)
            places, order = self._places(fit), column_order(one, fit)
            self.columns[place, :count, places] = one.design[:, order]
            self.columns[place, :count, self.num_weights : self.first_spread] = 1
            if one.spread is not None:
                self.columns[place, :count, self.first_spread :] = one.spread
            self.offset[place, :count], self.weights[place, :count] = one.offset, one.weights
            self.targets[place, :count] = one.targets
            self.targets[place, count:] = one.targets[:1] if count else 0.0
            self.precision[place, places[:, None], places] = one.precision[order[:, None], order]
            logits = self.num_weights + torch.arange(gates) * features
            if gate is not None:
                self.free[place, logits[int(fit.gated[:gate].sum())]] = False
            if features > 1:
                assert one.features is not None
                assert fit.varying is not None
                for number, source in enumerate(fit.gated.nonzero()[:, 0].tolist()):
                    own = slice(int(logits[number]) + 1, int(logits[number]) + features)
                    self.columns[place, :count, own] = one.features[:, source]
                    self.free[place, own] = bool(fit.varying[source])
        diagonal = self.precision.diagonal(dim1=1, dim2=2)
        slopes, of_noise = slice(self.num_weights, self.first_noise), slice(self.first_noise, self.first_spread)
        diagonal[:, slopes] = SLOPE_DEVIATION**-2
        diagonal[:, slopes.start : slopes.stop : features] = 0  # logits have no prior
        diagonal[:, of_noise] = NOISE_DEVIATION**-2
        diagonal[:, self.first_spread :] = SPREAD_DEVIATION**-2
        self.mean = new(len(data), self.num_columns)
        self.mean[:, of_noise] = self.center
        self.bound = torch.full_like(self.mean, torch.inf)
        self.bound[:, slopes.start : slopes.stop : features] = MOST_LOGIT
        self.reach = torch.full_like(self.mean, torch.inf)
        self.reach[:, slopes.start : slopes.stop : features] = LOGIT_REACH
        self.reach[:, slopes.stop :] = NOISE_REACH
        self.equal_weights = all(bool((one.weights == 1).all()) for one in data)
        self.states = states(gates)
        self.acting = torch.cat([torch.ones(len(self.states), 1, dtype=torch.float64), self.states], 1)
        self.pairs = (self.acting[:, :, None] * self.acting[:, None]).flatten(1)

    def numbers(self) -> Float[Tensor, "fit number"]:
        """Return the parameters of the fits."""
        found = self.columns.new_zeros(len(self.data), self.num_columns)
        for place, (one, fit) in enumerate(zip(self.data, self.fits, strict=True)):
            found[place, self._places(fit)] = fit.weights[column_order(one, fit)]
            logits = fit.logits[fit.gated][:, None]
            if self.num_features > 1:
                assert fit.slopes is not None
                logits = torch.cat([logits, fit.slopes[fit.gated]], 1)
            spread = logits.new_zeros(0) if fit.spread is None else fit.spread
            rest = torch.cat([logits.flatten(), noise_vector(fit.observation), spread])
            found[place, self.num_weights :] = rest
        return found

    def unpacked(self, numbers: Float[Tensor, "fit number"]) -> list[GatedFit]:
        """Return the fits of given parameters, with their log likelihoods."""
        total = torch.zeros(len(numbers), dtype=torch.float64)
        places = torch.arange(len(numbers))
        for some, rows in self._chunks(len(numbers)):
            values = self.row_derivatives(numbers[some], places[some], rows, bends=False).values
            total[some] += (values * self.weights[some, rows]).sum(1)
        fits = []
        for place, (one, fit) in enumerate(zip(self.data, self.fits, strict=True)):
            weights = torch.zeros_like(fit.weights)
            weights[column_order(one, fit)] = numbers[place, self._places(fit)]
            own, edges = weights.tensor_split([one.own.shape[1]])
            of_gates = numbers[place, self.num_weights : self.first_noise].view(self.num_gates, self.num_features)
            logits, slopes = fit.logits.clone(), fit.slopes
            logits[fit.gated] = of_gates[:, 0]
            if slopes is not None and self.num_features > 1:
                slopes = slopes.clone()
                slopes[fit.gated] = of_gates[:, 1:]
            observation = one.observation.chosen([0])
            fill_noise(observation, numbers[place, None, self.first_noise : self.first_spread])
            fits.append(
                GatedFit(
                    own,
                    edges.view_as(fit.edges),
                    logits,
                    fit.gated,
                    observation,
                    float(total[place]),
                    slopes,
                    fit.varying,
                    None if fit.spread is None else numbers[place, self.first_spread :].clone(),
                )
            )
        return fits

    def evaluate(self, numbers: Float[Tensor, "fit number"], which: Int[Tensor, " fit"]) -> Values:
        """Return the log posterior of some fits, its gradient and its curvature."""
        away = numbers - self.mean[which]
        pull = torch.einsum("rij,rj->ri", self.precision[which], away)
        value, gradient, curvature = -(away * pull).sum(1) / 2, -pull, self.precision[which]
        for some, rows in self._chunks(len(which)):
            of_rows = self.row_derivatives(numbers[some], which[some], rows)
            weights, columns = self.weights[which[some], rows], self.columns[self._range(which[some]), rows]
            weighted = columns if self.equal_weights else columns * weights[..., None]
            value[some] += (of_rows.values * weights).sum(1)
            scores, rest, second = of_rows.scores, self.rest, of_rows.second
            assert second is not None
            gradient[some, :rest] += (scores[:, None, :, 0] @ weighted[..., :rest])[:, 0]
            gradient[some, rest:] += (weighted[..., rest:] * self._of_owners(scores[..., 1:], 1)).sum(1)
            # products of scores belong to the same columns as the second derivatives
            second = second.addcmul_(scores[..., None], scores[..., None, :], value=-1)
            curvature[some] -= self._second(weighted, columns, second)
        return value, gradient, curvature

    def evaluate_effects(self, numbers: Float[Tensor, "fit number"], which: Int[Tensor, " fit"]) -> Values:
        r"""Return the log posterior and its derivatives, with the mean effects of gated edges instead of their weights.

        The data determine the mean effect $\theta w$ well and $\theta$ less well, so that the likelihood has a ridge,
        which is curved in $w$ and $\theta$ but nearly straight in these parameters.
        """
        weights, logits = self.gated_places
        natural = self.with_weights(numbers)
        value, gradient, curvature = self.evaluate(natural, which)
        if not self.num_gates:
            return value, gradient, curvature
        probs = torch.sigmoid(numbers[:, logits])[..., None]  # (fit, gate, 1)
        of_weights, rest = natural[:, weights], 1 - probs
        change = torch.eye(self.num_columns, dtype=numbers.dtype).repeat(len(numbers), 1, 1)
        change[:, weights, weights] = (1 / probs).expand_as(of_weights)
        change[:, weights, logits[:, None]] = -of_weights * rest
        slopes = gradient[:, weights]
        curvature = change.mT @ curvature @ change
        both = slopes * rest / probs
        curvature[:, weights, logits[:, None]] += both
        curvature[:, logits[:, None], weights] += both
        curvature[:, logits, logits] -= (slopes * of_weights * rest).sum(2)
        return value, torch.einsum("rij,ri->rj", change, gradient), curvature

    @property
    def gated_places(self) -> tuple[Int[Tensor, "gate lag"], Int[Tensor, " gate"]]:
        """The places of the weights of gated edges, and of their logits."""
        weights = torch.arange(self.rest, self.num_weights).view(self.num_gates, self.num_lags)
        return weights, self.num_weights + torch.arange(self.num_gates) * self.num_features

    def with_effects(self, numbers: Float[Tensor, "fit number"]) -> Float[Tensor, "fit number"]:
        """Return the parameters with mean effects of gated edges instead of weights."""
        weights, logits = self.gated_places
        found = numbers.clone()
        found[:, weights] *= torch.sigmoid(numbers[:, logits])[..., None]
        return found

    def with_weights(self, numbers: Float[Tensor, "fit number"]) -> Float[Tensor, "fit number"]:
        """Return the parameters with weights of gated edges instead of mean effects."""
        weights, logits = self.gated_places
        found = numbers.clone()
        found[:, weights] /= torch.sigmoid(numbers[:, logits])[..., None]
        return found

    def values_and_scores(
        self, numbers: Float[Tensor, "fit number"]
    ) -> tuple[Float[Tensor, "fit row"], Float[Tensor, "fit row number"]]:
        """Return the log likelihood of each row and its gradient."""
        parts, places = [], torch.arange(len(numbers))
        for some, rows in self._chunks(len(numbers)):
            found = self.row_derivatives(numbers[some], places[some], rows, bends=False)
            parts.append((found.values, self.columns[some, rows] * self._spread(found.scores)))
        values, scores = (torch.cat(one, 1 if len(numbers) == 1 else 0) for one in zip(*parts, strict=True))
        return values, scores

    def row_derivatives(
        self, numbers: Float[Tensor, "fit number"], which: Int[Tensor, " fit"], rows: slice, *, bends: bool = True
    ) -> RowDerivatives:
        """Return log likelihood of rows and its derivatives by output, messages, logits and noise.

        Without ``bends`` there are no second derivatives.
        """
        gates, states, acting = self.num_gates, self.states, self.acting
        outputs, logits = self._outputs_and_logits(numbers, which, rows)
        model = self._model(numbers, which)
        found = self._derivatives(model, outputs, self.targets[which, rows], self._sizes(numbers, which, rows))
        log_prob, slope, bend = (_as_rows(one, outputs) for one in (found.log_prob, found.score, found.curvature))
        noise, cross, of_noise = ([_as_rows(one, outputs) for one in part] for part in found[3:])
        probs = torch.sigmoid(logits)  # (fit, row or 1, gate)
        if gates:
            joint = log_prob + logits @ states.mT + logsigmoid(-logits).sum(2, keepdim=True)
            values = joint.logsumexp(2)
            posterior = joint.sub_(values[..., None]).exp_()
        else:
            values, posterior = log_prob[..., 0], torch.ones_like(log_prob)
        count, messages, chances = 1 + 2 * gates + len(noise), slice(0, 1 + gates), slice(1 + gates, 1 + 2 * gates)
        scores, tilted = outputs.new_empty(*values.shape, count), posterior * slope
        scores[..., messages] = tilted @ acting
        constant = probs.shape[1] == 1  # the scores of the logits are then the same in all rows with a state
        away = states - probs if constant else states  # (fit or 1, state, gate)
        scores[..., chances] = posterior @ away if constant else posterior @ states - probs
        by_noise = [posterior * one for one in noise]
        for place, likely in enumerate(by_noise, 1 + 2 * gates):
            scores[..., place] = likely.sum(2)
        if not bends:
            return RowDerivatives(values, scores, None)
        second = outputs.new_empty(*values.shape, count, count)
        products = (posterior * bend).addcmul_(tilted, slope) @ self.pairs
        second[..., messages, messages] = torch.unflatten(products, 2, (1 + gates, 1 + gates))
        if gates:
            products = (acting[:, :, None] * away[..., None, :]).flatten(-2)  # (fit or 1, state, message x gate)
            second[..., messages, chances] = torch.unflatten(tilted @ products, 2, (1 + gates, gates))
            products = (away[..., None] * away[..., None, :]).flatten(-2)
            open_gates = second[..., chances, chances]
            open_gates.copy_(torch.unflatten(posterior @ products, 2, (gates, gates)))
            if not constant:  # the score of a logit is that of the acting edge minus its probability
                acts = scores[..., chances]
                second[..., messages, chances] -= scores[..., messages, None] * probs[..., None, :]
                open_gates.sub_((acts + probs)[..., None] * probs[..., None, :])
                open_gates.sub_(probs[..., None] * acts[..., None, :])
            open_gates.diagonal(dim1=2, dim2=3).sub_(probs * (1 - probs))
        pairs = iter(of_noise)
        for number, likely in enumerate(by_noise):
            place = 1 + 2 * gates + number
            second[..., messages, place] = (posterior * cross[number]).addcmul_(likely, slope) @ acting
            second[..., chances, place] = likely @ away
            if not constant:
                second[..., chances, place] -= probs * scores[..., place, None]
            for other in range(number, len(noise)):
                product = (posterior * next(pairs)).addcmul_(likely, noise[other]).sum(2)
                second[..., place, 1 + 2 * gates + other] = product
        return RowDerivatives(values, scores, second)

    def _chunks(self, count: int) -> list[tuple[slice, slice]]:
        """Return which fits and rows are evaluated at once."""
        rows, size = self.targets.shape[1], 2**self.num_gates
        if count == 1:
            at_once = max(1, AT_ONCE // size)
            return [(slice(0, 1), slice(first, min(first + at_once, rows))) for first in range(0, rows, at_once)]
        at_once = max(1, AT_ONCE // max(1, rows * size))
        return [(slice(first, min(first + at_once, count)), slice(0, rows)) for first in range(0, count, at_once)]

    def _outputs_and_logits(
        self, numbers: Float[Tensor, "fit number"], which: Int[Tensor, " fit"], rows: slice
    ) -> tuple[Float[Tensor, "fit row state"], Float[Tensor, "fit #row gate"]]:
        """Return the output for every state of the gates, and the logits of their probabilities."""
        gates, rest, end = self.num_gates, self.rest, self.num_weights
        columns = self.columns[self._range(which), rows]
        base = self.offset[which, rows] + (columns[..., :rest] @ numbers[:, :rest, None])[..., 0]
        if not gates:
            return base[..., None], base.new_zeros(len(which), 1, 0)
        shape = (len(which), -1, gates, self.num_lags)
        messages = (columns[..., rest:end] * numbers[:, None, rest:end]).view(shape).sum(3)
        of_gates = slice(end, end + gates * self.num_features)
        logits = numbers[:, None, of_gates]
        if self.num_features > 1:
            logits = (columns[..., of_gates] * logits).view(*shape[:3], self.num_features).sum(3)
        return torch.baddbmm(base[..., None], messages, self.states.mT.expand(len(which), -1, -1)), logits

    @staticmethod
    def _range(which: Int[Tensor, " fit"]) -> slice | Int[Tensor, " fit"]:
        """Return consecutive fits as a range, whose columns need no copy."""
        if not len(which) or not bool((which.diff() == 1).all()):
            return which
        return slice(int(which[0]), int(which[-1]) + 1)

    def _model(self, numbers: Float[Tensor, "fit number"], which: Int[Tensor, " fit"]) -> ObservationModel:
        model = self.observation.chosen(which.tolist()).requires_grad_(requires_grad=False)
        fill_noise(model, numbers[:, self.first_noise : self.first_spread])
        return model

    def _sizes(
        self, numbers: Float[Tensor, "fit number"], which: Int[Tensor, " fit"], rows: slice
    ) -> Float[Tensor, "fit row"] | None:
        """Return the logarithm $t$ of the scale of the noise; None if it is constant."""
        if self.first_spread == self.num_columns:
            return None
        return (self.columns[self._range(which), rows, self.first_spread :] @ numbers[:, self.first_spread :, None])[
            ..., 0
        ]

    def _derivatives(
        self,
        model: ObservationModel,
        outputs: Float[Tensor, "fit row state"],
        targets: Float[Tensor, "fit row"],
        sizes: Float[Tensor, "fit row"] | None,
    ) -> Derivatives:
        """Return the derivatives by the output, by the noise, and by the logarithm of its scale if it varies."""
        if sizes is None:
            return model.derivatives(_as_outputs(outputs), targets.mT[..., None])
        factor = (-sizes).exp()
        scaled, values = _as_outputs(outputs * factor[..., None]), (targets * factor).mT[..., None]
        found = model.derivatives(scaled, values)
        distance, factor = values[:, None] - scaled, factor.mT[:, None, :, None]
        tilt = found.score * distance
        of_noise = iter(found.of_noise)
        pairs = []
        for number, cross in enumerate(found.cross):  # the scale comes last in each row of pairs
            pairs += [next(of_noise) for _ in range(number, len(found.cross))] + [cross * distance]
        return Derivatives(
            found.log_prob - sizes.mT[:, None, :, None],
            found.score * factor,
            found.curvature * factor.square(),
            [*found.noise, tilt - 1],
            [*(cross * factor for cross in found.cross), (found.curvature * distance - found.score) * factor],
            [*pairs, found.curvature * distance.square() - tilt],
        )

    def _spread(self, scores: Float[Tensor, "fit row z"]) -> Float[Tensor, "fit row number"]:
        """Return the derivative by the number of z of each column."""
        return torch.cat([scores[..., :1].expand(*scores.shape[:2], self.rest), self._of_owners(scores[..., 1:], 1)], 2)

    def _second(
        self,
        weighted: Float[Tensor, "fit row number"],
        columns: Float[Tensor, "fit row number"],
        second: Float[Tensor, "fit row z z"],
    ) -> Float[Tensor, "fit number number"]:
        """Return the sum over rows of the products of two columns and the number of ``second`` that belongs to them."""
        found = columns.new_empty(len(columns), self.num_columns, self.num_columns)
        rest, others = self.rest, columns[..., self.rest :]
        found[:, :rest, :rest] = weighted[..., :rest].mT @ (columns[..., :rest] * second[..., :1, 0])
        if others.shape[2]:
            cross = weighted[..., :rest].mT @ (others * self._of_owners(second[..., 0, 1:], 1))
            found[:, :rest, rest:], found[:, rest:, :rest] = cross, cross.mT
        first = 0
        for number, size in enumerate(self.owned, 1):
            start = rest + first
            product = others[..., first:] * self._of_owners(second[..., number, number:], number)
            product = weighted[..., start : start + size].mT @ product
            found[:, start : start + size, start:] = product
            found[:, start:, start : start + size] = product.mT
            first += size
        return found

    def _of_owners(self, values: Float[Tensor, "fit row z"], first: int) -> Float[Tensor, "fit row number"]:
        """Repeat the numbers of z from ``first`` on for each of their columns."""
        if all(size == 1 for size in self.owned):
            return values
        return values.index_select(2, self.owner[self.owner >= first] - first)

    def _places(self, fit: GatedFit) -> Int[Tensor, " column"]:
        """Return the places of the columns in :func:`column_order`: padding is between the two groups."""
        gated = self.num_gates * self.num_lags
        rest = len(fit.own) + fit.edges.numel() - gated
        return torch.cat([torch.arange(rest), self.rest + torch.arange(gated)])


@torch.no_grad()
def fit_gated(
    data: Sequence[GatedRegression], starts: Sequence[GatedFit], fixed: Sequence[int | None] | None = None
) -> list[GatedFit]:
    """Return the local maximum of each regression from its initial values.

    ``fixed`` fixes the probability of one edge of each regression. A regression may occur several times.
    """
    fixed = [None] * len(data) if fixed is None else fixed
    starts = from_few_rows(data, starts)
    groups = defaultdict[tuple[object, ...], list[int]](list)
    for place, (one, start) in enumerate(zip(data, starts, strict=True)):
        features = 0 if one.features is None or start.slopes is None else one.features.shape[2]
        noise = sum(value.numel() for value in one.observation.parameters())
        spread = 0 if one.spread is None else one.spread.shape[1]
        groups[type(one.observation), int(start.gated.sum()), one.sent.shape[2], features, noise, spread].append(place)
    found = list(starts)
    for places in groups.values():
        places.sort(key=lambda place: len(data[place].targets))
        largest = max(len(data[place].targets) * (data[place].design.shape[1] + 8) for place in places)
        at_once = max(1, MOST_NUMBERS // max(1, largest))
        for first in range(0, len(places), at_once):
            some = places[first : first + at_once]
            batch = GatedBatch(
                [data[place] for place in some], [starts[place] for place in some], [fixed[place] for place in some]
            )
            initial = batch.with_effects(batch.numbers())
            numbers = maximise(batch.evaluate_effects, initial, batch.free, batch.bound, batch.reach)
            numbers = batch.with_weights(numbers)
            for place, fit in zip(some, batch.unpacked(numbers), strict=True):
                found[place] = fit
    return found


def from_few_rows(data: Sequence[GatedRegression], starts: Sequence[GatedFit]) -> list[GatedFit]:
    """Return initial values of regressions with many rows: fits of every ``k``-th row, where they start at 0.

    Without gates there is one maximum. Most steps are then made with a fraction of the rows.
    """
    found, steps = list(starts), dict[int, int]()
    for place, (one, start) in enumerate(zip(data, starts, strict=True)):
        few = max(MANY_ROWS, ROWS_PER_COLUMN * one.design.shape[1])
        if len(one.targets) >= 2 * few and not start.gated.any() and not start.weights.any():
            steps[place] = len(one.targets) // few
    thinned = [data[place].every(step) for place, step in steps.items()]
    for place, fit in zip(steps, fit_gated(thinned, [starts[place] for place in steps]) if steps else [], strict=True):
        found[place] = fit
    return found


def fit_gates(
    data: Sequence[GatedRegression],
    gated: Sequence[Bool[Tensor, " _"]],
    starts: Sequence[GatedFit],
    prob: float = 0.8,
) -> list[GatedFit]:
    """Return the fits with exactly these gated edges; new gates start at ``prob``."""
    changed = []
    for start, mask in zip(starts, gated, strict=True):
        one = start
        for source in (mask & ~start.gated).nonzero()[:, 0].tolist():
            one = one.with_gate(source, prob)
        for source in (start.gated & ~mask).nonzero()[:, 0].tolist():
            one = one.without_gate(source)
        changed.append(one)
    return fit_gated(data, changed)


def column_order(data: GatedRegression, fit: GatedFit) -> Int[Tensor, " column"]:
    """Return the columns of the design, first those that always act and then those of gated edges."""
    own, lags = data.own.shape[1], data.sent.shape[2]
    gated = torch.cat([torch.zeros(own, dtype=torch.bool), fit.gated.repeat_interleave(lags)])
    return torch.cat([(~gated).nonzero()[:, 0], gated.nonzero()[:, 0]])


def _num_rest(data: GatedRegression, fit: GatedFit) -> int:
    return data.own.shape[1] + int((~fit.gated).sum()) * data.sent.shape[2]


def _num_features(data: GatedRegression, fit: GatedFit) -> int:
    """Return the numbers of each gate: its logit and its slopes."""
    return 1 if data.features is None or fit.slopes is None else 1 + data.features.shape[2]


def _as_outputs(values: Float[Tensor, "fit row state"]) -> Float[Tensor, "row state fit one"]:
    return values.permute(1, 2, 0)[..., None]


def _as_rows(
    values: Float[Tensor, "row state fit one"], like: Float[Tensor, "fit row state"]
) -> Float[Tensor, "fit row state"]:
    return values[..., 0].permute(2, 0, 1).expand_as(like)
