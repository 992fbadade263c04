r"""Regimes of a linear filter by the exact likelihood, without training.

Each block is fitted by itself (:mod:`tacit.assessment.regimes.block_likelihood`): some steps of EM from several starts,
then a search over all parameters, with weights and noise of its nodes, from the best of them. $K + 1$ regimes are
preferred to $K$ if the log likelihood of the validation pairs is clearly larger.

Standard errors come from the scores of the training pairs (:class:`~tacit.local.Inference`) in the scale of
probabilities, with the sum of their squares as the curvature; those of marginals are by the delta method. Regimes of a
series often last, so that pairs depend on their neighbours. Where the data do not determine the regimes, errors are
large, and the intervals reach from 0 to 1. So it is for two edges: two regimes of them have five parameters, and their
joint distribution has three.
"""

import copy
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.regimes.block_likelihood import BlockFit, BlockLikelihood, BlockNode
from tacit.assessment.regimes.fitted import (
    Estimate,
    RegimeFit,
    RegimeStep,
    choose_number,
    constant_regime,
    without_errors,
)
from tacit.assessment.uncertainty import MOST_GATES
from tacit.data import Pairs
from tacit.errors import require, require_int
from tacit.graph import BernoulliGraph, Blocks, MixtureGraph
from tacit.local import Dependence, Inference
from tacit.randomness import generator_for
from tacit.training import (
    Difference,
    LatentGraphModel,
    NodeRegressions,
    fitted_by_likelihood,
    has_likelihood,
    paired_difference,
)

STARTS = 8
APART, SPREAD = 1.5, 1.0  # regimes start this far from the constant fit in logits, with normal noise
# Pairs times states of the gates, of one block and of all: a block of the first size takes about half a minute.
MOST_NUMBERS, MOST_IN_ALL = 2**20, 2**23
LEAST_LOG = -50.0  # log weight of a regime that does not exist


def has_regime_likelihood(model: LatentGraphModel, train: Pairs, blocks: Blocks = "rows") -> bool:
    """Return whether the likelihood of regimes can be computed: a linear filter with few random gates per node."""
    if not has_likelihood(model) or not isinstance(model.graph, BernoulliGraph):
        return False
    probs = model.graph.edge_probs.detach()
    gates = (model.graph.learned & (probs > 0) & (probs < 1)).sum(1)
    numbers = len(train) * 2**gates
    of_block, in_all = numbers.max() if blocks == "rows" else numbers.sum(), numbers.sum()
    return int(gates.max()) <= MOST_GATES and int(of_block) <= MOST_NUMBERS and int(in_all) <= MOST_IN_ALL


class _Fitted(NamedTuple):
    """A block with its maximum, as a vector and as numbers."""

    likelihood: BlockLikelihood
    numbers: Float[Tensor, " number"]
    fit: BlockFit


def regimes_by_likelihood(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    *,
    num_regimes: int | Literal["auto"] = "auto",
    blocks: Blocks = "rows",
    seed: int = 0,
    block: int = 1,
) -> RegimeFit:
    """Fit regimes of the edges that act at times; the model, a constant fit, is not changed.

    ``num_regimes``  a number, or "auto": chosen by the validation pairs, at most ``MOST_REGIMES``
    ``block``        number of neighbouring pairs that may be correlated, above 1 for a series
    """
    require(
        has_regime_likelihood(model, train, blocks),
        "regimes_by_likelihood requires a linear filter with noise that has a likelihood and at most "
        f"{MOST_GATES} edges into a node that act at times, and not too many pairs; use regimes_by_training",
    )
    if num_regimes != "auto":
        require_int("num_regimes", num_regimes)
    data, held_out = NodeRegressions.of(model, train), NodeRegressions.of(model, validation)
    fits = [data.start(model, node) for node in range(len(data.present))]
    seen = (data.weights > 0).any(0).tolist()
    nodes = [BlockNode.of(data, node, fit) for node, fit in enumerate(fits) if fit.gated.any() and seen[node]]
    groups = [[node] for node in nodes] if blocks == "rows" else [nodes]
    groups = [group for group in groups if sum(node.num_gates for node in group) > 1]
    if num_regimes == 1 or not groups:
        return constant_regime(model, blocks, ())

    def fitted(count: int) -> list[_Fitted]:
        return [_fit(group, count, seed) for group in groups]

    def difference(one: list[_Fitted], other: list[_Fitted]) -> Difference:
        first, second = (-_values(found, held_out) for found in (one, other))
        return paired_difference(first, second, torch.ones(len(first)), Dependence(block, validation.series))

    found, steps = choose_number(fitted, difference) if num_regimes == "auto" else (fitted(num_regimes), ())
    if found[0].likelihood.num_regimes == 1:
        return constant_regime(model, blocks, steps)
    return _result(model, data, blocks, found, steps, Dependence.of_rows(len(train), block, train.series))


def _fit(nodes: list[BlockNode], num_regimes: int, seed: int) -> _Fitted:
    likelihood = BlockLikelihood(nodes, num_regimes)
    constant = torch.cat([node.fit.logits[node.fit.gated] for node in nodes])
    apart = APART * torch.linspace(1, -1, num_regimes).double()[:, None] if num_regimes > 1 else torch.zeros(1, 1)
    generator = generator_for(seed, "regimes")
    noises = torch.randn(STARTS, num_regimes, len(constant), generator=generator).double() * SPREAD
    noises[0] = 0
    starts = [likelihood.by_em(constant + apart + noise) for noise in noises[: STARTS if num_regimes > 1 else 1]]
    logits, weights, _ = max(starts, key=lambda start: start[2])
    numbers = likelihood.fit(likelihood.start(logits, weights))
    return _Fitted(likelihood, numbers, likelihood.unpacked(numbers))


def _values(found: list[_Fitted], data: NodeRegressions) -> Float[Tensor, " pair"]:
    """Return the log likelihood of each pair of other data, over all blocks."""
    total = torch.zeros(len(data.targets)).double()
    for one in found:
        parts = torch.split(one.fit.logits, one.likelihood.num_gates, 1)
        every = zip(one.likelihood.nodes, one.fit.fits, parts, strict=True)
        seen = [each for each in every if (data.weights[:, each[0].number] > 0).any()]
        if seen:
            nodes = [BlockNode.of(data, node.number, fit) for node, fit, _ in seen]
            likelihood = BlockLikelihood(nodes, one.likelihood.num_regimes)
            logits = torch.cat([logits for *_, logits in seen], 1)
            total += likelihood.scores(likelihood.start(logits, one.fit.weights))[0]
    return total


def _result(
    model: LatentGraphModel,
    data: NodeRegressions,
    blocks: Blocks,
    found: list[_Fitted],
    steps: tuple[RegimeStep, ...],
    dependence: Dependence,
) -> RegimeFit:
    """Return the model with these regimes, and their probabilities, weights and marginals with standard errors."""
    assert isinstance(model.graph, BernoulliGraph)
    count = found[0].likelihood.num_regimes
    constant = BernoulliGraph(model.graph.edge_probs.detach(), model.graph.fixed)
    graph = MixtureGraph(constant, count, blocks)
    every, fitted = [data.start(model, node) for node in range(len(data.present))], [False] * len(data.present)
    with torch.no_grad():
        graph.edge_logits.copy_(constant.raw.expand_as(graph.edge_logits))
        graph.weight_logits[:, 1:] = LEAST_LOG  # a block without two edges that act at times has one regime
        for one in found:
            graph.weight_logits[_block(one, blocks)] = one.fit.weights.log().to(graph.weight_logits)
            parts = torch.split(one.fit.logits, one.likelihood.num_gates, 1)
            for node, fit, logits in zip(one.likelihood.nodes, one.fit.fits, parts, strict=True):
                every[node.number], fitted[node.number] = fit, True
                graph.edge_logits[:, node.number, data.sources(node.number)[fit.gated]] = logits.to(graph.edge_logits)
    probs, weights, marginals = (
        without_errors(values.detach().cpu()) for values in (graph.regime_probs, graph.regime_weights, graph.edge_probs)
    )
    for one in found:
        of_block, number = _estimates(one, dependence), _block(one, blocks)
        row = torch.cat([torch.full((node.num_gates,), node.number) for node in one.likelihood.nodes])
        slot = torch.cat([data.sources(node.number)[node.fit.gated] for node in one.likelihood.nodes])
        for place in range(1, 4):  # error, low and high
            of_probs, of_weights, of_marginals = (estimate[place] for estimate in of_block)
            probs[place][:, row, slot] = of_probs.to(probs.value)
            weights[place][number] = of_weights.to(weights.value)
            marginals[place][row, slot] = of_marginals.to(marginals.value)
    parameters = fitted_by_likelihood(model, data, every, model.graph.edge_probs.detach(), torch.tensor(fitted))
    new = copy.deepcopy(model)
    kept = {name: value for name, value in parameters.items() if not name.startswith("graph.")}
    new.load_state_dict(kept, strict=False)
    new.graph = graph.to(model.graph.raw.device)
    return RegimeFit(new, count, blocks, probs, weights, marginals, steps)


def _block(found: _Fitted, blocks: Blocks) -> int:
    return 0 if blocks == "all" else found.likelihood.nodes[0].number


def _estimates(found: _Fitted, dependence: Dependence) -> tuple[Estimate, Estimate, Estimate]:
    """Return probabilities (regime, gate), weights and marginals of a block, with standard errors."""
    count, gates = found.fit.logits.shape
    scores = found.likelihood.natural_scores(found.numbers)
    inference = Inference(scores.mT @ scores + found.likelihood.precision, scores, dependence)
    first, probs, weights = found.likelihood.num_own, torch.sigmoid(found.fit.logits), found.fit.weights
    each = torch.eye(count * gates + count - 1).double()  # slopes of probabilities and weights by the parameters
    last = -each[count * gates :].sum(0, keepdim=True)  # the weights sum to 1
    slopes = torch.zeros(gates, len(each)).double()  # of the marginals
    for gate in range(gates):
        slopes[gate, gate : count * gates : gates] = weights
        slopes[gate, count * gates :] = probs[:-1, gate] - probs[-1, gate]

    def estimate(values: Tensor, slopes: Float[Tensor, "value number"]) -> Estimate:
        both = [((slopes @ one[first:, first:]) * slopes).sum(1) for one in (inference.inverse, inference.covariance)]
        errors = torch.maximum(*both).clamp_min(0).sqrt().view_as(values)
        reach = inference.quantile * errors
        return Estimate(values, errors, (values - reach).clamp_min(0), (values + reach).clamp_max(1)).bounded()

    rest = torch.cat([each[count * gates :], last])
    return estimate(probs, each[: count * gates]), estimate(weights, rest), estimate(weights @ probs, slopes)
