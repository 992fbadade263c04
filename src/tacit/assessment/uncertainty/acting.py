r"""How often each existing edge acts: always, or at times.

For models whose edges are weights times gates (:func:`has_moment_estimate`), mean and variance of the targets determine
this node by node (:mod:`tacit.local.moments`), without training, so the result does not depend on
initial values. The estimate is $\theta = 1$ unless a one-sided score test rejects it at 2.5%. It is also 1, with a wide
interval, for edges whose mean effect is not significantly different from 0.

Noise that grows with the source has the same two moments as a gate. Where the score test rejects, the likelihood of the
node therefore decides between them, and gives probability and interval
(:mod:`tacit.assessment.uncertainty.explanations`). An edge acts at times only if both tests agree: the first is robust
to the shape of the noise, the second to its size. The p-value of the edge is the larger one. Edges that act together
get the probability and the interval of their common gate (:mod:`tacit.assessment.uncertainty.common_gates`).

Intervals of the other edges come from two sources. The sandwich of the regressions gives the error of each edge; it is
stable, but treats the set of edges as known. Resamples of the data, with a new selection of edges on each (``kept``),
scale all errors by one factor: the median over edges of their spread relative to the sandwich, shrunk towards 1 for few
edges, and at least 1. An edge whose spread over resamples is more than twice its error gets that spread as its error.

A node with too few pairs for its coefficients, for example those of a long window, is left unchanged: how often its
edges act is not estimated.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from scipy import special
from torch import Tensor

from tacit.assessment.uncertainty.bootstrap import SELDOM_KEPT
from tacit.assessment.uncertainty.boundary import NOTHING_KNOWN
from tacit.assessment.uncertainty.common_gates import common_gates, with_common_gates
from tacit.assessment.uncertainty.decisions import EdgeIntervals, ReplicaProbs, acting_words
from tacit.assessment.uncertainty.explanations import (
    ExplainedGates,
    explained_gates,
    explained_regressions,
    noise_sizes,
    usual_rows,
)
from tacit.assessment.uncertainty.resamples import FEWEST_KEEPING, EdgeMasks, Kept, kept_edges, resample_rows
from tacit.data import Pairs
from tacit.errors import require
from tacit.local import (
    LEVEL,
    QUANTILE,
    Dependence,
    LocalModel,
    RatioErrors,
    fit_moments,
    gate_scales,
    has_moment_estimate,
    ratio_errors,
)
from tacit.observation import GaussianNoise
from tacit.randomness import replica_seeds
from tacit.shapes import EdgeCodes, EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel

TEST_LEVEL = 0.025  # of the test of "always", one-sided: that of a 95% interval
ROWS_PER_COLUMN = 2  # fewer pairs per coefficient are not enough to estimate the variance of a node
MOST_COLUMNS = 512  # coefficients of a node: time grows with their square, and weights of so many lags are noise
USUAL_SPREAD = 0.1  # standard deviation of the log inflation between data sets
MUCH_WIDER = 2.0  # spread of one edge over resamples, in units of its error
NORMAL_MAD, MAD_EFFICIENCY = (
    1.4826,
    0.37,
)  # standard deviation over MAD of a normal; efficiency
REPLICA_ROUNDS = 2
MOST_NUMBERS = 2**24  # of the weighted designs of replicas that are fitted at once: 128 MiB
LEAST_NOISE = 0.05  # smallest share of the noise in the variance around the mean
UNKNOWN_SCALE = 0.25  # relative variance of an edge's scale: its mean effect is within two standard errors of 0
FEW_ROWS = "{rows} training pairs are too few to estimate how often edges into {nodes} of the nodes act"
MANY_COLUMNS = (
    "how often edges into {nodes} of the nodes act was not computed: regressions have up to {columns:,} columns, more "
    "than {most}; use a shorter window, for example --window 24"
)


@dataclass(frozen=True, eq=False)
class Acting:
    r"""How often edges act: ``edge_probs``, 1 for edges in ``always``.

    ``gates``       results of the likelihood, as matrices; NaN for edges that the moments alone decide
    ``together``    number of the common gate of edges that act together; NaN for other edges
    ``p_values``    of the test that an edge always acts; NaN for edges that were not tested
    ``ratios``      ratios of the learned edges, in the order of ``learned.nonzero()``, with their errors
    ``inflation``   factor of these errors, from the spread over resamples
    ``wide``        learned edges whose probability could not be estimated
    ``resampled``   probabilities on each resample, 0 if it does not keep the edge
    ``parameters``  parameters of the model with this result, by name
    """

    edge_probs: EdgeProbs
    always: EdgeMask
    learned: EdgeMask
    gates: ExplainedGates
    together: EdgeProbs
    p_values: EdgeProbs
    ratios: RatioErrors
    inflation: Float[Tensor, " edge"]
    wide: EdgeMask
    degrees: float
    resampled: ReplicaProbs
    kept: Float[Tensor, "replica node node"]
    parameters: dict[str, Tensor]
    warnings: list[str]

    @property
    def std_errors(self) -> EdgeProbs:
        r"""Standard errors of the probabilities, $\theta^2$ times those of the ratios; 0 for edges not learned."""
        errors = torch.zeros_like(self.edge_probs)
        found = self.edge_probs[self.learned].square() * (self.ratios.std_errors() * self.inflation).to(errors)
        errors[self.learned] = found.clamp_max(NOTHING_KNOWN)
        judged = torch.maximum(self.gates.high - self.edge_probs, self.edge_probs - self.gates.low) / QUANTILE
        errors = torch.where(self.gates.low.isnan(), errors, judged.clamp_max(NOTHING_KNOWN))
        errors[self.wide] = NOTHING_KNOWN
        return errors

    @property
    def bagged(self) -> EdgeProbs:
        """Mean over the resamples that keep an edge; the estimate itself if there are none."""
        count = self.kept.sum(0)
        mean = self.resampled.sum(0) / count.clamp_min(1).to(self.resampled)
        return torch.where(self.learned & (count > 0), mean, self.edge_probs)

    @property
    def nats(self) -> EdgeProbs:
        """Log likelihood of an edge that acts at times less that of growing noise; NaN where not computed."""
        return self.gates.nats

    @property
    def acting(self) -> EdgeCodes:
        """Whether edges act always or at times, as places in ``ACTS``."""
        around = self.intervals()
        return acting_words(around.low, around.high, self.p_values, self.learned)

    def intervals(self, level: float = LEVEL) -> EdgeIntervals:
        """Return confidence intervals of the given ``level``; those of the likelihood have the shape of the 95% one."""
        quantile = float(special.stdtrit(self.degrees, (1 + level) / 2))
        lowest, highest = self.ratios.interval(quantile, self.inflation)
        low, high = self.edge_probs.clone(), self.edge_probs.clone()
        low[self.learned], high[self.learned] = (1 / (1 + ratio).to(low) for ratio in (highest, lowest))
        low, high = torch.minimum(low, self.edge_probs), torch.maximum(high, self.edge_probs)
        share = float(special.ndtri((1 + level) / 2)) / QUANTILE
        moments = self.gates.low.isnan()
        low, high = (
            torch.where(moments, end, (self.edge_probs + share * (other - self.edge_probs)).clamp(0, 1))
            for end, other in ((low, self.gates.low), (high, self.gates.high))
        )
        low[self.wide], high[self.wide] = 0.0, 1.0
        return EdgeIntervals(low, high, level, simultaneous=False)


def acting(
    model: LatentGraphModel,
    train: Pairs,
    *,
    replicas: int = 16,
    block: int = 1,
    seed: int = 0,
    kept: Kept | None = None,
    intervals: bool = True,
    switching: bool = False,
    earlier: Acting | None = None,
    likely: EdgeMask | None = None,
) -> Acting:
    """Return how often the learned edges of a model act, from its training pairs; the model is not changed.

    ``replicas`` is the number of resamples, drawn as in :func:`~tacit.assessment.uncertainty.bootstrap`. ``kept``
    returns the edges that may exist given the rows of a resample: others are excluded from its regressions. Without
    ``intervals`` the likelihood gives probabilities only, which takes half its time. Where edges may be ``switching``,
    with regimes that are fitted next, growing noise does not compete with gates, and the moments decide. The results of
    the likelihood are those of an ``earlier`` estimate from the same pairs and edges, if it is given. Common gates are
    searched for where an edge that is ``likely`` to exist has a gate; None: all of them are.
    """
    require(
        has_moment_estimate(model),
        "acting requires a linear filter with noise, one target per node and no prior, got "
        f"{type(model.predictor).__name__} with {type(model.observation).__name__}; use the bootstrap",
    )
    data, learned = LocalModel.of(model, train), model.graph.learned
    weights, masks = _resamples(train, data.present, replicas, block, seed, kept)
    dependence = Dependence(block, train.series)
    present = model.graph.edge_probs.detach()
    nodes = [_one_node(data, node, weights, masks, dependence, learned) for node in range(len(present))]
    ratios = RatioErrors(*(torch.cat([getattr(found.errors, name) for found in nodes]) for name in FIELDS))
    resampled = torch.stack([found.ratios for found in nodes], 1)  # (replica, node, node)
    masks = masks & learned
    inflation = _inflation(ratios, resampled[:, learned], masks[:, learned])
    wide = torch.zeros_like(learned)
    for node, found in enumerate(nodes):
        wide[node] = learned[node] & found.lacking
    seldom = learned & (masks.sum(0) < FEWEST_KEEPING) & ~wide if replicas else torch.zeros_like(learned)
    assumed = learned & (torch.zeros_like(learned) if data.always is None else data.always)
    p_values, judged = torch.full_like(ratios.ratios, torch.nan), torch.zeros_like(learned)
    known = ratios.scale < UNKNOWN_SCALE
    p_values[known] = torch.special.ndtr(-ratios.statistics[known])
    judged[learned] = p_values < TEST_LEVEL
    judged &= ~assumed
    explained = torch.zeros_like(judged) if switching else judged
    may_join = torch.zeros_like(judged) if switching else learned & ~assumed
    may_join = may_join if likely is None else may_join & likely.to(may_join)
    if earlier is None:
        gates, together = _gates(data, explained, may_join, nodes, train, dependence, intervals=intervals)
    else:
        gates = ExplainedGates(*(values.double() for values in earlier.gates))
        together = earlier.together.double()
    tests = torch.full_like(gates.p_values, torch.nan)
    tests[learned] = p_values.to(tests)
    tests = torch.where(explained, torch.maximum(tests, gates.p_values), tests)
    tests = tests.masked_fill(assumed | wide, torch.nan)
    tests = torch.where(together.isnan(), tests, gates.p_values)
    judged, explained = judged | ~together.isnan(), explained | ~together.isnan()
    answer = torch.where(wide, present, torch.where(learned, 1.0, present))
    by_moments = torch.ones_like(answer)
    by_moments[learned] = 1 / (1 + ratios.ratios.clamp_min(0)).to(answer)
    answer = torch.where(judged, torch.where(explained, gates.edge_probs.to(answer), by_moments), answer)
    always = learned & (answer == 1)
    parameters = data.parameters_by_moments(
        torch.stack([found.own for found in nodes]),
        torch.stack([found.means for found in nodes]),
        _sigmas(answer, nodes),
        answer,
        torch.tensor([not found.lacking for found in nodes], device=learned.device),
    )
    return Acting(
        answer,
        always & ~wide,
        learned.clone(),
        ExplainedGates(*(values.to(answer) for values in gates)),
        together.to(answer),
        tests.to(answer),
        ratios,
        inflation,
        wide | seldom,
        dependence.degrees(len(train)),
        torch.where(masks, 1 / (1 + resampled.clamp_min(0)), 0.0).to(answer),
        masks.to(answer),
        parameters,
        _notes(data, nodes, learned, seldom, replicas),
    )


FIELDS = ("ratios", "slope", "upper", "both", "scale", "statistics")


@dataclass(frozen=True, eq=False)
class _Node:
    """The result of one node: errors of its learned edges, and rows over all sources.

    ``leftover`` is the variance around the mean, ``sizes`` are the mean squares of the contributions, and ``residuals``
    those of the mean.
    """

    errors: RatioErrors
    ratios: Float[Tensor, "replica node"]
    own: Float[Tensor, " column"]
    means: Float[Tensor, "node lag"]
    leftover: Float[Tensor, ""]
    sizes: Float[Tensor, " node"]
    residuals: Float[Tensor, " pair"]
    lacking: bool


def _one_node(
    data: LocalModel,
    number: int,
    weights: Float[Tensor, "replica pair"],
    masks: EdgeMasks,
    dependence: Dependence,
    learned: EdgeMask,
) -> _Node:
    sources, observed, columns = data.sources(number), data.weights[:, number], data.num_moments(number)
    if columns > MOST_COLUMNS or bool((observed > 0).sum() < ROWS_PER_COLUMN * columns):
        return _unknown(data, weights, len(learned), int(learned[number].sum()))
    node = data.moments(number)
    every = torch.ones(1, len(sources), dtype=torch.bool, device=observed.device)
    found = fit_moments(node, observed[None], every)
    errors = ratio_errors(node, found, observed, dependence)
    chosen = learned[number, sources]
    errors = RatioErrors(*(getattr(errors, name)[chosen] for name in FIELDS))
    ratios = weights.new_zeros(len(weights), len(learned))
    if len(weights) and len(sources):
        at_once = max(1, MOST_NUMBERS // node.design.numel())
        for first in range(0, len(weights), at_once):
            some = slice(first, first + at_once)
            kept = masks[some, number][:, sources]
            ratios[some, sources] = fit_moments(node, weights[some] * observed, kept, REPLICA_ROUNDS, found).ratios
    means = weights.new_zeros(len(learned), node.sent.shape[2])
    means[sources] = found.edges[0]
    share = observed / observed.sum().clamp_min(1)
    leftover, sizes = share @ found.squares[0], weights.new_zeros(len(learned))
    sizes[sources] = share @ found.contributions[0].square()
    return _Node(errors, ratios, found.own[0], means, leftover, sizes, found.residuals[0], lacking=False)


def _gates(
    data: LocalModel,
    judged: EdgeMask,
    may_gate: EdgeMask,
    nodes: list[_Node],
    train: Pairs,
    dependence: Dependence,
    *,
    intervals: bool,
) -> tuple[ExplainedGates, EdgeProbs]:
    """Return what the likelihood says about some edges, as matrices, NaN for the others, and which act together."""
    residuals = torch.stack([one.residuals for one in nodes], 1)
    residuals = torch.where(data.weights > 0, residuals, torch.nan).cpu()
    places = judged.any(1).nonzero()[:, 0].tolist()
    masks = [judged[node, data.sources(node)].cpu() for node in places]
    sizes = noise_sizes(residuals, places, None if train.series is None else train.series.cpu()).unbind(1)
    known = [~residuals[:, node].isnan() for node in places]
    for rows, node in zip(known, places, strict=True):
        every_row = data.moments(node)
        rows &= usual_rows(every_row.own, every_row.sent).cpu()
    regressions = [
        data.node(node, rows=rows, spread=size) for node, rows, size in zip(places, known, sizes, strict=True)
    ]
    found = [torch.full(judged.shape, torch.nan, dtype=torch.float64) for _ in ExplainedGates._fields]
    gated = list[int]()  # places of nodes with gates that other edges may share
    parts = explained_regressions(regressions, masks)
    longer = Dependence.of_rows(len(train), dependence.block, train.series)
    # not with the noise of the model: the answer must not depend on its present state
    plain = [replace(one, spread=None, observation=GaussianNoise(1).double()) for one in regressions]
    scales = gate_scales(plain, masks, [longer.among(one) for one in known])
    explained = explained_gates(parts, masks, scales, intervals=intervals)
    for place, (node, mask, one) in enumerate(zip(places, masks, explained, strict=True)):
        sources = data.sources(node).cpu()[mask]
        for matrix, values in zip(found, one, strict=True):
            matrix[node, sources] = values[mask]
        if bool((may_gate[node, sources].cpu() & (one.edge_probs[mask] < 1)).any()):
            gated.append(place)
    wider = [(may_gate | judged)[places[place], data.sources(places[place])].cpu() for place in gated]
    more = [number for number, place in enumerate(gated) if not torch.equal(wider[number], masks[place])]
    several = explained_regressions([regressions[gated[number]] for number in more], [wider[number] for number in more])
    beside = {gated[number]: one for number, one in zip(more, several, strict=True)}
    masks = wider
    common = common_gates(
        [beside.get(place, parts[place])[0] for place in gated],
        [torch.ones(int(mask.sum()), dtype=torch.bool) for mask in masks],
        [known[place] for place in gated],
        dependence,
        intervals=intervals,
    )
    gates, together = with_common_gates(
        ExplainedGates(*found),
        common,
        [places[place] for place in gated],
        [data.sources(places[place]).cpu()[mask] for place, mask in zip(gated, masks, strict=True)],
    )
    return ExplainedGates(*(matrix.to(judged.device) for matrix in gates)), together.to(judged.device)


def _sigmas(edge_probs: EdgeProbs, nodes: list[_Node]) -> Float[Tensor, " node"]:
    r"""Return the standard deviation of the noise, $\sigma^2 = v - \sum_j r_j\, m_j^2$.

    $r_j = (1 - \theta_j) / \theta_j$ are the estimated ratios, so that noise and gates add up to the variance $v$.
    """
    leftover, sizes = (torch.stack([getattr(one, name) for one in nodes]) for name in ("leftover", "sizes"))
    ratios = torch.where(edge_probs > 0, (1 - edge_probs) / edge_probs, 0.0)
    return torch.maximum(leftover - (ratios * sizes).sum(1), LEAST_NOISE * leftover).sqrt()


def _unknown(data: LocalModel, weights: Float[Tensor, "replica pair"], nodes: int, edges: int) -> _Node:
    """Return a node without regressions; its errors are as wide as those of an edge whose effect may be 0."""
    one, zero = weights.new_ones(edges), weights.new_zeros(edges)
    return _Node(
        RatioErrors(zero, one, one, zero, one, zero),
        weights.new_zeros(len(weights), nodes),
        weights.new_zeros(data.parts.own.shape[2] + 1),
        weights.new_zeros(nodes, data.parts.sent.shape[2]),
        weights.new_ones(()),
        weights.new_zeros(nodes),
        weights.new_full((len(data.targets),), torch.nan),
        lacking=True,
    )


def _resamples(
    train: Pairs, present: EdgeMask, replicas: int, block: int, seed: int, kept: Kept | None
) -> tuple[Float[Tensor, "replica pair"], EdgeMasks]:
    """Return how often each resample contains each pair, and the edges that it keeps."""
    if not replicas:
        return train.inputs.new_zeros(0, len(train), dtype=torch.float64), present.new_zeros(0, *present.shape)
    rows = resample_rows(train, replica_seeds(seed, replicas), block)
    counts = torch.stack([torch.bincount(row, minlength=len(train)) for row in rows])
    return counts.double().to(train.inputs.device), kept_edges(rows, present, kept)


def _inflation(
    ratios: RatioErrors, resampled: Float[Tensor, "replica edge"], masks: Bool[Tensor, "replica edge"]
) -> Float[Tensor, " edge"]:
    """Return the ratio of the spread over resamples to the errors: one factor, except for edges with a wide spread."""
    errors, count = ratios.std_errors(), masks.sum(0)
    seen = (count >= FEWEST_KEEPING) & (ratios.scale < UNKNOWN_SCALE)
    if not len(resampled) or not seen.any():
        return torch.ones_like(errors)
    values = torch.where(masks, resampled, torch.nan)
    middle = values.nanmedian(0).values
    spread = NORMAL_MAD * (values - middle).abs().nanmedian(0).values
    relative = (spread / errors)[seen].clamp_min(1e-3).log()
    edges, degrees = len(relative), float(count[seen].double().mean()) - 1
    noise = 1 / (2 * MAD_EFFICIENCY * degrees * edges)
    common = max(1.0, math.exp(float(relative.median()) * USUAL_SPREAD**2 / (USUAL_SPREAD**2 + noise)))
    own = torch.where(count >= FEWEST_KEEPING, spread / errors, 1.0)
    return torch.where(own > MUCH_WIDER * common, own, common)


def _notes(data: LocalModel, nodes: list[_Node], learned: EdgeMask, seldom: EdgeMask, replicas: int) -> list[str]:
    columns = [data.num_moments(node) for node, one in enumerate(nodes) if one.lacking and learned[node].any()]
    many = sum(count > MOST_COLUMNS for count in columns)
    few = len(columns) - many
    notes = [FEW_ROWS.format(rows=len(data.targets), nodes=few)] if few else []
    if many:
        notes.append(MANY_COLUMNS.format(nodes=many, columns=max(columns), most=MOST_COLUMNS))
    if seldom.any():
        notes.append(SELDOM_KEPT.format(fewest=FEWEST_KEEPING, replicas=replicas, edges=int(seldom.sum())))
    return notes
