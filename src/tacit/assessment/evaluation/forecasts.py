r"""Scores of forecasts in the units of the data, over all nodes and per node.

$$\mathrm{CRPS}(P, y) = E|Y - y| - \tfrac12 E|Y - Y'|$$

for each single number; for a deterministic model it is the absolute error. If the observation model has closed forms,
the noise is integrated and only graphs are sampled. The point prediction $T[P_{y|x}]$ is the optimal single number of a
distribution for a given error. Gaussian forecasts, such as those of a regression, have the CRPS in closed form.

Observation models have further scores. With $P$ the mean over graphs,

$$\mathrm{log\ score} = \log P(y), \qquad \mathrm{Brier} = (P(y = 1) - y)^2, \qquad
  \mathrm{RPS} = \sum_{k < K} \big(P(y \le c_k) - 1[y \le c_k]\big)^2$$

A higher log score is better; for the others lower is better. The variance of a mean over $S$ graphs is subtracted from
its square, so that the last two scores are unbiased for any number of graphs; the bias of the log score is $O(1 / S)$.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from tacit.assessment.evaluation.draws import pairs_at_once
from tacit.data import Pairs
from tacit.errors import InputError, require
from tacit.graph import Context
from tacit.observation import MixedObservation, NoNoise, ObservationModel, OrderedCategories, Support
from tacit.shapes import Inputs, PointPrediction, Samples, TargetParams, Targets
from tacit.training import LatentGraphModel

PointName = Literal["mean", "median"]
Discrete = Bool[Tensor, " node"]
ROUNDING = 1e-9
Sigmas = Float[Tensor, "node channel"]
MATCHING = 1e-3  # tolerance when a scaled target is matched to a category
NUM_GRAPHS = 100  # for mean and median; S graphs raise the MSE by 1 / S of the graphs' variance
NOISE_DRAWS = 5  # per graph, so that the median is that of five hundred numbers
CRPS_GRAPHS = 48  # compared with each other; unbiased for any number
LEVELS = (0.5, 0.8, 0.95)


def discrete_nodes(observation: ObservationModel, num_nodes: int) -> Discrete:
    """Return which nodes have discrete targets, such as counts.

    >>> from tacit.observation import NoNoise, PoissonCounts
    >>> discrete_nodes(PoissonCounts(2), 2).tolist(), discrete_nodes(NoNoise(), 2).tolist()
    ([True, True], [False, False])
    """
    return ~(_nodes_with(observation, "real", num_nodes) | _nodes_with(observation, "positive", num_nodes))


def point_prediction(samples: Samples, kind: PointName | float, discrete: Discrete | None = None) -> PointPrediction:
    """Return the mean over graphs (best for squared error), the median (best for absolute error), or a quantile.

    A quantile is specified by its level, a number between 0 and 1 (best for the pinball error at that level). It is
    interpolated between samples: level 0 is the lowest and 1 the highest sample; the median is level 0.5. For
    ``discrete`` nodes a quantile is a sample, the first one whose cumulative share reaches the level.

    >>> samples = torch.tensor([0., 1., 5., 6.]).view(1, 4, 1, 1)
    >>> [point_prediction(samples, kind).item() for kind in ("mean", "median", 0.5, 1.0)]
    [3.0, 3.0, 3.0, 6.0]
    >>> point_prediction(samples, "median", torch.tensor([True])).item()
    1.0
    """
    if kind == "mean":
        return samples.mean(1)
    level: object = 0.5 if kind == "median" else kind
    if not isinstance(level, int | float) or isinstance(level, bool) or not 0 <= level <= 1:
        raise InputError(
            f"kind must be 'mean', 'median' or the level of a quantile in [0, 1], got {kind!r}; use 'mean' for "
            "squared, 'median' for absolute error"
        )
    if discrete is not None and discrete.any():
        rank = max(1, math.ceil(level * samples.shape[1] - ROUNDING))
        sampled = samples.movedim(1, -1).kthvalue(rank).values
        if discrete.all():
            return torch.where(samples.isnan().any(1), torch.nan, sampled)
        return torch.where(discrete[:, None].to(samples.device), sampled, point_prediction(samples, level))
    place = level * (samples.shape[1] - 1)
    lower, share = math.floor(place), place - math.floor(place)
    last_axis = samples.movedim(1, -1)
    below = last_axis.kthvalue(lower + 1).values
    quantile = below
    if share:
        above = _next(last_axis, below, lower + 1)
        quantile = torch.where(above == below, below, below + share * (above - below))  # avoids inf - inf
    return torch.where(samples.isnan().any(1), torch.nan, quantile)  # an invalid prediction stays NaN


def _next(values: Float[Tensor, "*any sample"], value: Float[Tensor, "*any"], rank: int) -> Float[Tensor, "*any"]:
    """Return the value after the ``rank`` smallest, which end with ``value``; a second selection is 10x slower."""
    up_to = values <= value[..., None]
    return torch.where(up_to.sum(-1) > rank, value, values.masked_fill(up_to, math.inf).amin(-1))


def mean_prediction(model: LatentGraphModel, described: TargetParams) -> PointPrediction:
    """Return the mean over graphs of the conditional means, so that noise is not sampled."""
    return point_prediction(model.observation.mean(described), "mean")


def persistence(inputs: Inputs, *, num_features: int = 1, out_channels: int = 1, known: int = 0) -> PointPrediction:
    """Return the newest value of each target variable, the persistence forecast; ``known`` columns follow the window.

    >>> persistence(torch.tensor([[[1.0, 0.0, 2.0, 1.0]]]), num_features=2).item()  # lags (1, flag 0), (2, flag 1)
    2.0
    """
    columns = inputs.shape[-1] - known
    require(
        num_features >= 1 and columns % num_features == 0 and 1 <= out_channels <= num_features,
        f"num_features must divide the {columns} columns of inputs and be at least out_channels={out_channels}, "
        f"got {num_features}; pass the number of features at each lag",
    )
    return inputs[..., columns - num_features :][..., :out_channels]


def gaussian_crps(means: PointPrediction, sigmas: Sigmas, targets: PointPrediction) -> PointPrediction:
    r"""Return the CRPS of $N(\mu, \sigma^2)$ for each target, in closed form.

    $\sigma \big( z (2 \Phi(z) - 1) + 2 \phi(z) - 1 / \sqrt{\pi} \big)$ with $z = (y - \mu) / \sigma$; at $\sigma = 0$
    it is the absolute error.

    >>> one = torch.ones(1, 1, 1)
    >>> round(gaussian_crps(0 * one, one[0], 0 * one).item(), 6), gaussian_crps(0 * one, 0 * one[0], 2 * one).item()
    (0.233695, 2.0)
    """
    error = targets - means
    z = error / torch.where(sigmas > 0, sigmas, 1.0)
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    inner = z * torch.erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi)
    return torch.where(sigmas > 0, sigmas * inner, error.abs())


def residual_sigmas(means: PointPrediction, pairs: Pairs) -> Sigmas:
    """Return the root mean square error of each target over the pairs in which it was observed."""
    seen = pairs.seen
    counts = seen.sum(0)
    require(
        bool((counts > 0).all()),
        f"pairs must have at least one observed target of every node, got none of node {int(counts.amin(1).argmin())}; "
        "pass more pairs",
    )
    return ((means - pairs.targets).square() * seen).sum(0).div(counts).sqrt()


def gaussian_coverage(means: PointPrediction, sigmas: Sigmas, pairs: Pairs, level: float) -> float:
    r"""Return the share of observed targets with $|y - \mu| \le \sigma\, \Phi^{-1}((1 + l) / 2)$, inside the interval.

    >>> pairs = Pairs(torch.zeros(4, 1, 1), torch.tensor([0.0, 1.5, -1.9, 2.1]).view(4, 1, 1))
    >>> gaussian_coverage(torch.zeros(4, 1, 1), torch.ones(1, 1), pairs, 0.95)
    0.75
    """
    seen = pairs.seen
    reach = sigmas * torch.special.ndtri(sigmas.new_tensor((1 + level) / 2))
    inside = ((pairs.targets - means).abs() <= reach).to(seen.dtype)
    return float((inside * seen).sum() / seen.sum())


def gaussian_scores(means: PointPrediction, sigmas: Sigmas, pairs: Pairs) -> dict[str, float]:
    """Return ``point_mae``, ``point_mse`` and ``crps``, means over all observed targets."""
    seen = pairs.seen
    error = means - pairs.targets
    values = {
        "point_mae": error.abs(),
        "point_mse": error.square(),
        "crps": gaussian_crps(means, sigmas, pairs.targets),
    }
    return {name: ((value * seen).sum() / seen.sum()).item() for name, value in values.items()}


def class_scores(
    observation: ObservationModel, described: TargetParams, targets: Targets, scale: Float[Tensor, "*pair node channel"]
) -> dict[str, tuple[PointPrediction, Discrete]]:
    """Return each applicable score for every target, and the nodes that it applies to.

    ``scale``  the size of a scaled unit; densities are in the units of the data

    >>> from tacit.observation import PoissonCounts
    >>> means, none = torch.full((1, 8, 2, 1), 1.5), torch.zeros(1, 2, 1)
    >>> found = class_scores(PoissonCounts(2), means, none, torch.ones(2, 1))
    >>> {name: round(values[0, 0, 0].item(), 4) for name, (values, _) in found.items()}
    {'log_score': -1.5}
    """
    nodes, found = targets.shape[1], dict[str, tuple[PointPrediction, Discrete]]()
    try:
        logs = observation.log_prob(described, targets)
    except InputError:  # the model has no density
        pass
    else:
        masses = discrete_nodes(observation, nodes).to(scale.device)[:, None]
        mean = logs.logsumexp(1) - math.log(logs.shape[1])
        found["log_score"] = mean - torch.where(masses, 0.0, scale.log()), torch.ones(nodes, dtype=torch.bool)
    yes_no = _nodes_with(observation, "two values", nodes)
    if yes_no.any():
        of_graphs = scale[:, None] if scale.ndim == 3 else scale  # of pairs, or of nodes
        errors = (observation.mean(described) - targets[:, None]) * of_graphs
        found["brier_score"] = _square_of_mean(errors), yes_no
    categories = _scaled_categories(observation, targets)
    if categories is not None:
        steps = []
        for one in categories[:-1]:
            up_to = observation.cdf(described, one.expand_as(targets))[1]
            steps.append(_square_of_mean(up_to - (targets <= one + MATCHING).to(up_to)[:, None]))
        found["ranked_probability_score"] = torch.stack(steps).sum(0), _nodes_with(observation, "categories", nodes)
    return found


def _square_of_mean(errors: Float[Tensor, "batch graph node channel"]) -> PointPrediction:
    """Return the square of the mean over graphs minus the variance of that mean."""
    graphs = errors.shape[1]
    noise = errors.var(1) / graphs if graphs > 1 else torch.zeros_like(errors[:, 0])
    return errors.mean(1).square() - noise


def _nodes_with(observation: ObservationModel, support: Support, num_nodes: int) -> Discrete:
    supports = observation.supports or (observation.support,) * num_nodes
    return torch.tensor([one == support for one in supports])


def _scaled_categories(
    observation: ObservationModel, targets: Targets
) -> Float[Tensor, "category node channel"] | None:
    """Return the values of ordered categories as scaled targets; None if there are no such nodes."""
    parts = [(observation, list(range(targets.shape[1])))]
    if isinstance(observation, MixedObservation):
        parts = list(zip(observation.models, observation.nodes, strict=True))
    for model, nodes in parts:
        if isinstance(model, OrderedCategories):
            found = targets.new_zeros(len(model.categories), *targets.shape[1:])
            found[:, nodes] = model.to_targets(model.categories[:, None, None]).to(targets)
            return found
    return None


@dataclass(frozen=True)
class ForecastScores:
    """Mean scores over the observed targets; ``coverage`` is the share of values inside each central interval.

    ``by_node`` and ``by_series`` contain the same scores per node and per series, and ``scaled_crps``, the CRPS in the
    units of the pairs; NaN without observations. ``by_series`` is empty if pairs have no series.
    ``further`` are the scores of the observation model, by name.
    ``pair_crps`` is the CRPS of every number of every pair, in the units of the pairs, for paired comparisons.
    """

    point_mae: float
    point_mse: float
    crps: float
    by_node: dict[str, list[float]]
    by_series: dict[str, list[float]]
    coverage: dict[str, float]
    further: dict[str, float]
    pair_crps: PointPrediction = field(repr=False, compare=False)

    def numbers(self) -> dict[str, float]:
        """Return the scores by their names in a record."""
        return (
            {"point_mae": self.point_mae, "point_mse": self.point_mse, "crps": self.crps}
            | {f"coverage_{level}": share for level, share in self.coverage.items()}
            | self.further
        )


@torch.no_grad()
def forecast_scores(
    model: LatentGraphModel,
    pairs: Pairs,
    *,
    generator: Generator,
    spread: Float[Tensor, "*pair node channel"] | None = None,
    num_graphs: int = NUM_GRAPHS,
) -> ForecastScores:
    """Score the predictions of ``pairs``; ``spread`` is the size of a scaled unit in the units of the data.

    It is given per node, or per pair and node if the units of series differ.
    """
    sizes = torch.ones_like(pairs.targets[0]) if spread is None else spread.to(pairs.targets)
    sums: dict[str, Tensor] = {}  # (series, node)
    applies: dict[str, Tensor] = {}  # the nodes that a score of the observation model applies to
    pair_crps, discrete = [], discrete_nodes(model.observation, pairs.num_nodes)
    numbers = torch.zeros(len(pairs), dtype=torch.int64, device=sizes.device) if pairs.series is None else pairs.series
    shape = int(numbers.max()) + 1, pairs.num_nodes
    size = pairs_at_once(model, num_graphs)
    for start in range(0, len(pairs), size):
        chunk, scale = pairs[start : start + size], sizes[start : start + size] if sizes.ndim == 3 else sizes
        seen = chunk.seen
        outputs = model.outputs(chunk.inputs, num_graphs, generator=generator, context=Context.of(chunk))
        samples = model.observation.draw(outputs, generator=generator, draws=NOISE_DRAWS)
        observation, described = model.observation, outputs
        if not observation.closed_forms:
            observation, described = NoNoise(), samples[:, ::NOISE_DRAWS]  # one draw of each graph
        crps = _crps(observation, described[:, :CRPS_GRAPHS], chunk.targets)
        pair_crps.append(crps.cpu())
        errors = {
            "seen": torch.ones_like(seen),
            "point_mae": (point_prediction(samples, "median", discrete) - chunk.targets).abs() * scale,
            "point_mse": ((mean_prediction(model, outputs) - chunk.targets) * scale).square(),
            "crps": crps * scale,
            "scaled_crps": crps,
            **_covered(observation, described, chunk.targets),
        }
        own = class_scores(model.observation, outputs, chunk.targets, scale)
        errors |= {name: scores for name, (scores, _) in own.items()}
        applies |= {name: nodes for name, (_, nodes) in own.items()}
        for name, values in errors.items():
            total = sums.setdefault(name, torch.zeros(shape, dtype=torch.float64, device=sizes.device))
            total.index_add_(0, numbers[start : start + size], (values * seen).sum(2).double())
    count = sums.pop("seen")
    counts = {name: count * applies.get(name, torch.ones(shape[1])).to(count) for name in sums}  # 0 for other nodes
    sums = {name: torch.where(counts[name] > 0, total, 0.0) for name, total in sums.items()}
    overall = {name: float(total.sum() / counts[name].sum()) for name, total in sums.items()}
    by_node = {name: (total.sum(0) / counts[name].sum(0)).tolist() for name, total in sums.items()}
    by_series = {name: (total.sum(1) / counts[name].sum(1)).tolist() for name, total in sums.items()}
    return ForecastScores(
        overall["point_mae"],
        overall["point_mse"],
        overall["crps"],
        by_node,
        {} if pairs.series is None else by_series,
        {f"{level:g}": overall[f"coverage_{level:g}"] for level in LEVELS},
        {name: overall[name] for name in applies},
        torch.cat(pair_crps),
    )


def _crps(observation: ObservationModel, described: TargetParams, targets: Targets) -> PointPrediction:
    """Return the unbiased CRPS of each single number: a graph is not compared with itself."""
    graphs, pairs = described.shape[1], observation.pair_distance(described)
    others = pairs.sum((1, 2)) - pairs.diagonal(dim1=1, dim2=2).sum(-1)
    spread = others / max(1, graphs * (graphs - 1))
    return observation.expected_distance(described, targets).mean(1) - spread / 2


def _covered(observation: ObservationModel, described: TargetParams, targets: Targets) -> dict[str, PointPrediction]:
    r"""Return, for each level, 1 if the central interval contains the target, else 0.

    $y$ is inside the interval of level $l$ if $F(y) \ge (1 - l) / 2$ and $F(y^-) \le (1 + l) / 2$, with $F$ the
    distribution function over graphs, with the noise integrated.
    """
    below, up_to = (part.mean(1) for part in observation.cdf(described, targets))
    return {
        f"coverage_{level:g}": ((up_to >= (1 - level) / 2) & (below <= (1 + level) / 2)).to(targets.dtype)
        for level in LEVELS
    }
