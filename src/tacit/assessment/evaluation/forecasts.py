r"""Scores of forecasts in the units of the data, over all nodes and per node.

$$\mathrm{CRPS}(P, y) = E|Y - y| - \tfrac12 E|Y - Y'|$$

for each single number; for a deterministic model it is the absolute error. If the observation model has closed forms,
the noise is integrated and only graphs are sampled.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.assessment.evaluation.class_scores import class_scores
from tacit.assessment.evaluation.draws import pairs_at_once
from tacit.assessment.evaluation.point import discrete_nodes, mean_prediction, point_prediction
from tacit.data import Pairs
from tacit.graph import Context
from tacit.observation import NoNoise, ObservationModel
from tacit.shapes import PointPrediction, TargetParams, Targets
from tacit.training import LatentGraphModel

NUM_GRAPHS = 100  # for mean and median; S graphs raise the MSE by 1 / S of the graphs' variance
NOISE_DRAWS = 5  # per graph, so that the median is that of five hundred numbers
CRPS_GRAPHS = 48  # compared with each other; unbiased for any number
LEVELS = (0.5, 0.8, 0.95)


@dataclass(frozen=True)
class ForecastScores:
    """Mean scores over the observed targets; ``coverage`` is the share of values inside each central interval.

    ``by_node`` and ``by_series`` contain the same scores per node and per series, and ``scaled_crps``, the CRPS in the
    units of the pairs; NaN without observations. ``by_series`` is empty if pairs have no series.
    ``further`` are the scores of the observation model, by name (:mod:`tacit.assessment.evaluation.class_scores`).
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
        seen = torch.ones_like(chunk.targets) if chunk.observed is None else chunk.observed
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
