r"""Regimes of a linear filter by the exact likelihood, without training.

Each block is fitted by itself (:mod:`tacit.local.regimes`): some steps of EM from several starts,
then a search over all parameters, with weights and noise of its nodes, from the best of them. $K + 1$ regimes are
preferred to $K$ if the log likelihood of the validation pairs is clearly larger.

Standard errors come from the scores of the training pairs (:class:`~tacit.local.Inference`) in the scale of
probabilities, with the sum of their squares as the curvature; those of marginals are by the delta method. Regimes of a
series often last, so that pairs depend on their neighbours. Where the data do not determine the regimes, errors are
large, and the intervals reach from 0 to 1. So it is for two edges: two regimes of them have five parameters, and their
joint distribution has three.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.regimes.fitted import (
    Estimate,
    RegimeFit,
    choose_number,
    constant_regime,
    without_errors,
)
from tacit.assessment.uncertainty import MOST_GATES
from tacit.data import Pairs
from tacit.errors import require, require_int
from tacit.graph import BernoulliGraph, Blocks, MixtureGraph
from tacit.local import (
    BlockLikelihood,
    Dependence,
    Difference,
    Inference,
    LocalModel,
    has_likelihood,
    paired_difference,
)
from tacit.randomness import generator_for
from tacit.training import LatentGraphModel

STARTS = 8
APART, SPREAD = 1.5, 1.0  # regimes start this far from the constant fit in logits, with normal noise
# Pairs times states of the gates, of one block and of all: a block of the first size takes about half a minute.
MOST_NUMBERS, MOST_IN_ALL = 2**20, 2**23
LEAST_LOG = -50.0  # log weight of a regime that does not exist

_Fitted = tuple[BlockLikelihood, Float[Tensor, " _"]]  # a block with its maximum


def has_regime_likelihood(model: LatentGraphModel, train: Pairs, blocks: Blocks = "rows") -> bool:
    """Return whether the likelihood of regimes can be computed: a linear filter with few random gates per node."""
    if not has_likelihood(model) or not isinstance(model.graph, BernoulliGraph):
        return False
    probs = model.graph.edge_probs.detach()
    gates = (model.graph.learned & (probs > 0) & (probs < 1)).sum(1)
    numbers = len(train) * 2**gates
    of_block, in_all = numbers.max() if blocks == "rows" else numbers.sum(), numbers.sum()
    return int(gates.max()) <= MOST_GATES and int(of_block) <= MOST_NUMBERS and int(in_all) <= MOST_IN_ALL


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
    data, held_out = (LocalModel.of(model, pairs.to("cpu")) for pairs in (train, validation))
    starts = [data.start(node) for node in range(len(data.present))]
    seen = (data.weights > 0).any(0).tolist()
    nodes = [node for node, start in enumerate(starts) if start.gated.any() and seen[node]]
    groups = [[node] for node in nodes] if blocks == "rows" else [nodes]
    groups = [group for group in groups if sum(int(starts[node].gated.sum()) for node in group) > 1]
    if num_regimes == 1 or not groups:
        return constant_regime(model, blocks, ())

    def fitted(count: int) -> list[_Fitted]:
        return [_fit(BlockLikelihood(data, {node: starts[node] for node in group}, count), seed) for group in groups]

    def difference(one: list[_Fitted], other: list[_Fitted]) -> Difference:
        first, second = (-_values(found, held_out) for found in (one, other))
        return paired_difference(first, second, torch.ones(len(first)), Dependence(block, validation.series))

    found, steps = choose_number(fitted, difference) if num_regimes == "auto" else (fitted(num_regimes), ())
    count = found[0][0].num_regimes
    if count == 1:
        return constant_regime(model, blocks, steps)
    # the model with these regimes, and their probabilities, weights and marginals with standard errors
    assert isinstance(model.graph, BernoulliGraph)
    constant = BernoulliGraph(model.graph.edge_probs.detach(), model.graph.fixed)
    graph, fits, changed = MixtureGraph(constant, count, blocks), list(starts), [False] * len(starts)
    own = [0 if blocks == "all" else block.nodes[0] for block, _ in found]  # the numbers of the blocks
    places = []  # of the gates of each block in the matrix
    with torch.no_grad():
        graph.edge_logits.copy_(constant.raw.expand_as(graph.edge_logits))
        graph.weight_logits[:, 1:] = LEAST_LOG  # a block without two edges that act at times has one regime
        for number, (likelihood, numbers) in zip(own, found, strict=True):
            of_nodes, logits, shares = likelihood.unpacked(numbers)
            sources = [data.sources(node)[fit.gated] for node, fit in zip(likelihood.nodes, of_nodes, strict=True)]
            rows = torch.tensor(likelihood.nodes).repeat_interleave(torch.tensor(likelihood.num_gates))
            places.append((rows, torch.cat(sources)))
            graph.weight_logits[number] = shares.log().to(graph.weight_logits)
            graph.edge_logits[:, rows, places[-1][1]] = logits.to(graph.edge_logits)
            for node, fit in zip(likelihood.nodes, of_nodes, strict=True):
                fits[node], changed[node] = fit, True
    probs, weights, marginals = (
        without_errors(values.detach().cpu()) for values in (graph.regime_probs, graph.regime_weights, graph.edge_probs)
    )
    dependence = Dependence.of_rows(len(train), block, train.series)
    for number, (rows, slots), (likelihood, numbers) in zip(own, places, found, strict=True):
        of_block = _estimates(likelihood, numbers, dependence)
        for place in range(1, 4):  # error, low and high
            of_probs, of_weights, of_marginals = (estimate[place] for estimate in of_block)
            probs[place][:, rows, slots] = of_probs.to(probs.value)
            weights[place][number] = of_weights.to(weights.value)
            marginals[place][rows, slots] = of_marginals.to(marginals.value)
    parameters = data.parameters(fits, constant.edge_probs.detach().cpu(), torch.tensor(changed))
    new = data.with_graph(graph.to(model.graph.raw.device), parameters)
    return RegimeFit(new, count, blocks, probs, weights, marginals, steps)


def _fit(likelihood: BlockLikelihood, seed: int) -> _Fitted:
    """Return a block with its maximum, from the best of some starts around the constant fit."""
    count = likelihood.num_regimes
    constant = torch.cat([fit.logits[fit.gated] for fit in likelihood.fits])
    apart = APART * torch.linspace(1, -1, count).double()[:, None] if count > 1 else torch.zeros(1, 1)
    generator = generator_for(seed, "regimes")
    noises = torch.randn(STARTS, count, len(constant), generator=generator).double() * SPREAD
    noises[0] = 0
    starts = [likelihood.by_em(constant + apart + noise) for noise in noises[: STARTS if count > 1 else 1]]
    logits, weights, _ = max(starts, key=lambda start: start[2])
    return likelihood, likelihood.fit(likelihood.start(logits, weights))


def _values(found: list[_Fitted], data: LocalModel) -> Float[Tensor, " pair"]:
    """Return the log likelihood of each pair of other data, over all blocks."""
    total = torch.zeros(len(data.targets)).double()
    for likelihood, numbers in found:
        fits, logits, weights = likelihood.unpacked(numbers)
        every = zip(likelihood.nodes, fits, torch.split(logits, likelihood.num_gates, 1), strict=True)
        seen = [one for one in every if (data.weights[:, one[0]] > 0).any()]
        if seen:
            other = BlockLikelihood(data, {node: fit for node, fit, _ in seen}, likelihood.num_regimes)
            total += other.scores(other.start(torch.cat([one for *_, one in seen], 1), weights))[0]
    return total


def _estimates(
    likelihood: BlockLikelihood, numbers: Float[Tensor, " number"], dependence: Dependence
) -> tuple[Estimate, Estimate, Estimate]:
    """Return probabilities (regime, gate), weights and marginals of a block, with standard errors."""
    _, logits, weights = likelihood.unpacked(numbers)
    (count, gates), scores = logits.shape, likelihood.natural_scores(numbers)
    inference = Inference(scores.mT @ scores + likelihood.precision, scores, dependence)
    first, probs = likelihood.num_own, torch.sigmoid(logits)
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
