r"""Shared drivers: hidden series that move several nodes, which lagged regressions take for edges between them.

Beside own past, background and parents, each target may read $K$ hidden series after some delays,

$$y_{it} = \ldots + \sum_{k=1}^{K} \sum_{d=0}^{D-1} \lambda_{ikd} f_{k,t-d} + \varepsilon_{it}, \qquad
f_{kt} = \phi_k f_{k,t-1} + \eta_{kt}.$$

This is a dynamic factor model. It is fitted by expectation and maximisation: at each frequency the posterior of $f$
given the residuals of all targets has a closed form (Whittle's approximation), and given $f$ each target is a
regression. The variance of $\varepsilon_i$ is at least a share ``FLOOR`` of the residual variance, so that a driver
cannot be one of the nodes.

Edges and drivers explain the same correlations, so models with $K = 0, 1, \ldots$ compete with their parents found
anew: the best parents of each target are added to the prediction of the driver from the past of all nodes, the driver
is fitted again given these parents, and so on: from the parents found without a driver, from the strong ones among
them, and from none. With the log likelihood $\ell$ of all targets together, the score of a model is

$$S = \ell - \sum_i \Big(\tfrac{k_i}{2} \log n + |M_i| \log \tfrac{1 - \pi}{\pi} + r_i \log D
  + \tfrac12 \sum_{kd} \min(t_{ikd}^2, \log n)\Big) - \tfrac K2 \log n$$

for parents $M_i$ with $k_i$ columns, $r_i$ drivers that reach a target and loadings that are $t_{ikd}$ standard errors
from 0: a loading pays as in the Bayesian information criterion, or what it gains if that is less. The prediction of the
driver is then a background of every target, and ``exists`` is averaged over the models with and without it.

Effects within a step, as in sums over several steps, correlate the residuals as a driver does. They differ in what the
past forecasts, so both models are also compared by their forecasts one step ahead, with any covariance $\Omega$ of the
errors, where targets with correlated errors may also read the forecasts of each other,

$$F = -\tfrac n2 \log \det \Omega - \text{price of parents and of the predicted driver}.$$

The weight of the model with drivers is large only if $F$ gains more per row than wrong forms of effects do.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor

from tacit.assessment.evidence.averaging import orthonormal
from tacit.assessment.evidence.background_search import EDGE_PRIOR, greedy_parents, search_columns
from tacit.assessment.evidence.candidates import DOUBLE, Candidates, ColumnForm, Columns
from tacit.data import Pairs
from tacit.predictors import SeriesLayout

DELAYS = 4  # D
FLOOR = 0.3
MOST_DRIVERS = 3
FEWEST_NODES, FEWEST_ROWS = 4, 200  # of a table, and of each of its series
MOST_NUMBERS = 2**25  # of the columns of all targets; larger tables are not searched
SEARCHED = 4_000  # rows, the last ones, in which drivers are sought; in longer tables they are then fitted to all rows
ITERATIONS, ROUNDS = 50, 4
MOST_TRIED = 30  # edges among reached nodes that are dropped one by one
ENOUGH, PER_ROW = 0.3, 3e-4  # nats of an iteration, and nats per row of longer tables
FIRST, STEPS, SHORT = 3, 20.0, 5.0  # iteration, last gains and nats by which a fit that falls short ends early
SURE, REACHED = 12.0, 2  # gain in nats of a target of eight, and how many must have it, before parents are found anew
WORTH, MORE = 0.015, 0.06  # nats per row that a first and a further driver must gain: misfits look like weak drivers
STRONG = 30.0  # nats of a parent that a driver hardly imitates
LARGEST, MOST_LARGE = 4.0, 0.03  # robust standard deviations: larger values are cut off if they are a small share
FEWEST_REACHED = 3  # of two nodes, a driver cannot be distinguished from an edge
LEAST_ODDS, MOST_WEIGHT = -4.0, 0.95  # of the model with drivers
TOGETHER = 4.0  # standard errors of a correlation of residuals
FORECAST, UNSURE = 0.012, 0.005  # nats per row that its forecasts must gain, and how sure that is
TINY = 1e-9
Signals = Float[Tensor, "driver row"]
Rows = Float[Tensor, "target row"]
Parents = Bool[Tensor, "target candidate"]


@dataclass(frozen=True, eq=False)
class Drivers:
    """Shared drivers of the targets of some pairs.

    ``columns``  what the past of all nodes predicts of each driver after each delay from 1 on
    ``present``  what the other nodes at the same time say of it too, after each delay
    ``prob``     the probability that there are drivers, or effects within a step
    ``weight``   the probability of the model with drivers; 1 - ``weight`` is that of effects within a step, or none
    ``reached``  the targets that a driver reaches
    ``times``, ``series``  of the rows
    """

    columns: Float[Tensor, "row target column"]
    present: Float[Tensor, "row target state"]
    prob: float
    weight: float
    reached: Bool[Tensor, " target"]
    times: Float[Tensor, " row"] | None = None
    series: Int[Tensor, " row"] | None = None

    def added_to(self, pairs: Pairs, layout: SeriesLayout, *, within: bool = False) -> tuple[Pairs, SeriesLayout]:
        """Return pairs of the same data with the columns, and their layout; ``within`` adds those of ``present``.

        The columns are 0, their mean, in rows that the drivers were not found in: a shorter window has more rows.
        """
        columns = self.present if within else self.columns
        if len(pairs) != len(columns):
            place = {key: row for row, key in enumerate(_keys(self.series, self.times))}
            keys = _keys(pairs.series, pairs.times)
            columns = torch.cat([columns, torch.zeros_like(columns[:1])])[[place.get(key, -1) for key in keys]]
        inputs = torch.cat([pairs.inputs, columns.to(pairs.inputs)], 2)
        return replace(pairs, inputs=inputs), replace(layout, known=layout.known + columns.shape[2])


@dataclass(frozen=True, eq=False)
class FactorModel:
    """A fitted factor model of the residuals of all targets, given their parents.

    ``signals``    the drivers given all rows
    ``residuals``  of the regressions without the part of the drivers
    ``gains``      log likelihood that each target would lose without its loadings
    ``score``      $S$
    ``paid``       the price of drivers and loadings
    """

    loadings: Float[Tensor, "target driver delay"]
    variances: Float[Tensor, " target"]
    persistence: Float[Tensor, " driver"]
    signals: Signals
    residuals: Rows
    gains: Float[Tensor, " target"]
    score: float
    paid: float = 0.0

    def predicted(self) -> tuple[Float[Tensor, "state row"], Float[Tensor, "state state"]]:
        r"""Return $E[f_{k,t-d} \mid \text{all nodes before } t]$ and its covariance, by the steady Kalman filter."""
        targets, count, delays = self.loadings.shape
        states = count * delays
        move, noise = torch.zeros(2, states, states, dtype=DOUBLE)
        for k in range(count):
            first = k * delays
            move[first, first], noise[first, first] = self.persistence[k], 1.0
            move[first + 1 : first + delays, first : first + delays - 1] = torch.eye(delays - 1, dtype=DOUBLE)
        read = self.loadings.reshape(targets, states)
        weighted = read / self.variances[:, None]
        information, identity = read.mT @ weighted, torch.eye(states, dtype=DOUBLE)
        before = identity
        for _ in range(300):
            after = torch.linalg.inv(torch.linalg.inv(before + TINY * identity) + information)
            latest = move @ after @ move.mT + noise
            if float((latest - before).abs().max()) < 1e-8:
                break
            before = latest
        state = after @ (weighted.mT @ self.residuals)
        carry, step = (identity - after @ information) @ move, 1
        while step < state.shape[1] and float(carry.abs().max()) > 1e-10:  # sums over the past, in doubling steps
            state[:, step:] += carry @ state[:, :-step].clone()
            carry, step = carry @ carry, 2 * step
        return torch.nn.functional.pad(move @ state[:, :-1], (1, 0)), before

    def beside_others(self) -> Float[Tensor, "target state row"]:
        r"""Return $E[f_{k,t-d} \mid \text{all nodes before } t, \text{all nodes but the target at } t]$.

        Given this, no other node at the same time says anything about a target that only the drivers join to it.
        """
        predicted, errors = self.predicted()
        precision, read = torch.linalg.inv(errors), self.loadings.flatten(1)
        weighted = read / self.variances[:, None]
        joined = (precision @ predicted + weighted.mT @ self.residuals)[None] - (
            weighted[:, :, None] * self.residuals[:, None]
        )  # (target, state, row), without the target itself
        others = precision + weighted.mT @ read - weighted[:, :, None] * read[:, None]
        found: Tensor = torch.linalg.solve(others, joined)
        return found


def find_drivers(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    form: ColumnForm,
    row_weights: Float[Tensor, "row node"] | None = None,
) -> Drivers | None:
    """Return the shared drivers of all nodes in pairs with a row for each step; None if there are none.

    Sources send their last values, and squares if the ``form`` of the columns has squares or splines. Series are
    joined: at their first rows, a driver is that of the series before.
    """
    rows, nodes, channels = pairs.targets.shape
    series = torch.zeros(rows, dtype=torch.long) if pairs.series is None else pairs.series
    shortest = int(torch.unique_consecutive(series, return_counts=True)[1].min())
    if layout.window == 1 or nodes < FEWEST_NODES or shortest < FEWEST_ROWS or channels > 1:
        return None
    columns = search_columns(pairs, layout, candidates, squares=form.squares or form.splines)
    if rows * nodes * (columns.own.shape[2] + DELAYS) > MOST_NUMBERS:
        return None
    columns = replace(
        columns,
        sources=_without_outliers(columns.sources),
        own=_without_outliers(columns.own),
        targets=_without_outliers(columns.targets),
        row_weights=row_weights,
    )
    search = DriverSearch(columns.last(SEARCHED), candidates)
    found = search.run()
    if found is None:
        return None
    model, parents, prob, weight = found
    if rows > SEARCHED:
        search = DriverSearch(columns, candidates)
        model = search.fitted(parents, len(model.signals))
    reached = model.gains > search.price
    present = (model.beside_others() / search.units).permute(2, 0, 1)
    return Drivers(search.columns_of(model), present, prob, weight, reached, pairs.times, pairs.series)


class DriverSearch:
    """The search for shared drivers; one object keeps the columns of all targets."""

    def __init__(self, columns: Columns, candidates: Candidates) -> None:
        self.columns, self.candidates = columns, candidates
        targets = candidates.targets
        self.root = columns.weights.mT[targets].sqrt()  # (target, row)
        self.seen = columns.observed.mT[targets]
        self.rows = self.seen.sum(1).clamp_min(2.0)
        width = int(candidates.num_always(columns).max()) + columns.own.shape[2]
        self.always = self.root.new_zeros(len(targets), width, len(columns.targets))  # padded with 0
        for places in candidates.batches(columns, 1):  # of targets with equally many required parents
            always = candidates.always(columns, places)
            self.always[places, : always.shape[1]] = always
        self.values = columns.targets[:, targets, 0].mT[:, None]
        self.allowed = candidates.own_columns(columns)
        self.last: tuple[Parents, Tensor, Rows, Float[Tensor, " target"]] | None = None  # parents, their regressions

    def run(self) -> tuple[FactorModel, Parents, float, float] | None:
        """Return the model with the largest score, its parents, its probability and its weight."""
        found = greedy_parents(self.columns, self.candidates, 1)[1]
        none, least = self._score(self._regressions(found)[2], found), float(self.rows.max())
        first = self._best(1, found)
        if first is None or (odds := first[0].score - none - WORTH * least) < LEAST_ODDS:
            return None
        best, parents = first
        for count in range(2, MOST_DRIVERS + 1):
            further = self._best(count, parents)
            if further is None or further[0].score < best.score + MORE * least:
                break
            best, parents = further
        if int((best.gains > self.price).sum()) < FEWEST_REACHED:
            return None
        gained = (self._forecasts(best, parents) - self._forecasts_without(found)) / least
        prob = float(torch.tensor(odds).sigmoid())
        weight = min(prob, MOST_WEIGHT, float(torch.tensor((gained - FORECAST) / UNSURE).sigmoid()))
        return best, parents, prob, weight

    def _forecasts(self, model: FactorModel, parents: Parents) -> float:
        """Return $F$ with drivers; a target reads the prediction of all of them after all delays, or nothing."""
        basis, values, variances = self._regressions(parents)
        beside = self.columns_of(model).permute(1, 2, 0)
        beside = self.columns.without_intercepts(beside, self.root.square()) * self.root[:, None]
        beside = orthonormal(beside - (beside @ basis) @ basis.mT)
        errors = values - (values[:, None] @ basis @ basis.mT)[:, 0]
        given = errors - (errors[:, None] @ beside @ beside.mT)[:, 0]
        gains = self.rows / 2 * (errors.square().sum(1) / given.square().sum(1).clamp_min(TINY)).log()
        worth = gains - beside.shape[2] / 2 * self.rows.log() - len(model.signals) * math.log(DELAYS)
        errors = torch.where(worth[:, None] > 0, given, errors)
        return self._score(variances, parents) + float(worth.clamp_min(0.0).sum()) + self._correlated(errors)

    def _forecasts_without(self, parents: Parents) -> float:
        """Return $F$ without drivers. Where residuals are correlated, a target also reads what others forecast.

        A target that reads another node within the step reads the forecast of that node, with one weight.
        """
        basis, values, _ = self._regressions(torch.zeros_like(parents))
        forecasts = (values[:, None] @ basis @ basis.mT)[:, 0]
        together = torch.corrcoef(values - forecasts).abs() > TOGETHER / self.rows.sqrt()
        together.fill_diagonal_(False)
        basis, values, variances = self._regressions(parents)
        errors, score = values - (values[:, None] @ basis @ basis.mT)[:, 0], self._score(variances, parents)
        for target, rows in enumerate(self.rows.tolist()):
            read = forecasts[together[target]]
            read = read - read @ basis[target] @ basis[target].mT
            size = read.square().sum(1)
            for _ in range(len(read)):
                shares = (read @ errors[target]).square() / size.clamp_min(TINY) / errors[target].square().sum()
                best = int(shares.masked_fill(read.square().sum(1) < 0.01 * size, 0.0).argmax())
                gain = -rows / 2 * math.log(1 - float(shares[best])) - math.log(rows) / 2
                if gain <= 0:
                    break
                score, unit = score + gain, read[best] / read[best].norm()
                errors[target] -= (errors[target] @ unit) * unit
                read = read - (read @ unit)[:, None] * unit
        return score + self._correlated(errors)

    def _correlated(self, errors: Rows) -> float:
        """Return what the correlations of all errors add to the log likelihood."""
        return -float(self.rows.mean() / 2 * torch.linalg.slogdet(torch.corrcoef(errors))[1])

    @property
    def price(self) -> Float[Tensor, " target"]:
        """Price of the loadings of a target: about one and a half of them matter, after some delay."""
        return 0.75 * self.rows.log() + math.log(DELAYS)

    def _best(self, count: int, found: Parents) -> tuple[FactorModel, Parents] | None:
        """Return the best model with some drivers, and its parents; None if ``found`` parents leave nothing over."""
        apart = found & ~self._in_triangles(found)
        first = [found, apart] if count == 1 and not torch.equal(found, apart) else [found]
        starts = [(start, self.fitted(start, count)) for start in first]
        sure = SURE + 3 * math.log(max(1.0, len(found) / 8))
        if all(int((model.gains > sure).sum()) < REACHED for _, model in starts):
            return None
        if count == 1:
            for start in (self._strong(found), torch.zeros_like(found)):
                if not any(torch.equal(start, other) for other, _ in starts):
                    starts.append((start, self.fitted(start, count)))
        best: tuple[FactorModel, Parents] | None = None
        for parents, model in starts:
            seen = list[Parents]()
            for number in range(ROUNDS):
                model = self.fitted(parents, count, model.signals) if number else model
                if best is None or model.score > best[0].score:
                    best = model, parents
                seen.append(parents)
                own = self.columns.own
                beside = own.new_zeros(*own.shape[:2], own.shape[2] + count * (DELAYS - 1))
                beside[:, self.candidates.targets] = torch.cat(
                    [own[:, self.candidates.targets], self.columns_of(model)], 2
                )
                parents = greedy_parents(replace(self.columns, own=beside), self.candidates, 1)[1]
                if any(torch.equal(parents, earlier) for earlier in seen):
                    break
        return best and self._without_imitations(*best)

    def _in_triangles(self, parents: Parents) -> Parents:
        """Return the edges between nodes with a common neighbour: edges between nodes that a driver reaches."""
        nodes = self.columns.targets.shape[1]
        linked = torch.zeros(nodes, nodes, dtype=torch.bool)
        target = self.candidates.targets[:, None].expand_as(parents)
        linked[target[parents], self.candidates.sources[parents]] = True
        linked |= linked.mT.clone()
        common = (linked.float() @ linked.float() > 0) & linked
        return common[target, self.candidates.sources]

    def _without_imitations(self, model: FactorModel, parents: Parents) -> tuple[FactorModel, Parents]:
        """Drop edges among the nodes that a driver reaches while the score increases.

        A driver that is fitted beside such edges explains what they leave over, so that the search above keeps both.
        All edges into a target, all from a source, and single edges are dropped.
        """
        reached = torch.zeros(self.columns.targets.shape[1], dtype=torch.bool)
        reached[self.candidates.targets] = model.gains > self.price
        sources = self.candidates.sources
        doubtful = parents & reached[self.candidates.targets][:, None] & reached[sources]
        if not 0 < int(doubtful.sum()) <= MOST_TRIED:
            return model, parents
        each = [
            torch.zeros_like(parents).index_put_((row, place), torch.tensor(True))
            for row, place in zip(*doubtful.nonzero(as_tuple=True), strict=True)
        ]
        into = [
            doubtful & (torch.arange(len(doubtful)) == row)[:, None] for row in doubtful.sum(1).gt(1).nonzero()[:, 0]
        ]
        out_of = [doubtful & (sources == node) for node in torch.unique(sources[doubtful])]
        done = [parents]  # beside the present model
        for some in [doubtful, *into, *out_of, *each, *each]:
            fewer = parents & ~some
            if any(torch.equal(fewer, other) for other in done):
                continue
            trial = self.fitted(fewer, len(model.signals), model.signals, model)
            done.append(fewer)
            if trial.score > model.score:
                model, parents, done = trial, fewer, [fewer]
        return model, parents

    def _strong(self, parents: Parents) -> Parents:
        """Return the parents without which a target would lose much."""
        kept, now = parents.clone(), self._regressions(parents)[2]
        for number in range(int(parents.sum(1).max())):
            one = parents & (parents.cumsum(1) == number + 1)
            lost = self.rows / 2 * (self._regressions(parents & ~one)[2] / now).log()
            kept &= ~(one & (lost < STRONG)[:, None])
        return kept

    def columns_of(self, model: FactorModel) -> Float[Tensor, "row target column"]:
        """Return the predictions in the units of each target: where its rows have weights, the driver varies less.

        What is predicted of a driver now is a multiple of that of a step before, so it is no column of its own.
        """
        predicted = torch.unflatten(model.predicted()[0], 0, (-1, DELAYS))[:, 1:].flatten(0, 1)
        return (predicted / self.units).permute(2, 0, 1)

    @property
    def units(self) -> Float[Tensor, "target 1 row"]:
        """Factor of each row: where a row of a target has a small weight, the driver varies less."""
        return self.root[:, None].clamp_min(0.01)

    def _regressions(self, parents: Parents) -> tuple[Tensor, Rows, Float[Tensor, " target"]]:
        """Return an orthonormal basis of each target, its weighted values, and its residual variance.

        Only targets with other parents than in the last call are computed.
        """
        if self.last is None:
            self.last = parents, *self._regressions_of(torch.arange(len(parents)), parents)
        earlier, before, values, variances = self.last
        which = (parents != earlier).any(1).nonzero()[:, 0]
        if len(which):
            some, some_values, some_variances = self._regressions_of(which, parents)
            width = max(before.shape[2], some.shape[2])
            basis = before.mT.new_zeros(len(parents), width, before.shape[1]).mT
            for one, rows in ((before, torch.arange(len(parents))), (some, which)):
                basis[rows, :, : one.shape[2]], basis[rows, :, one.shape[2] :] = one, 0.0
            values = values.index_copy(0, which, some_values)
            self.last = parents, basis, values, variances.index_copy(0, which, some_variances)
        return self.last[1:]

    def _regressions_of(
        self, which: Int[Tensor, " some"], parents: Parents
    ) -> tuple[Tensor, Float[Tensor, "some row"], Float[Tensor, " some"]]:
        """Return the regressions of some targets."""
        sources = self.columns.sources.permute(1, 2, 0)
        read = [
            sources[self.candidates.sources[row][parents[row]]][self.allowed[row][parents[row]]]
            for row in which.tolist()
        ]
        padded = torch.nn.utils.rnn.pad_sequence(read, batch_first=True)
        both = torch.cat([self.always[which], padded, self.values[which]], 1)
        both = self.columns.without_intercepts(both, self.root[which].square()) * self.root[which, None]
        basis, values = orthonormal(both[:, :-1]), both[:, -1]
        left = values - (basis @ (basis.mT @ values[:, :, None]))[:, :, 0]
        return basis, values, (left.square().sum(1) / self.rows[which]).clamp_min(TINY)

    def _score(self, variances: Float[Tensor, " target"], parents: Parents) -> float:
        """Return the log likelihood of the regressions without drivers, less the price of the parents."""
        paid = (self.allowed.sum(2) * parents).sum(1) / 2 * self.rows.log() + EDGE_PRIOR * parents.sum(1)
        return float((-self.rows / 2 * variances.log() - paid).sum())

    @staticmethod
    def _aligned(signals: Signals, residuals: Rows) -> Signals:
        """Shift each signal such that the delays of the model cover what it explains of all residuals."""
        rows, far = residuals.shape[1], DELAYS - 1
        spectrum = torch.fft.rfft(signals, n=2 * rows)[:, None].conj() * torch.fft.rfft(residuals, n=2 * rows)
        products = torch.fft.irfft(spectrum, n=2 * rows)  # (driver, target, delay), negative delays at the end
        sizes = torch.cat([products[..., -far:], products[..., : DELAYS + far]], 2).square().sum(1)
        first = sizes.unfold(1, DELAYS, 1).sum(2).argmax(1) - far  # the earliest delay of the best window
        return torch.stack([torch.roll(one, int(shift)) for one, shift in zip(signals, first, strict=True)])

    def fitted(
        self, parents: Parents, count: int, signals: Signals | None = None, rival: FactorModel | None = None
    ) -> FactorModel:
        """Fit the factor model by expectation and maximisation, given the parents; ``signals`` are a start.

        The fit ends early if it falls short of the score of a ``rival`` with more parents by far more than the steps
        still gain. Fewer parents leave more to the drivers, so that these cost no less.
        """
        basis, values, alone = self._regressions(parents)
        rows = values.shape[1]
        residuals = values - (basis @ (basis.mT @ values[:, :, None]))[:, :, 0]
        if signals is None:
            lagged = _delayed(residuals / alone.sqrt()[:, None])
            leading = torch.linalg.eigh(lagged @ lagged.mT)[1][:, -count:]
            signals = self._aligned(leading.mT @ lagged, residuals / alone.sqrt()[:, None])
            signals = signals / signals.square().mean(1, keepdim=True).sqrt().clamp_min(TINY)
        doubt = torch.zeros(count * DELAYS, count * DELAYS, dtype=DOUBLE)
        persistence = torch.full((count,), 0.3, dtype=DOUBLE)
        share = self.rows / rows  # of the rows of each target that are not missing; missing rows are 0
        complete = bool(self.seen.all())
        inside = basis.mT @ values[:, :, None]  # (target, column, 1)
        of_all = basis.mT.flatten(0, 1)  # (target * column, row)
        turns, times = _frequencies(rows)
        around = torch.cat([turns[1:].flip(0), turns.conj()]) * (times / rows)  # of the lags 1 - D to D - 1
        apart = torch.arange(DELAYS)[None] - torch.arange(DELAYS)[:, None] + DELAYS - 1
        apart_ones = rows / 2 * (alone.log() + 1)  # less the log likelihood of each target without drivers
        seen_share, without = float(self.rows.mean()) / rows, self._score(alone, parents)
        least = -math.inf if rival is None else rival.score + rival.paid - SHORT  # of the score without its price
        total, enough = -math.inf, max(ENOUGH, PER_ROW * rows)
        for number in range(ITERATIONS):
            # maximisation: each target is a regression on its columns and the delayed drivers
            delayed = _delayed(signals)  # (state, row)
            present = delayed if complete else delayed * self.seen[:, None]
            cross = torch.unflatten(of_all @ delayed.mT, 0, basis.mT.shape[:2]).mT  # (target, state, column)
            block = present @ present.mT - cross @ cross.mT + self.rows[:, None, None] * doubt
            block.diagonal(dim1=1, dim2=2).add_(1.0)
            weights = torch.linalg.solve(block, (values @ delayed.mT)[:, :, None] - cross @ inside)
            moved = weights[:, :, 0] @ delayed if complete else (weights.mT @ present)[:, 0]
            residuals = values - ((inside - cross.mT @ weights).mT @ basis.mT)[:, 0]
            unsure = (weights.mT @ doubt @ weights)[:, 0, 0]
            variances = torch.maximum((residuals - moved).square().sum(1) / self.rows + unsure, FLOOR * alone)
            loadings = weights[:, :, 0].unflatten(1, (count, DELAYS))
            sizes = loadings.square().sum(2)  # (target, driver)
            told = sizes / variances[:, None]
            variances = torch.maximum(variances, (sizes / (told.sum(0) - told).clamp_min(TINY)).amax(1).minimum(alone))
            # expectation: the posterior of the drivers at each frequency
            before, (means, covariances, total) = total, _posterior(residuals, loadings, variances, persistence, share)
            if total < before + enough:
                break
            reach = without + seen_share * (total + float(apart_ones.sum()) + STEPS * (total - before))
            if number >= FIRST and reach < least:
                break
            signals = torch.fft.irfft(means, n=rows)
            shared = (covariances @ around.mT).real  # (driver, driver, lag)
            doubt = shared[:, :, apart].permute(0, 2, 1, 3).reshape(count * DELAYS, count * DELAYS)
            doubt = (doubt + doubt.mT) / 2
            own = shared.diagonal(dim1=0, dim2=1).mT[:, DELAYS - 1 :]  # (driver, lag)
            square = signals.square().mean(1) + own[:, 0]
            near = (signals[:, 1:] * signals[:, :-1]).mean(1) + own[:, 1]
            persistence = (near / square).clamp(-0.98, 0.98)
            size = (square - 2 * persistence * near + persistence.square() * square).clamp_min(TINY).sqrt()
            signals, each = signals / size[:, None], size.repeat_interleave(DELAYS)
            doubt = doubt / each[:, None] / each
        gains = _parts_of(residuals, loadings, variances, share, means, covariances) + apart_ones
        gains, gained = seen_share * gains, seen_share * (total + float(apart_ones.sum()))
        # a loading pays as in the Bayesian information criterion, or what it gains if that is less
        errors = torch.linalg.inv(block).diagonal(dim1=1, dim2=2) * variances[:, None]
        squares, most = weights[:, :, 0].square() / errors, self.rows.log()[:, None]
        drivers = (squares > most).unflatten(1, (count, DELAYS)).any(2).sum(1)
        price = squares.minimum(most).sum(1) / 2 + math.log(DELAYS) * drivers
        paid = float(price.minimum(gains.clamp_min(0.0)).sum()) + count / 2 * math.log(rows)
        score = without + gained - paid
        return FactorModel(loadings, variances, persistence, signals, residuals, gains, score, paid)


def _posterior(
    residuals: Rows,
    loadings: Float[Tensor, "target driver delay"],
    variances: Float[Tensor, " target"],
    persistence: Float[Tensor, " driver"],
    share: Float[Tensor, " target"],
) -> tuple[Complex[Tensor, "driver frequency"], Complex[Tensor, "driver driver frequency"], float]:
    r"""Return mean and covariance of the drivers at each frequency, and Whittle's log likelihood.

    With $\Lambda$ the transfer from drivers to targets at a frequency, $V$ the ``variances`` and $r$ the residuals, the
    precision is $\Omega = \mathrm{diag}|1 - \phi e^{-i \omega}|^2 + \Lambda^* V^{-1} \Lambda$ and the mean
    $\Omega^{-1} \Lambda^* V^{-1} r$. ``share`` is that of the rows of each target that are not missing.
    """
    rows = residuals.shape[1]
    turns, times = _frequencies(rows)
    weighted = (loadings / variances[:, None, None]).flatten(1)
    products = weighted.mT @ loadings.flatten(1)  # (state, state)
    products = products.view(-1, DELAYS, len(products) // DELAYS, DELAYS).transpose(1, 2).flatten(2)
    information = products.to(turns) @ (turns.conj()[:, None] * turns).flatten(0, 1)  # (driver, driver, frequency)
    spread = (1 - persistence[:, None] * turns[1]).abs().square()
    information.diagonal(dim1=0, dim2=1).add_(spread.mT)
    joined = torch.unflatten((weighted / share.sqrt()[:, None]).mT @ residuals, 0, (-1, DELAYS))
    together = torch.stack([joined[:, delay].roll(-delay, 1) for delay in range(DELAYS)]).sum(0)
    evidence = torch.fft.rfft(together)  # (driver, frequency)
    covariances, determinants = _inverse(information)
    means = (covariances * evidence).sum(1)
    explained = (evidence.conj() * means).sum(0).real / rows
    noise = float((residuals.square().sum(1) / (share * variances)).sum()) + rows * float(variances.log().sum())
    total = float((times * (spread.log().sum(0) - determinants + explained)).sum()) - noise
    return means, covariances, total / 2


def _parts_of(
    residuals: Rows,
    loadings: Float[Tensor, "target driver delay"],
    variances: Float[Tensor, " target"],
    share: Float[Tensor, " target"],
    means: Complex[Tensor, "driver frequency"],
    covariances: Complex[Tensor, "driver driver frequency"],
) -> Float[Tensor, " target"]:
    r"""Return the log likelihood of each target given all others.

    With $u_i$ the conjugate of row $i$ of $\Lambda$, the precision without target $i$ is $\Omega - u_i u_i^* / v_i$, of
    rank one less, so its determinant and inverse follow from those of $\Omega$.
    """
    rows = residuals.shape[1]
    turns, times = _frequencies(rows)
    spectra = torch.fft.rfft(residuals) / share.sqrt()[:, None]  # (target, frequency)
    read = loadings.to(turns) @ turns  # (target, driver, frequency)
    moved = (read * means).sum(1)
    known = torch.zeros_like(variances[:, None] * times)  # u* C u / v
    for k, row in enumerate(covariances):
        known += (read[:, k] * (row * read.conj()).sum(1)).real
    known = known / variances[:, None]
    free = (1 - known).clamp_min(TINY)
    power = spectra.abs().square()
    without = (moved - spectra * known).abs().square() / free + power * known - 2 * (spectra.conj() * moved).real
    total = free.log() - (power + without) / (rows * variances[:, None])
    parts: Tensor = (total @ times - rows * variances.log()) / 2
    return parts


@lru_cache(maxsize=4)
def _frequencies(rows: int) -> tuple[Complex[Tensor, "delay frequency"], Float[Tensor, " frequency"]]:
    """Return the factor of each delay at each frequency of some rows, and how often the frequency occurs."""
    angle = 2 * math.pi * torch.arange(rows // 2 + 1, dtype=DOUBLE) / rows
    times = torch.full_like(angle, 2.0)
    times[0], times[-1] = 1.0, 2.0 if rows % 2 else 1.0
    return torch.polar(torch.ones(DELAYS, len(angle), dtype=DOUBLE), -torch.arange(DELAYS)[:, None] * angle), times


def _inverse(
    matrices: Complex[Tensor, "driver driver frequency"],
) -> tuple[Complex[Tensor, "driver driver frequency"], Float[Tensor, " frequency"]]:
    """Return the inverses of small definite matrices and the logarithms of their determinants, by elimination."""
    matrices, logs = matrices.clone(), torch.zeros_like(matrices[0, 0].real)
    for k in range(len(matrices)):
        pivot = matrices[k, k].real.clone()
        row, column = matrices[k] / pivot, matrices[:, k].clone()
        matrices -= column[:, None] * row
        matrices[k], matrices[:, k] = row, -column / pivot
        matrices[k, k] = 1 / pivot
        logs += pivot.log()
    return matrices, logs


def _keys(series: Int[Tensor, " row"] | None, times: Float[Tensor, " row"] | None) -> list[tuple[int, float]]:
    """Return what tells rows apart."""
    assert times is not None, "pairs of series have times"
    return list(zip([0] * len(times) if series is None else series.tolist(), times.tolist(), strict=True))


def _without_outliers(values: Float[Tensor, "row *rest"]) -> Float[Tensor, "row *rest"]:
    """Cut off a few large values of each column; where many are large, as in bursts, they are what is modelled."""
    middle = values.median(0).values
    size = LARGEST * 1.4826 * (values - middle).abs().median(0).values
    size = size.masked_fill(((values - middle).abs() > size).double().mean(0) > MOST_LARGE, torch.inf)
    return torch.maximum(torch.minimum(values, middle + size), middle - size)


def _delayed(signals: Signals) -> Float[Tensor, "state row"]:
    """Return each signal after each delay."""
    rows = signals.shape[1]
    found = [torch.nn.functional.pad(signals, (delay, 0))[:, :rows] for delay in range(DELAYS)]
    return torch.stack(found, 1).flatten(0, 1)
