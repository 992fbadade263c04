r"""The exact likelihood of one block of a linear filter with regimes.

$$p(y \mid x) = \sum_k \pi_k \prod_{i \in B} \sum_a \prod_j \theta_{kij}^{a_j} (1 - \theta_{kij})^{1 - a_j}\,
  p(y_i \mid x, a)$$

The nodes $i$ of the block $B$ share the regime $k$. Given the regime their gates $a$ are independent, so the sum over
all states of the gates is taken node by node. $p(y_i \mid x, a)$ is that of
:mod:`tacit.training.gated_regression`, with the same priors of weights and noise. A missing target is left out of the
product.

Scores follow from the posterior of regimes and gates, as in :mod:`tacit.training.gated_scores`. Each pair has a copy of
weights and noise, so that one backward pass gives the score of every pair.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from tacit.local import (
    MOST_LOGIT,
    NOISE_DEVIATION,
    GatedFit,
    GatedRegression,
    fill_noise,
    maximise,
    noise_vector,
    states,
)
from tacit.training import NodeRegressions

EM_STEPS = 50  # from each start, with fixed weights and noise
LOGIT_REACH = 3.0  # largest change of a logit in one step
SMALLEST = 1e-4  # distance from 0 and 1 of a probability whose score is taken


@dataclass(frozen=True, eq=False)
class BlockNode:
    """One node of a block: its regression, its fit so far, and the pairs in which its target is observed."""

    number: int
    data: GatedRegression
    fit: GatedFit
    known: Bool[Tensor, " pair"]

    @classmethod
    def of(cls, data: NodeRegressions, number: int, fit: GatedFit) -> "BlockNode":
        """Return the node of some regressions, with given weights, gates and noise."""
        return cls(number, data.node(number), fit, data.weights[:, number] > 0)

    @property
    def num_gates(self) -> int:
        """Number of edges that act at times."""
        return int(self.fit.gated.sum())


class BlockFit(NamedTuple):
    """A maximum of the likelihood, with regimes sorted by weight.

    ``fits``    the fit of each node, with weights, gates and noise
    ``logits``  of the gates of all nodes, one node after the other
    """

    fits: tuple[GatedFit, ...]
    logits: Float[Tensor, "regime gate"]
    weights: Float[Tensor, " regime"]


class Posterior(NamedTuple):
    """The log likelihood of each pair, the posterior of its regime, and for each node that of its gates.

    ``states``  (row, state): posterior of the states of the gates
    ``acts``    (row, regime, gate): how likely each edge acts, given the regime
    """

    values: Float[Tensor, " pair"]
    regimes: Float[Tensor, "pair regime"]
    states: list[Float[Tensor, "row state"]]
    acts: list[Float[Tensor, "row regime gate"]]


class BlockLikelihood:
    """The likelihood of the nodes of a block, as a function of one vector.

    The vector has the weights and the noise of each node, the logits of the gates in each regime, and the
    logits of the weights of all regimes but the last.
    """

    def __init__(self, nodes: list[BlockNode], num_regimes: int) -> None:
        self.nodes, self.num_regimes = nodes, num_regimes
        self.states = [states(node.num_gates) for node in nodes]
        self.copies = [node.data.observation.chosen([0] * int(node.known.sum())).double() for node in nodes]
        self.num_gates = [node.num_gates for node in nodes]
        centers = [noise_vector(node.data.observation) for node in nodes]
        own = list[int]()
        for node, center in zip(nodes, centers, strict=True):
            own.extend([len(node.data.precision), len(center)])
        self.sizes = [*own, num_regimes * sum(self.num_gates), num_regimes - 1]
        self.num_own = sum(own)  # weights and noise of all nodes
        # the prior: that of each node, and none for the logits
        self.means = torch.zeros(sum(self.sizes), dtype=torch.float64)
        self.precision = torch.zeros(len(self.means), len(self.means), dtype=torch.float64)
        first = 0
        for node, center in zip(nodes, centers, strict=True):
            weights = slice(first, first + len(node.data.precision))
            noise = slice(weights.stop, weights.stop + len(center))
            self.precision[weights, weights] = node.data.precision
            self.precision[noise, noise] = torch.eye(len(center)).double() / NOISE_DEVIATION**2
            self.means[noise], first = center, noise.stop

    def _parts(self, numbers: Float[Tensor, " number"]) -> tuple[Tensor, ...]:
        """Return weights and noise of each node, the logits of the gates, and those of the weights."""
        return torch.split(numbers, self.sizes)

    def start(
        self, logits: Float[Tensor, "regime gate"], weights: Float[Tensor, " regime"]
    ) -> Float[Tensor, " number"]:
        """Return the vector of the fits of the nodes, with given regimes."""
        rest = torch.cat([logits.flatten(), (weights.log() - weights[-1].log())[:-1]])
        own = [part for node in self.nodes for part in (node.fit.weights, noise_vector(node.fit.observation))]
        return torch.cat([*own, rest])

    def scores(self, numbers: Float[Tensor, " number"]) -> tuple[Float[Tensor, " pair"], Float[Tensor, "pair number"]]:
        """Return the log likelihood of each pair and its gradient, without the prior."""
        *own, gates, weights = self._parts(numbers)
        leaves, given = [], []
        for place, node in enumerate(self.nodes):
            copies = own[2 * place].expand(int(node.known.sum()), -1).clone().requires_grad_()
            leaves.append([copies, *self._filled(place, own[2 * place + 1])])
            given.append(self.given_states(place, copies))
        logits, log_weights = gates.view(self.num_regimes, -1), pad(weights, (0, 1)).log_softmax(0)
        found = self.posterior([one.detach() for one in given], logits, log_weights)
        probs, pairs = torch.sigmoid(logits), len(found.values)
        columns, acting = [], []
        for place, (node, own_probs) in enumerate(zip(self.nodes, torch.split(probs, self.num_gates, 1), strict=True)):
            rows = node.known.nonzero()[:, 0]
            slopes = torch.autograd.grad((given[place] * found.states[place]).sum(), leaves[place])
            of_node = torch.cat([one.flatten(1) for one in slopes], 1)
            of_gates = found.regimes[rows, :, None] * (found.acts[place] - own_probs)
            columns.append(of_node.new_zeros(pairs, of_node.shape[1]).index_copy(0, rows, of_node))
            acting.append(of_node.new_zeros(pairs, *of_gates.shape[1:]).index_copy(0, rows, of_gates))
        of_weights = (found.regimes - log_weights.exp())[:, :-1]
        return found.values, torch.cat([*columns, torch.cat(acting, 2).flatten(1), of_weights], 1)

    def posterior(
        self, given: list[Tensor], logits: Float[Tensor, "regime gate"], log_weights: Float[Tensor, " regime"]
    ) -> Posterior:
        """Return the posterior of regimes and gates, from the log-probability of the targets in each state."""
        total, parts = log_weights.expand(len(self.nodes[0].known), -1), []
        for place, own in enumerate(torch.split(logits, self.num_gates, 1)):
            largest = given[place].amax(1, keepdim=True)
            likely = (given[place] - largest).exp()  # (row, state)
            prior = self.state_logs(place, own).exp()  # (regime, state)
            in_regime = likely @ prior.mT  # (row, regime)
            total = total.index_add(0, self.nodes[place].known.nonzero()[:, 0], in_regime.log() + largest)
            parts.append((likely, prior, in_regime))
        regimes, states, acts = total.softmax(1), [], []
        for place, (likely, prior, in_regime) in enumerate(parts):
            share = regimes[self.nodes[place].known] / in_regime
            states.append(likely * (share @ prior))
            with_act = prior[:, None] * self.states[place].mT  # (regime, gate, state)
            acts.append(
                (likely @ with_act.flatten(0, 1).mT).view(len(likely), *with_act.shape[:2]) / in_regime[..., None]
            )
        return Posterior(total.logsumexp(1), regimes, states, acts)

    def _filled(self, place: int, noise: Float[Tensor, " number"]) -> list[torch.nn.Parameter]:
        """Set the noise of all pairs to the same numbers, and return the parameters."""
        fill_noise(self.copies[place], noise.expand(int(self.nodes[place].known.sum()), -1))
        return list(self.copies[place].parameters())

    def given_states(self, place: int, weights: Float[Tensor, "row column"]) -> Float[Tensor, "row state"]:
        """Return the log-probability of the targets of a node in each state of its gates."""
        node = self.nodes[place]
        own, edges = weights.tensor_split([len(node.fit.own)], 1)
        messages = torch.einsum("jnl,njl->nj", node.data.sent, edges.view(len(edges), *node.fit.edges.shape))
        gated = node.fit.gated
        base = node.data.offset + (node.data.own * own).sum(1) + messages[:, ~gated].sum(1)
        outputs = base + self.states[place] @ messages[:, gated].mT  # (state, row)
        model = self.copies[place]
        described = model.describe(outputs[None, ..., None], outputs.new_zeros(1, len(base), 1))
        return model.log_prob(described, node.data.targets[None, :, None])[0, ..., 0].mT

    def state_logs(self, place: int, logits: Float[Tensor, "*any gate"]) -> Float[Tensor, "*any state"]:
        """Return the log-probability of each state of the gates of a node."""
        of_node = self.states[place]
        return logsigmoid(logits) @ of_node.mT + logsigmoid(-logits) @ (1 - of_node).mT

    def evaluate(self, numbers: Float[Tensor, "one number"], _: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log posterior, its gradient, and the curvature by the products of the scores of the pairs."""
        values, scores = self.scores(numbers[0])
        away = numbers[0] - self.means
        pull = self.precision @ away
        total, gradient = values.sum() - away @ pull / 2, scores.sum(0) - pull
        return total[None], gradient[None], (scores.mT @ scores + self.precision)[None]

    def fit(self, first: Float[Tensor, " number"]) -> Float[Tensor, " number"]:
        """Return the local maximum from a start, with regimes sorted by weight, the largest first."""
        free = torch.ones(1, len(first), dtype=torch.bool)
        bound = torch.full((1, len(first)), torch.inf, dtype=torch.float64)
        bound[:, self.num_own :] = MOST_LOGIT
        reach = torch.where(bound.isinf(), bound, LOGIT_REACH)
        return self._by_weight(maximise(self.evaluate, first[None], free, bound, reach)[0])

    def _by_weight(self, numbers: Float[Tensor, " number"]) -> Float[Tensor, " number"]:
        """Return the vector with regimes sorted by weight, the largest first."""
        *own, gates, weights = self._parts(numbers)
        every = pad(weights, (0, 1))
        order = every.argsort(descending=True)
        every = every[order] - every[order[-1]]
        return torch.cat([*own, gates.view(self.num_regimes, -1)[order].flatten(), every[:-1]])

    def unpacked(self, numbers: Float[Tensor, " number"]) -> BlockFit:
        """Return the fits of the nodes and the regimes of a vector."""
        *own, gates, weights = self._parts(numbers)
        fits = []
        for place, node in enumerate(self.nodes):
            of_own, edges = own[2 * place].tensor_split([len(node.fit.own)])
            observation = node.data.observation.chosen([0])
            fill_noise(observation, own[2 * place + 1][None])
            fits.append(replace(node.fit, own=of_own, edges=edges.view_as(node.fit.edges), observation=observation))
        return BlockFit(tuple(fits), gates.view(self.num_regimes, -1), pad(weights, (0, 1)).softmax(0))

    @torch.no_grad()
    def by_em(self, logits: Float[Tensor, "regime gate"]) -> tuple[Tensor, Tensor, float]:
        """Return logits and weights of regimes after some steps of EM with fixed weights and noise, and the value."""
        given = []
        for place, node in enumerate(self.nodes):
            self._filled(place, noise_vector(node.fit.observation))
            given.append(self.given_states(place, node.fit.weights.expand(int(node.known.sum()), -1)))
        log_weights = torch.full((self.num_regimes,), 1 / self.num_regimes, dtype=torch.float64).log()
        value = -torch.inf
        for _ in range(EM_STEPS):
            found = self.posterior(given, logits, log_weights)
            value = float(found.values.sum())
            log_weights = found.regimes.mean(0).clamp_min(1e-6).log().log_softmax(0)
            parts = []
            for node, acts in zip(self.nodes, found.acts, strict=True):
                regimes = found.regimes[node.known]
                parts.append(torch.einsum("nk,nkg->kg", regimes, acts) / regimes.sum(0).clamp_min(1e-6)[:, None])
            logits = torch.logit(torch.cat(parts, 1), eps=SMALLEST)
        return logits, log_weights.exp(), value

    def natural_scores(self, numbers: Float[Tensor, " number"]) -> Float[Tensor, "pair number"]:
        """Return scores with probabilities of gates and regimes instead of logits; the last regime is left out.

        The likelihood is linear in each of these probabilities, and so regular at 0 and 1.
        """
        scores = self.scores(numbers)[1]
        *_, gates, weights = self._parts(numbers)
        probs = torch.sigmoid(gates).clamp(SMALLEST, 1 - SMALLEST)
        regimes = pad(weights, (0, 1)).softmax(0).clamp_min(SMALLEST)
        scores[:, self.num_own : len(numbers) - self.sizes[-1]] /= probs * (1 - probs)
        if self.num_regimes > 1:
            jacobian = torch.diag(regimes[:-1]) - torch.outer(regimes[:-1], regimes[:-1])  # of weights by their logits
            last = slice(len(numbers) - self.sizes[-1], None)
            scores[:, last] = torch.linalg.solve(jacobian, scores[:, last].mT).mT
        return scores
