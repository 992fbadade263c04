r"""Gates that belong together: edges that act together or not at all.

Within a node, the sources of a set $S$ share one gate if one random gate on their sum,

$$y = f_0 + A \sum_{j \in S} w_j^\top x_j + \sum_{j \notin S} A_j\, w_j^\top x_j + \varepsilon, \qquad
A \sim \mathrm{Bernoulli}(\theta)$$

has a larger likelihood than independent gates. It is the same regression (:mod:`tacit.local`) with the sources of $S$
merged into one source that has all their lags. It has no more parameters than independent gates, and $2^k$ sets of $k$
sources are possible: the log likelihood must be larger by $k \log 2 + \log(1 / \text{FALSE\_ALARMS})$.

Between nodes, let $L_u(a)$ be the likelihood of a row of a node given the state $a$ of its gate $u$. The joint
distribution $p_{ab}$ of the states of two gates maximises

$$\sum_t \log \sum_{ab} p_{ab}\, L_u(a)\, L_v(b)\, c_\rho\big(z_u(a), z_v(b)\big)$$

with the Gaussian copula $c_\rho$ of the normal scores $z$ of both targets, because noise that two nodes share is no
reason to join their gates. The likelihood ratio against independent gates, $p_{ab} = p_a p_b$ with a $\rho$ of its own,
has one degree of freedom; its level is ``FALSE_ALARMS`` divided by the number of pairs of gates. Two dependent gates
belong together if they differ in less than ``APART`` of the rows. Pairs of gates, and sets of sources that all have
gates, are tested if the posterior probabilities of their states are correlated over the rows, which is a score test.

The gates of joined nodes are one gate, whose states have the likelihood $\prod_u L_u(a)$. The standard error of
$\mathrm{logit}\, \theta$ follows from the scores of the rows, and is as much larger than that with known weights as it
is in a single node.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from scipy import special
from torch import Tensor
from torch.nn.functional import pad

from tacit.assessment.uncertainty.explanations import ExplainedGates
from tacit.local import (
    MOST_LOGIT,
    QUANTILE,
    Dependence,
    GatedFit,
    GatedRegression,
    choose_gates,
    fit_gated,
    judge_gates,
    states,
)
from tacit.shapes import EdgeProbs

FALSE_ALARMS = 0.01  # per node within nodes, and per table between nodes
APART = 0.05  # share of the rows in which two gates that belong together may differ
CORRELATIONS = torch.linspace(-0.95, 0.95, 39, dtype=torch.float64)  # of noise; 0 is the middle one
EM_STEPS = 100
MOST_SOURCES = 12  # of a node whose sets are searched
STARTS = (0.7, 0.4)  # initial values of the probability of a common gate
SCREENED = 2.5  # of the score of two gates, from which their states may depend on each other
MOST_ROWS = 2**12  # of the search of sets, and of the states of two gates
LEAST = 1e-12

States = Float[Tensor, "row 2"]


class CommonGate(NamedTuple):
    """Edges that act together, as pairs (place of the regression, source), how often, and the 95% interval."""

    edges: list[tuple[int, int]]
    prob: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class _Unit:
    """One gate of one node: its sources, the log likelihood of each row by its state, and its place in the fit.

    ``rows``    of the table that the regression has
    ``excess``  posterior probability that the gate is open, less the prior one
    """

    place: int
    sources: list[int]
    logs: States
    data: GatedRegression
    fit: GatedFit
    gate: int
    rows: Bool[Tensor, " row"]
    excess: Float[Tensor, " row"]

    @cached_property
    def scores(self) -> States:
        """The normal scores of each row by the state of the gate; NaN for other rows."""
        fit, gates = self.fit, states(int(self.fit.gated.sum()))
        ranks = self.data.ranks(fit, self.data.outputs(fit))
        beside = fit.gated.nonzero()[:, 0] != self.gate
        rest, found = fit.logits[fit.gated][beside], ranks.new_full((len(self.rows), 2), torch.nan)
        for state in (0, 1):
            these = gates[:, ~beside][:, 0] == state
            share = torch.where(gates[these][:, beside] == 1, rest.sigmoid(), (-rest).sigmoid()).prod(1)
            found[self.rows, state] = torch.special.ndtri((ranks[:, these] @ share).clamp(LEAST, 1 - LEAST))
        return found


@torch.no_grad()
def common_gates(
    data: Sequence[GatedRegression],
    may_gate: Sequence[Bool[Tensor, " _"]],
    rows: Sequence[Bool[Tensor, " row"]],
    dependence: Dependence,
    *,
    fits: Sequence[GatedFit | None] | None = None,
    intervals: bool = True,
) -> list[CommonGate]:
    """Return the sets of at least two edges that act together; ``rows`` are those of each regression in the table.

    ``fits`` have the gates that each regression needs, where they are known.
    """
    fits = [None] * len(data) if fits is None else fits
    inputs = enumerate(zip(data, may_gate, rows, fits, strict=True))
    units = [unit for place, one in inputs for unit in _units(place, *one)]
    joined = list(range(len(units)))  # the first unit of each group
    pairs = [(i, j) for j in range(len(units)) for i in range(j) if units[i].place != units[j].place]
    for i, j in pairs:
        if _belong_together(units[i], units[j], FALSE_ALARMS / len(pairs)):
            joined = [joined[i] if first == joined[j] else first for first in joined]
    found = []
    for first in sorted(set(joined)):
        group = [unit for unit, own in zip(units, joined, strict=True) if own == first]
        edges = [(unit.place, source) for unit in group for source in unit.sources]
        if len(edges) > 1:
            found.append(CommonGate(edges, *_how_often(group, dependence, intervals=intervals)))
    return found


def with_common_gates(
    gates: ExplainedGates,
    common: Sequence[CommonGate],
    nodes: Sequence[int],
    sources: Sequence[Int[Tensor, " _"]],
) -> tuple[ExplainedGates, EdgeProbs]:
    """Return matrices in which edges that act together have the results of their common gate, and their numbers.

    ``nodes`` and ``sources`` are those of the regressions. The p-value of a common gate is the smallest one of its
    edges. Edges that act together have the same number, from 1 on; it is NaN for the others.
    """
    changed, together = ExplainedGates(*(values.clone() for values in gates)), torch.full_like(gates.low, torch.nan)
    for number, one in enumerate(common, 1):
        rows = torch.tensor([nodes[place] for place, _ in one.edges])
        columns = torch.stack([sources[place].cpu()[source] for place, source in one.edges])
        p_values = gates.p_values[rows, columns]
        changed.edge_probs[rows, columns] = one.prob
        changed.low[rows, columns] = one.low
        changed.high[rows, columns] = one.high
        changed.p_values[rows, columns] = p_values[~p_values.isnan()].min()
        together[rows, columns] = number
    return changed, together


def merged(data: GatedRegression, sources: list[int]) -> GatedRegression:
    """Return the regression in which some sources are one source, the first, with all their lags."""
    rest = [source for source in range(len(data.sent)) if source not in sources]
    both = torch.cat([data.sent[source] for source in sources], 1)[None]
    return replace(data, sent=torch.cat([both, pad(data.sent[rest], (0, both.shape[2] - data.sent.shape[2]))]))


def fit_together(data: GatedRegression, sources: list[int], probs: Float[Tensor, " source"]) -> GatedFit:
    """Return the fit in which some sources have a common gate; others have a gate if their probability is below 1."""
    rest = [source for source in range(len(data.sent)) if source not in sources]
    changed, every = merged(data, sources), [sources[0], *rest]
    [base] = fit_gated([changed], [changed.start()])
    for number, source in enumerate(every):
        base = base.with_gate(number, float(probs[source])) if probs[source] < 1 else base
    [fit] = fit_gated([changed], [base])
    lags, order = data.sent.shape[2], [*sources, *rest]
    edges = torch.cat([fit.edges[0].view(len(sources), lags), fit.edges[1:, :lags]])
    owner = torch.tensor([0] * len(sources) + list(range(1, len(every))))
    back = torch.tensor(order).argsort()
    return replace(fit, edges=edges[back], logits=fit.logits[owner][back], gated=fit.gated[owner][back])


def _units(
    place: int,
    data: GatedRegression,
    may_gate: Bool[Tensor, " source"],
    rows: Bool[Tensor, " row"],
    fit: GatedFit | None,
) -> list[_Unit]:
    """Return the gates of a node, of which one may be common to several of its edges."""
    if fit is None:
        [fit] = choose_gates([data], [may_gate])
    members = [[source] for source in range(len(may_gate))]
    free = may_gate.nonzero()[:, 0].tolist()
    if bool(fit.gated.any()) and 1 < len(free) <= MOST_SOURCES and _may_share(data, fit, may_gate):
        few = data.every(max(1, len(data.targets) // MOST_ROWS))
        [near] = fit_gated([few], [fit])
        best = max(
            (_search(few, free, fit.gated, start) for start in (free, [int(fit.edge_probs.argmin())])),
            key=lambda one: one[1],
        )
        price = len(free) * math.log(2) - math.log(FALSE_ALARMS)
        if len(best[0]) > 1 and best[1] > near.log_likelihood + price:
            together = merged(data, best[0])
            others = [source for source in range(len(may_gate)) if source not in best[0]]
            [common] = choose_gates([together], [torch.cat([torch.ones(1, dtype=torch.bool), may_gate[others]])])
            if bool(common.gated[0]) and common.log_likelihood > fit.log_likelihood + price:
                data, fit, members = together, common, [best[0], *([source] for source in others)]
    outputs, gates = data.outputs(fit), states(int(fit.gated.sum()))
    joint, found = data.joint(fit, outputs), list[_Unit]()
    for number, gate in enumerate(fit.gated.nonzero()[:, 0].tolist()):
        if not may_gate[members[gate]].all():
            continue
        logs = joint.new_zeros(len(rows), 2)
        for state in (0, 1):
            prior = (fit.logits[gate] if state else -fit.logits[gate]).sigmoid().log()
            logs[rows, state] = joint[:, gates[:, number] == state].logsumexp(1) - prior
        prob = fit.logits[gate].sigmoid()
        excess = (logs.diff(dim=1)[:, 0] + fit.logits[gate]).sigmoid() - prob
        found.append(_Unit(place, members[gate], logs, data, fit, gate, rows, torch.where(rows, excess, 0.0)))
    return found


def _may_share(data: GatedRegression, fit: GatedFit, may_gate: Bool[Tensor, " source"]) -> bool:
    """Return whether edges of a node may share a gate: some have none, or the states of two depend on each other.

    This is the score of the dependence, in which independent gates have the expectation 0.
    """
    if bool((may_gate & ~fit.gated).any()):
        return True
    count = int(fit.gated.sum())
    away = states(count) - fit.edge_probs[fit.gated]
    one, other = torch.triu_indices(count, count, 1)
    products = data.joint(fit, data.outputs(fit)).softmax(1) @ (away[:, one] * away[:, other])  # (row, pair)
    return bool((products.sum(0) > SCREENED * products.norm(dim=0)).any())


def _search(
    data: GatedRegression, free: list[int], gated: Bool[Tensor, " source"], start: list[int]
) -> tuple[list[int], float]:
    """Return a set of sources whose common gate has a larger likelihood than with one source more or less.

    Sources that are not in the set have gates of their own where ``gated`` is true.
    """
    known = dict[tuple[int, ...], float]()
    [base] = fit_gated([data], [data.start()])  # the effects if all edges always act

    def values(sets: list[tuple[int, ...]]) -> None:
        sets = [one for one in sets if one and one not in known]
        regressions, starts = [], []
        for chosen in sets:
            rest = [source for source in range(len(gated)) if source not in chosen]
            changed, lags = merged(data, list(chosen)), base.edges.shape[1]
            edges = torch.cat(
                [base.edges[list(chosen)].view(1, -1), pad(base.edges[rest], (0, lags * len(chosen) - lags))]
            )
            none = replace(changed.start(), own=base.own, edges=edges, observation=base.observation, spread=base.spread)
            for number, source in enumerate(rest):
                none = none.with_gate(1 + number, STARTS[0]) if gated[source] else none
            regressions += [changed] * len(STARTS)
            starts += [none.with_gate(0, prob) for prob in STARTS]
        for number, fit in enumerate(fit_gated(regressions, starts)):
            chosen = sets[number // len(STARTS)]
            known[chosen] = max(known.get(chosen, -math.inf), fit.log_likelihood)

    best = tuple(sorted(start))
    values([best])
    while True:
        near = [tuple(sorted({*best} ^ {source})) for source in free]
        values(near)
        step = max((one for one in near if one), key=lambda one: known[one], default=best)
        if known[step] <= known[best]:
            return list(best), known[best]
        best = step


def _belong_together(one: _Unit, other: _Unit, level: float) -> bool:
    """Return whether the states of two gates depend on each other, and rarely differ."""
    product = one.excess * other.excess
    if product.sum() <= SCREENED * product.norm():
        return False
    some = slice(None, None, max(1, len(product) // MOST_ROWS))
    rows = [values[some] for values in (one.logs, other.logs, one.scores, other.scores)]
    full, table = joint_states(*rows)
    alone, _ = joint_states(*rows, independent=True)
    return bool(special.chdtrc(1, 2 * (full - alone)) < level and table[0, 1] + table[1, 0] < APART)


def joint_states(
    one: States,
    other: States,
    one_scores: States,
    other_scores: States,
    *,
    independent: bool = False,
) -> tuple[float, Float[Tensor, "2 2"]]:
    """Return the largest log likelihood of two gates, and the joint distribution of their states.

    Rows in which a target is missing, whose score is NaN, are left out.
    """
    both = ~(one_scores[:, 0].isnan() | other_scores[:, 0].isnan())
    one, other, one_scores, other_scores = (values[both] for values in (one, other, one_scores, other_scores))
    logs = one[:, :, None] + other[:, None]  # (row, state, state)
    largest = logs.amax((1, 2), keepdim=True)
    likely = (logs - largest).exp()[None]
    first, second, rho = one_scores[:, :, None], other_scores[:, None], CORRELATIONS[:, None, None, None]
    copula = (2 * rho * first * second - rho.square() * (first.square() + second.square())) / (2 - 2 * rho.square())
    likely = likely * (copula - (1 - rho.square()).log() / 2).exp()
    table = likely.new_full((len(likely), 2, 2), 0.25)
    for _ in range(EM_STEPS):
        mixed = torch.einsum("knab,kab->kn", likely, table).clamp_min(LEAST)
        table = table * torch.einsum("knab,kn->kab", likely, 1 / mixed) / likely.shape[1]
        if independent:
            table = table.sum(2, keepdim=True) * table.sum(1, keepdim=True)
    values = torch.einsum("knab,kab->kn", likely, table).clamp_min(LEAST).log().sum(1) + largest.sum()
    best = int(values.argmax())
    return float(values[best]), table[best]


def _how_often(group: list[_Unit], dependence: Dependence, *, intervals: bool) -> tuple[float, float, float]:
    """Return how often the gate of a group is open, and the interval."""
    logs = torch.stack([unit.logs for unit in group]).sum(0)
    prob = 0.5
    for _ in range(EM_STEPS):
        prob = float(torch.sigmoid(logs.diff(dim=1) + math.log(prob / (1 - prob))).mean())
        prob = min(max(prob, LEAST), 1 - LEAST)
    if not intervals:
        return prob, prob, prob
    alone, width = [], 1.0
    for unit in group:
        mask = torch.arange(len(unit.data.sent)) == unit.gate
        [judged] = judge_gates([unit.data], [mask])
        low, high = (min(max(float(end[unit.gate]), LEAST), 1 - LEAST) for end in (judged.low, judged.high))
        alone.append((float(judged.fit.edge_probs[unit.gate]), low, high))
        known = 2 * QUANTILE * _logit_error(unit.logs, alone[-1][0], Dependence(1))
        width = max(width, (_logit(high) - _logit(low)) / known)
    if len(group) == 1:
        return alone[0]
    reach = QUANTILE * width * _logit_error(logs, prob, dependence)
    return prob, _prob(_logit(prob) - reach), _prob(_logit(prob) + reach)


def _logit_error(logs: States, prob: float, dependence: Dependence) -> float:
    """Return the standard error of the logit of a probability, from the scores of the rows."""
    scores = torch.sigmoid(logs.diff(dim=1) + _logit(prob)) - prob
    return float((dependence.covariance(scores, scores).clamp_min(LEAST) / scores.square().sum().square()).sqrt())


def _logit(prob: float) -> float:
    prob = min(max(prob, LEAST), 1 - LEAST)
    return min(MOST_LOGIT, max(-MOST_LOGIT, math.log(prob / (1 - prob))))


def _prob(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))
