"""Refinement of trained regimes, by the posterior of the regimes of each training pair.

Of the whole graph, each node is trained given the regime inferred from the other nodes. Of the rows, the weights of the
regimes are replaced by the mean of their posterior probabilities.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.regimes.given import GivenRegimes, LogWeights, with_log_weights
from tacit.assessment.regimes.posterior import NUM_GRAPHS, node_logs, regime_posterior
from tacit.assessment.uncertainty import loss_difference
from tacit.data import Pairs
from tacit.graph import BernoulliGraph, MixtureGraph
from tacit.losses import Loss
from tacit.randomness import generator_for
from tacit.training import FitSettings, LatentGraphModel, Progress, fit, with_graph

ROUNDS = 2
LEAST_LOG = -50.0  # lower bound of a log weight
# Outputs for the posterior of all training pairs (2**28 take 10 s of one core), and its fewest graphs of each regime:
# with 64 graphs the error of the weights is .0034 instead of .0031.
MOST_OUTPUTS, FEWEST_GRAPHS = 2**28, 32


class Fitted(NamedTuple):
    """A fit with regimes, and the model that its replicas train.

    ``model``      the model with regimes
    ``trained``    the model trained last, on ``train`` and ``validation``: the model itself, or one with given regimes
    ``posterior``  (pair, block, regime): posterior of the regimes of the training pairs, if they are given
    """

    model: LatentGraphModel
    trained: LatentGraphModel
    train: Pairs
    validation: Pairs
    posterior: Float[Tensor, "pair block regime"] | None = None


def with_posterior_weights(
    model: LatentGraphModel, train: Pairs, validation: Pairs, seed: int, most_errors: float
) -> LatentGraphModel:
    r"""Return the model with $\pi_k = \mathrm{mean}_n\, P(k \mid x_n, y_n)$, a step of EM.

    Training leaves noise in the weights. Measured on rows of 12 nodes that act together (28,000 pairs, 3 data sets, psi
    known and learned): the root mean square error of the weights is .0046 after training, .0031 after this step, and
    .0029 if the regimes are observed. The step is not taken if the validation loss rises by more than ``most_errors``
    standard errors, or if the data are so large that the posterior takes long.
    """
    moved, graph = copy.deepcopy(model), model.graph
    assert isinstance(graph, MixtureGraph)
    num_graphs = min(NUM_GRAPHS, MOST_OUTPUTS // (len(train) * graph.num_nodes * graph.num_regimes))
    if num_graphs < FEWEST_GRAPHS:
        return moved
    generator = generator_for(seed, "posterior", train.inputs.device)
    posterior = regime_posterior(model, train, generator=generator, num_graphs=num_graphs)
    weights = {"graph.weight_logits": _log_mean(posterior)}
    rise, error = loss_difference(model, validation, weights, {})
    if rise <= most_errors * error:
        moved.load_state_dict(weights, strict=False)
    return moved


def can_sharpen(model: LatentGraphModel, loss: Loss) -> bool:
    """Return whether each node has a separate loss that depends only on its own row."""
    return loss.scope == "node" and not model.graph.symmetric


def sharpened(
    model: LatentGraphModel,
    loss: Loss,
    num_graphs: int,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings,
    seed: int,
    compile: bool,
    on_progress: Callable[[Progress], None] | None,
) -> Fitted:
    """Return the fit after some rounds: infer the regimes from the other nodes, then train each node given them.

    ``loss``  a loss of node scope, with ``num_graphs`` graphs for each pair
    """
    current, trained, given, posterior = model, model, (train, validation), None
    for number in range(ROUNDS):
        mixture = current.graph
        assert isinstance(mixture, MixtureGraph)
        logs, held_out = _logs(current, train, seed), _logs(current, validation, seed)
        given = (
            with_log_weights(train, _of_others(logs, mixture)),
            with_log_weights(validation, _of_others(held_out, mixture)),
        )
        start = BernoulliGraph(mixture.edge_probs.detach(), mixture.fixed, candidates=mixture.candidates)
        graph = GivenRegimes(start, mixture.num_regimes).to(mixture.raw)
        graph.edge_logits.data.copy_(mixture.edge_logits.detach())
        result = fit(
            with_graph(current, graph, loss, num_graphs),
            *given,
            settings,
            seeds=(seed + number,),
            compile=compile,
            start_at_model=True,
            on_progress=on_progress,
        )
        if result.interrupted:
            raise KeyboardInterrupt
        trained = result.model
        posterior = (logs.sum(1, keepdim=True) + mixture.weight_logits.detach().log_softmax(-1)).softmax(-1)
        current = _with_regimes(current, trained, posterior)
    return Fitted(current, trained, *given, posterior)


def _logs(model: LatentGraphModel, pairs: Pairs, seed: int) -> LogWeights:
    return node_logs(model, pairs, generator=generator_for(seed, "posterior", pairs.inputs.device))


def _of_others(logs: LogWeights, mixture: MixtureGraph) -> LogWeights:
    """Return the log-probability of each regime for each node, from the weights and all other nodes."""
    others = logs.sum(1, keepdim=True) - logs + mixture.weight_logits.detach().log_softmax(-1)
    return others.log_softmax(-1).clamp_min(LEAST_LOG)


@torch.no_grad()
def _with_regimes(
    model: LatentGraphModel, trained: LatentGraphModel, posterior: Float[Tensor, "pair block regime"]
) -> LatentGraphModel:
    """Return the model with regimes, predictor and noise as trained, and the mean posterior as the weights."""
    moved = copy.deepcopy(model)
    assert isinstance(moved.graph, MixtureGraph)
    assert isinstance(trained.graph, GivenRegimes)
    moved.graph.edge_logits.copy_(trained.graph.edge_logits)
    moved.graph.weight_logits.copy_(_log_mean(posterior))
    moved.predictor.load_state_dict(trained.predictor.state_dict())
    moved.observation.load_state_dict(trained.observation.state_dict())
    return moved


def _log_mean(posterior: Float[Tensor, "pair block regime"]) -> Float[Tensor, "block regime"]:
    return posterior.mean(0).clamp_min(torch.finfo(posterior.dtype).tiny).log()
