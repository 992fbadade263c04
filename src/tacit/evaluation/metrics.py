"""The numbers of a record, by the names that scripts rely on."""

import torch
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.errors import require
from tacit.evaluation.point import point_prediction
from tacit.losses import EnergyScore, Loss
from tacit.shapes import EdgeProbs, Observed, PointPrediction
from tacit.training import LatentGraphModel

# Graphs per pair for the mean and the median: S graphs raise the MSE by 1 / S of itself, here 0.1% (6% with 16).
POINT_GRAPHS = 1000
# Graphs per pair for losses that compare all pairs of graphs: they have no bias at any number.
PAIRWISE_GRAPHS = 32
# Pairs at once: 128 x 1,000 x nodes numbers.
CHUNK = 128


def edge_prob_errors(edge_probs: EdgeProbs, true_edge_probs: EdgeProbs) -> dict[str, float]:
    """Return mean and largest absolute error over all N x N entries.

    >>> edge_prob_errors(torch.tensor([[0.5, 0.0], [0.0, 0.0]]), torch.zeros(2, 2))
    {'edge_prob_mae': 0.125, 'edge_prob_max_error': 0.5}
    """
    require(
        edge_probs.shape == true_edge_probs.shape,
        f"true_edge_probs needs the shape of edge_probs, {tuple(edge_probs.shape)}, got {tuple(true_edge_probs.shape)};"
        " pass the truth for the same nodes",
    )
    error = (edge_probs.detach().double() - true_edge_probs.to(edge_probs.device).double()).abs()
    return {"edge_prob_mae": error.mean().item(), "edge_prob_max_error": error.max().item()}


@torch.no_grad()
def predictive_metrics(
    model: LatentGraphModel,
    pairs: Pairs,
    loss: Loss,
    *,
    generator: Generator,
    point_graphs: int = POINT_GRAPHS,
) -> dict[str, float]:
    """Return ``point_mae``, ``point_mse``, ``energy_score`` (joint scope) and ``distribution_loss`` (``loss``).

    The pairs of a chunk share their graphs; each chunk has graphs of its own. Missing targets are left out. Called with
    the true graph and predictor it gives the values that no model can beat, up to the noise of the data.
    """
    energy = EnergyScore(scope="joint", baseline="none")
    totals = dict.fromkeys(("point_mae", "point_mse", "energy_score", "distribution_loss"), 0.0)
    count = 0.0
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        targets, observed = chunk.targets, chunk.observed
        samples = model.sample(chunk.inputs, point_graphs, generator=generator)
        few = samples[:, :PAIRWISE_GRAPHS]
        values = {
            "point_mae": _mean((point_prediction(samples, "median") - targets).abs(), observed),
            "point_mse": _mean((point_prediction(samples, "mean") - targets).square(), observed),
            "energy_score": energy(few, targets, observed).value.mean(),
            "distribution_loss": loss(few, targets, observed).value.mean(),
        }
        weight = len(chunk) if observed is None else observed.sum().item()
        for name, value in values.items():
            totals[name] += value.item() * weight
        count += weight
    return {name: total / count for name, total in totals.items()}


def _mean(values: PointPrediction, observed: Observed | None) -> Tensor:
    return values.mean() if observed is None else (values * observed).sum() / observed.sum().clamp_min(1)
