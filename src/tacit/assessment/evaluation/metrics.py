"""The metrics of a record, by name."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.assessment.evaluation.forecasts import discrete_nodes, mean_prediction, point_prediction
from tacit.data import Pairs
from tacit.errors import require
from tacit.graph import Context
from tacit.losses import EnergyScore, Loss, LossTerms
from tacit.predictors import num_hops_of
from tacit.shapes import EdgeMask, EdgeProbs, Observed, PointPrediction
from tacit.training import LatentGraphModel

# Graphs per pair for the mean and the median: S graphs raise the MSE by 1 / S of itself, here 0.1% (6% with 16).
POINT_GRAPHS = 1000
# Graphs per pair for losses that compare all pairs of graphs: they are unbiased for any number.
PAIRWISE_GRAPHS = 32
# Pairs at once: 128 x 1,000 x nodes numbers.
CHUNK = 128


def edge_prob_errors(
    edge_probs: EdgeProbs, true_edge_probs: EdgeProbs, identifiable: EdgeMask | None = None
) -> dict[str, float]:
    """Return mean and largest absolute error over all N x N entries, and the mean over the learned entries.

    >>> edge_prob_errors(torch.tensor([[0.5, 0.0], [0.0, 0.0]]), torch.zeros(2, 2))
    {'edge_prob_mae': 0.125, 'edge_prob_max_error': 0.5}
    >>> edge_prob_errors(torch.eye(2) / 2, torch.zeros(2, 2), ~torch.eye(2).bool())["edge_prob_mae_identifiable"]
    0.0
    """
    require(
        edge_probs.shape == true_edge_probs.shape,
        f"true_edge_probs must have the shape of edge_probs, {tuple(edge_probs.shape)}, got "
        f"{tuple(true_edge_probs.shape)}; pass the truth for the same nodes",
    )
    error = (edge_probs.detach().double() - true_edge_probs.to(edge_probs.device).double()).abs()
    errors = {"edge_prob_mae": error.mean().item(), "edge_prob_max_error": error.max().item()}
    if identifiable is not None and identifiable.any():
        errors["edge_prob_mae_identifiable"] = error[identifiable].mean().item()
    return errors


def oracle_edge_prob_mae(true_edge_probs: Float[Tensor, "..."], num_pairs: int) -> float:
    r"""Return the expected error of an oracle that observes every hidden graph and counts each edge.

    $$\operatorname{mean}_{ij} E\,|B_{ij} / n - \theta_{ij}|, \qquad B_{ij} \sim \mathrm{Binomial}(n, \theta_{ij})$$

    De Moivre: $E\,|B - n\theta| = 2 m (1 - \theta)\, P(B = m)$ with $m = \lfloor n\theta \rfloor + 1$.

    >>> oracle_edge_prob_mae(torch.tensor([[0.5]]), 1)
    0.5
    """
    from scipy.stats import binom  # a local import, because it takes a second

    probs = true_edge_probs.detach().cpu().double().flatten().numpy()
    most = (num_pairs * probs).astype(int) + 1
    return float((2 * most * (1 - probs) * binom.pmf(most, num_pairs, probs)).mean()) / num_pairs


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

    The pairs of a chunk share their graphs; different chunks have different graphs. Missing targets are excluded. Noise
    is sampled, except in the mean and for a ``loss`` that integrates it. For the true graph and predictor, the values
    are optimal up to sampling error if ``loss`` is proper.
    """
    energy = EnergyScore(scope="joint", baseline="none")
    sums: dict[str, list[float]] = {}
    discrete = discrete_nodes(model.observation, pairs.num_nodes)
    size = min(CHUNK, model.graph.layout.most_pairs(point_graphs, local=num_hops_of(model.predictor) == 1))
    for start in range(0, len(pairs), size):
        chunk = pairs[start : start + size]
        outputs = model.outputs(chunk.inputs, point_graphs, generator=generator, context=Context.of(chunk))
        samples = model.observation.draw(outputs, generator=generator)
        few = samples[:, :PAIRWISE_GRAPHS]
        taken = outputs[:, :PAIRWISE_GRAPHS] if loss.integrates else few
        parts = {
            "point_mae": _point_sums(
                (point_prediction(samples, "median", discrete) - chunk.targets).abs(), chunk.observed
            ),
            "point_mse": _point_sums((mean_prediction(model, outputs) - chunk.targets).square(), chunk.observed),
            "energy_score": _loss_sums(energy(few, chunk.targets, chunk.observed)),
            "distribution_loss": _loss_sums(loss(taken, chunk.targets, chunk.observed)),
        }
        for name, (total, weight) in parts.items():
            so_far = sums.setdefault(name, [0.0, 0.0])
            so_far[0] += float(total)
            so_far[1] += float(weight)
    return {name: total / weight if weight else float("nan") for name, (total, weight) in sums.items()}


def _point_sums(errors: PointPrediction, observed: Observed | None) -> tuple[Tensor, Tensor]:
    """Return the sum over the observed values, and their number."""
    seen = torch.ones_like(errors) if observed is None else observed
    return (errors * seen).sum(), seen.sum()


def _loss_sums(terms: LossTerms) -> tuple[Tensor, Tensor]:
    weight = torch.ones_like(terms.value) if terms.weight is None else terms.weight
    return terms.value.sum(), weight.sum()
