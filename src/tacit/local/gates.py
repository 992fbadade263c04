r"""Likelihood-ratio tests of which edges of a node act at times, and how often.

An edge *always acts* unless the likelihood with a random gate is significantly larger,

$$2\, (\ell_{\text{gate}} - \ell_{\text{always}}) > q^2, \qquad q = \Phi^{-1}(.975),$$

a one-sided test at 2.5%, because $\theta = 1$ is on the boundary. Each gate is tested alone, significant gates are
fitted together, and gates that are then no longer significant are removed.

For rows that depend on each other, and where the model is not quite right, likelihood ratios are divided by a scale for
each edge (:class:`~tacit.local.Inference`).

The interval of an edge contains the probabilities at which its profile likelihood is at most $q^2 / 2$ below the
maximum. All other gates that increase the likelihood, significantly or not, are free in the profile, so that the
interval includes the uncertainty about them.

The fits of all nodes, sets of gates and points of the profiles that do not depend on each other are made at once.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tacit.local.batch import fit_gated, fit_gates
from tacit.local.dependence import QUANTILE, Dependence
from tacit.local.inference import Inference
from tacit.local.regression import MOST_LOGIT, GatedFit, GatedRegression

STARTS = (0.8, 0.4)  # initial values of a probability
TOGETHER = 0.6  # the same for all gates of a node
MOST_GATES = 8  # random gates of a node: time grows with 2 to their power
MOST_FREE = 4  # free gates beside that of the edge whose interval is computed
MAY_GATE = 0.2  # likelihood ratio from which a gate may be random
LOWEST = 0.01  # a lower end below this is set to 0
LOWEST_LOGIT = math.log(LOWEST / (1 - LOWEST))
FAR = 20.0  # first steps of a search, beyond which the lower limit is not tried: tables with many rows
CLOSE = 0.005  # distance of the root of the likelihood ratio from its quantile, from which an end is interpolated
MOST_TRIES = 12
MARGIN = 0.05  # of the points between which an end is
SAME = 1e-6  # roots that differ by less give no interpolation
HIGHER = 1e-3  # nats by which the likelihood may be larger elsewhere on a profile than at its maximum
MOST_RESTARTS = 2
WORSE = 1.0  # nats by which a fit with a gate may be worse than without: its probability is bounded
LEAST_STEP, MOST_STEP = 0.05, 2.0  # of a logit, to the first point of the search
FIRST_BELOW_ONE = 1.4  # the first logit below a maximum at 1
LEAST_GROWTH, MOST_GROWTH = 1.2, 3.0  # of the distance from the maximum, between points that are too near


Edge = tuple[int, int]  # node and source


@dataclass(frozen=True, eq=False)
class NodeGates:
    """The fit of one node; ``low`` and ``high`` of the probabilities of its edges.

    ``ratios``  twice the log likelihood that is lost if an edge always acts, by the ratio of robust to model variance;
                beside other gates if there are intervals
    """

    fit: GatedFit
    low: Float[Tensor, " source"]
    high: Float[Tensor, " source"]
    ratios: Float[Tensor, " source"]


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The fit with the needed gates, the fit with each single gate, and all sources sorted by the gain of a gate.

    ``gains``  likelihood ratios, divided by their scales
    """

    fit: GatedFit
    alone: dict[int, GatedFit]
    gains: dict[int, float]


def choose_gates(
    data: Sequence[GatedRegression], may_gate: Sequence[Bool[Tensor, " _"]], most: int = MOST_GATES
) -> list[GatedFit]:
    """Return for each node the fit in which the edges of ``may_gate`` that need a gate have one, at most ``most``."""
    return [one.fit for one in _choose(data, may_gate, most, None)]


def judge_gates(
    data: Sequence[GatedRegression],
    may_gate: Sequence[Bool[Tensor, " _"]],
    dependence: Sequence[Dependence] | None = None,
    *,
    scales: Sequence[Float[Tensor, " _"]] | None = None,
    intervals: bool = True,
) -> list[NodeGates]:
    """Return for each node which edges of ``may_gate`` act at times, how often they act, and the intervals.

    ``dependence``  of the rows of each node; None: they are independent, and the model is right
    ``scales``      by which likelihood ratios of each source are divided, if they are known
    """
    chosen = _choose(data, may_gate, MOST_GATES, dependence, scales)
    if not intervals:
        return [
            NodeGates(
                one.fit,
                torch.where(mask, 0.0, one.fit.edge_probs),
                torch.where(mask, 1.0, one.fit.edge_probs),
                one.fit.edge_probs.new_tensor([one.gains.get(source, 0.0) for source in range(len(mask))]),
            )
            for one, mask in zip(chosen, may_gate, strict=True)
        ]
    masks = []
    for one in chosen:
        needed = one.fit.gated.nonzero()[:, 0].tolist()
        free = [source for source, gain in one.gains.items() if gain > MAY_GATE and source not in needed]
        masks.append(_mask(one.fit.gated, [*needed, *free][: max(MOST_FREE, len(needed))]))
    widest = fit_gates(data, masks, [one.fit for one in chosen])
    ends, higher = _intervals(data, widest, [one.alone for one in chosen], dependence, scales)
    fits = [one.fit for one in chosen]
    again = fit_gates([data[node] for node in higher], [fits[node].gated for node in higher], list(higher.values()))
    for node, fit in zip(higher, again, strict=True):
        fits[node] = max(fits[node], fit, key=lambda one: one.log_likelihood)
    found = []
    for node, (one, fit) in enumerate(zip(chosen, fits, strict=True)):
        low, high = fit.edge_probs.clone(), fit.edge_probs.clone()
        ratios = torch.zeros_like(low)
        for source in one.alone:
            low[source], high[source], ratios[source] = ends[node, source]
        low, high = torch.minimum(low, fit.edge_probs), torch.maximum(high, fit.edge_probs)
        found.append(NodeGates(fit, low, high, ratios))
    return found


def gate_scales(
    data: Sequence[GatedRegression], may_gate: Sequence[Bool[Tensor, " _"]], dependence: Sequence[Dependence]
) -> list[Float[Tensor, " _"]]:
    """Return the ratio of robust to model variance of each gate of ``may_gate``, alone; 1 for other sources."""
    base = fit_gated(data, [one.start() for one in data])
    gates = [(node, source) for node, mask in enumerate(may_gate) for source in mask.nonzero()[:, 0].tolist()]
    fits = fit_gated(
        [data[node] for node, _ in gates], [base[node].with_gate(source, TOGETHER) for node, source in gates]
    )
    scales = [torch.ones(len(mask), dtype=torch.float64) for mask in may_gate]
    for (node, source), fit in zip(gates, fits, strict=True):
        found = Inference.of(data[node], _at_maximum(fit, base[node], source), dependence[node])
        scales[node][source] = found.ratio(found.gates[source])
    return scales


def _choose(
    data: Sequence[GatedRegression],
    may_gate: Sequence[Bool[Tensor, " _"]],
    most: int,
    dependence: Sequence[Dependence] | None,
    known: Sequence[Float[Tensor, " _"]] | None = None,
) -> list[_Chosen]:
    base = fit_gated(data, [one.start() for one in data])
    gates = [(node, source) for node, mask in enumerate(may_gate) for source in mask.nonzero()[:, 0].tolist()]
    starts = [base[node].with_gate(source, prob) for prob in STARTS for node, source in gates]
    if any(one.spread is not None for one in data):  # growing noise may already explain what a gate would
        starts += [one.with_constant_noise() for one in starts]
    singles = fit_gated([data[node] for node, _ in gates] * (len(starts) // max(1, len(gates))), starts)
    alone = [dict[int, GatedFit]() for _ in data]
    for place, (node, source) in enumerate(gates):
        alone[node][source] = max(singles[place :: len(gates)], key=lambda one: one.log_likelihood)
    gains, fits, several = [], list(base), dict[int, list[int]]()
    scales = list[dict[int, float]]()
    for node, of_node in enumerate(alone):
        scales.append(
            {
                source: float(known[node][source])
                if known is not None
                else 1.0
                if dependence is None
                else _of_gate(data[node], fit, source, dependence[node])[1]
                for source, fit in of_node.items()
            }
        )
        gain = {source: _ratio(fit, base[node]) / scales[-1][source] for source, fit in of_node.items()}
        gains.append(dict(sorted(gain.items(), key=lambda item: -item[1])))
        # curves and growing noise explain what one of several gates leaves over, so these are judged together
        least = QUANTILE**2 if data[node].spread is None else -math.inf
        needed = [source for source, value in gains[-1].items() if value > least][:most]
        if needed and gains[-1][needed[0]] > QUANTILE**2:
            fits[node] = of_node[needed[0]]
        if len(needed) > 1:
            several[node] = needed
    starts = []
    for node, needed in several.items():  # each gate as it is alone
        one = fits[node]
        for source in needed[1:]:
            one = one.with_gate(source, min(STARTS[0], float(alone[node][source].edge_probs[source])))
        starts.append(one)
    if any(one.spread is not None for one in starts):
        starts += [one.with_constant_noise() for one in starts]
        for node, needed in several.items():  # curves and growing noise may explain what several gates do together
            one = base[node].with_constant_noise()
            for source in needed:
                one = one.with_gate(source, TOGETHER)
            starts.append(one)
    fitted = fit_gated([data[node] for node in several] * (len(starts) // max(1, len(several))), starts)
    together = [max(fitted[place :: len(several)], key=lambda one: one.log_likelihood) for place in range(len(several))]
    for node, fit in _without_needless(data, dict(zip(several, together, strict=True)), scales).items():
        fits[node] = fit
    return [_Chosen(*one) for one in zip(fits, alone, gains, strict=True)]


def _mask(like: Bool[Tensor, " source"], chosen: list[int]) -> Bool[Tensor, " source"]:
    mask = torch.zeros_like(like)
    mask[chosen] = True
    return mask


def _ratio(more: GatedFit, less: GatedFit) -> float:
    return 2 * (more.log_likelihood - less.log_likelihood)


def _of_gate(data: GatedRegression, fit: GatedFit, source: int, dependence: Dependence | None) -> tuple[float, float]:
    """Return the standard error of the logit of a gate if the rows are independent, and the scale of its ratios."""
    found = Inference.of(data, fit, dependence)
    (place,) = found.gates[source].tolist()
    return float(found.inverse[place, place].sqrt()), 1.0 if dependence is None else found.scale(found.gates[source])


def _without_needless(
    data: Sequence[GatedRegression], fits: dict[int, GatedFit], scales: list[dict[int, float]]
) -> dict[int, GatedFit]:
    """Remove gates of each node one by one, starting with the least needed."""
    found, going = dict(fits), list(fits)
    while going:
        fewer = [(node, source) for node in going for source in found[node].gated.nonzero()[:, 0].tolist()]
        starts = [found[node].without_gate(source) for node, source in fewer]
        tried = fit_gated([data[node] for node, _ in fewer], starts)
        best = dict[int, GatedFit]()
        for (node, _), fit in zip(fewer, tried, strict=True):
            if node not in best or fit.log_likelihood > best[node].log_likelihood:
                best[node] = fit
        gone = {node: int((found[node].gated & ~fit.gated).nonzero()) for node, fit in best.items()}
        going = [
            node for node, fit in best.items() if _ratio(found[node], fit) <= QUANTILE**2 * scales[node][gone[node]]
        ]
        for node in going:
            found[node] = best[node]
    return found


def _intervals(
    data: Sequence[GatedRegression],
    widest: list[GatedFit],
    alone: list[dict[int, GatedFit]],
    dependence: Sequence[Dependence] | None,
    given: Sequence[Float[Tensor, " _"]] | None,
) -> tuple[dict[Edge, tuple[float, float, float]], dict[int, GatedFit]]:
    """Return the ends of the interval of each edge of each node, and the likelihood ratio of its gate.

    Its own gate and those of ``widest`` are free. Also return the fits of nodes whose profiles have a higher maximum
    than ``widest``.
    """
    edges = [(node, source) for node, of_node in enumerate(alone) for source in of_node]
    starts = list[GatedFit]()
    for node, source in edges:
        fit, prob = widest[node], min(0.99, max(0.05, float(alone[node][source].edge_probs[source])))
        starts.append(fit.without_gate(source) if fit.gated[source] else fit.with_gate(source, prob))
    best, always = dict[Edge, GatedFit](), dict[Edge, float]()
    for edge, other in zip(edges, fit_gated([data[node] for node, _ in edges], starts), strict=True):
        own = widest[edge[0]]
        gate, none = (own, other) if bool(own.gated[edge[1]]) else (other, own)
        best[edge], always[edge] = _at_maximum(gate, none, edge[1]), none.log_likelihood
    found, higher = dict[Edge, tuple[float, float, float]](), dict[int, GatedFit]()
    for left_over in reversed(range(1 + MOST_RESTARTS)):
        scales, searches = dict[Edge, float](), dict[tuple[Edge, bool], Generator[float, float, float]]()
        for node, source in edges:
            edge, known_rows = (node, source), None if dependence is None else dependence[node]
            error, scale = _of_gate(data[node], best[edge], source, known_rows)
            scales[edge] = scale if given is None else float(given[node][source])
            acts = best[edge].log_likelihood >= always[edge]
            middle = float(best[edge].logits[source]) if acts else MOST_LOGIT
            step = min(MOST_STEP, max(LEAST_STEP, QUANTILE * error * math.sqrt(scales[edge])))
            searches[edge, False] = _end(middle, LOWEST_LOGIT, -step, far=middle - LOWEST_LOGIT > FAR * step)
            if 2 * (best[edge].log_likelihood - always[edge]) > QUANTILE**2 * scales[edge]:
                searches[edge, True] = _end(middle, MOST_LOGIT, step)
        top = {edge: max(best[edge].log_likelihood, always[edge]) for edge in edges}
        # fits inside the interval, from which others start: one outside may be at a lower maximum of the other numbers
        inside, again = {edge: [best[edge]] for edge in edges}, dict[Edge, GatedFit]()
        ends, asked = dict[tuple[Edge, bool], float](), {key: next(search) for key, search in searches.items()}
        while asked:
            held = fit_gated(
                [data[node] for (node, _), _ in asked],
                [
                    _nearest(inside[edge], edge[1], logit).with_gate(edge[1], _prob(logit))
                    for (edge, _), logit in asked.items()
                ],
                [source for (_, source), _ in asked],
            )
            going = dict[tuple[Edge, bool], float]()
            for key, fit in zip(asked, held, strict=True):
                edge, loss = key[0], top[key[0]] - fit.log_likelihood
                root = math.sqrt(max(0.0, 2 * loss) / scales[edge])
                if root < QUANTILE:
                    inside[edge].append(fit)
                if left_over and loss < -HIGHER:
                    again[edge] = max(again.get(edge, fit), fit, key=lambda one: one.log_likelihood)
                try:
                    going[key] = searches[key].send(root)
                except StopIteration as end:
                    ends[key] = end.value
            asked = {key: logit for key, logit in going.items() if key[0] not in again}
        for edge in edges:
            if edge not in again:
                low, high = ends[edge, False], ends.get((edge, True))
                ratio = 2 * (top[edge] - always[edge]) / scales[edge]
                found[edge] = 0.0 if low <= LOWEST_LOGIT else _prob(low), 1.0 if high is None else _prob(high), ratio
        # the profile has a higher maximum: the search of these edges begins again from there
        edges = list(again)
        for edge, fit in zip(edges, fit_gated([data[node] for node, _ in edges], list(again.values())), strict=True):
            best[edge] = fit
            if edge[0] not in higher or fit.log_likelihood > higher[edge[0]].log_likelihood:
                higher[edge[0]] = fit
    return found, higher


def _at_maximum(fit: GatedFit, none: GatedFit, source: int) -> GatedFit:
    """Return the fit with a gate, or the one without it as a gate that is always open, which it must not be worse than.

    A local maximum may be: where noise is much smaller than the effects, at a gate that explains few rows.
    """
    return fit if fit.log_likelihood > none.log_likelihood - WORSE else none.with_gate(source, _prob(MOST_LOGIT))


def _nearest(fits: list[GatedFit], source: int, logit: float) -> GatedFit:
    return min(fits, key=lambda fit: abs(float(fit.logits[source]) - logit))


def _prob(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def _end(middle: float, limit: float, step: float, *, far: bool = False) -> Generator[float, float, float]:
    """Return the logit on one side of the maximum at which the root reaches the quantile, or the limit.

    It yields a logit and receives the root of the profile likelihood ratio there, which is nearly proportional to the
    distance of the logit from the maximum, and for a maximum at 1 to that of the probability. The lower limit is tried
    first, unless it is very ``far``: the profile may have a second maximum, at which an edge that acts rarely explains
    outliers.
    """
    if step < 0 and not far:
        found = yield limit
        if found < QUANTILE:
            return limit
    at_one = middle == MOST_LOGIT  # places are then probabilities, otherwise logits
    start, bound = (1.0, _prob(limit)) if at_one else (middle, limit)
    at = _prob(FIRST_BELOW_ONE) if at_one else middle + step
    inside, outside, known = (0.0, start), None, [(0.0, start)]  # roots and places
    for _ in range(MOST_TRIES):
        at = max(at, bound) if step < 0 else min(at, bound)
        found = yield math.log(at / (1 - at)) if at_one else at
        if at == bound and found < QUANTILE:
            return limit
        known.append((found, at))
        inside, outside = ((found, at), outside) if found < QUANTILE else (inside, (found, at))
        aim, close = _interpolated(known), abs(found - QUANTILE) < CLOSE
        if outside is None:
            share = min(MOST_GROWTH, max(LEAST_GROWTH, (aim - start) / (at - start)))
            at = aim if close else start + share * (at - start)
        else:
            share = (aim - inside[1]) / (outside[1] - inside[1])
            margin = 0.0 if close else MARGIN
            at = inside[1] + min(1 - margin, max(margin, share)) * (outside[1] - inside[1])
        if close:
            break
    at = max(at, bound) if step < 0 else min(at, bound)
    return math.log(at / (1 - at)) if at_one else at


def _interpolated(known: list[tuple[float, float]]) -> float:
    """Return the place of the quantile by inverse quadratic interpolation of the three nearest roots."""
    near = list[tuple[float, float]]()
    for root, place in sorted(known, key=lambda one: abs(one[0] - QUANTILE)):
        if len(near) < 3 and all(abs(root - other) > SAME for other, _ in near):
            near.append((root, place))
    return sum(
        place * math.prod((QUANTILE - other) / (root - other) for other, _ in near if other != root)
        for root, place in near
    )
