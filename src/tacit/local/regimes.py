r"""The exact likelihood of one block of nodes that share a regime.

$$p(y \mid x) = \sum_k \pi_k \prod_{i \in B} \sum_a \prod_j \theta_{kij}^{a_j} (1 - \theta_{kij})^{1 - a_j}\,
  p(y_i \mid x, a)$$

The nodes $i$ of the block $B$ share the regime $k$: one node, some nodes, or all. Given the regime their gates $a$ are
independent, so the sum over all states of the gates is that of a single node (:mod:`tacit.local.batch`), with the same
priors of weights and noise, and the score of a row is the mean of those of the regimes over their posterior. A missing
target is left out of the product.
"""

from collections.abc import Mapping
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from tacit.local.batch import GatedBatch
from tacit.local.model import LocalModel
from tacit.local.newton import maximise
from tacit.local.regression import MOST_LOGIT, GatedFit

EM_STEPS = 50  # from each start, with fixed weights and noise
LOGIT_REACH = 3.0  # largest change of a logit in one step
SMALLEST = 1e-4  # distance from 0 and 1 of a probability whose score is taken

Numbers = Float[Tensor, " number"]
Logits = Float[Tensor, "regime gate"]


class BlockLikelihood:
    """The likelihood of the nodes of a block, given by their fits so far, as a function of one vector.

    The vector has the weights and the noise of each node, the logits of the gates in each regime, and the
    logits of the weights of all regimes but the last.
    """

    def __init__(self, data: LocalModel, fits: Mapping[int, GatedFit], num_regimes: int) -> None:
        self.nodes, self.fits, self.num_regimes = list(fits), list(fits.values()), num_regimes
        self.data = [data.node(node) for node in self.nodes]
        self.rows = [(data.weights[:, node] > 0).nonzero()[:, 0] for node in self.nodes]
        self.num_rows = len(data.targets)
        self.num_gates = [int(fit.gated.sum()) for fit in self.fits]
        # each node once for each regime
        self.batches = [
            GatedBatch([one] * num_regimes, [fit] * num_regimes, [None] * num_regimes)
            for one, fit in zip(self.data, self.fits, strict=True)
        ]
        self.own = [
            torch.cat([torch.arange(one.num_weights), torch.arange(one.first_noise, one.num_columns)])
            for one in self.batches
        ]
        self.sizes = [*(len(own) for own in self.own), num_regimes * sum(self.num_gates), num_regimes - 1]
        self.num_own = sum(self.sizes[:-2])  # weights and noise of all nodes
        # the prior: that of each node, and none for the logits
        priors = [one.precision[0][own[:, None], own] for one, own in zip(self.batches, self.own, strict=True)]
        rest = torch.zeros(sum(self.sizes[-2:]), dtype=torch.float64)
        self.precision = torch.block_diag(*priors, torch.diag(rest))  # type: ignore[no-untyped-call]
        self.means = torch.cat([*(one.mean[0, own] for one, own in zip(self.batches, self.own, strict=True)), rest])

    def start(self, logits: Logits, weights: Float[Tensor, " regime"]) -> Numbers:
        """Return the vector of the fits of the nodes, with given regimes."""
        own = [one.numbers()[0, places] for one, places in zip(self.batches, self.own, strict=True)]
        return torch.cat([*own, logits.flatten(), (weights.log() - weights[-1].log())[:-1]])

    def _parts(self, numbers: Numbers) -> tuple[list[Float[Tensor, " _"]], Logits, Float[Tensor, " regime"]]:
        """Return weights and noise of each node, the logits of the gates, and those of all weights of regimes."""
        *own, gates, weights = torch.split(numbers, self.sizes)
        return own, gates.view(self.num_regimes, -1), pad(weights, (0, 1))

    def _of_node(self, place: int, own: Float[Tensor, " own"], logits: Logits) -> Float[Tensor, "regime column"]:
        """Return the parameters of the regressions of a node in each regime."""
        batch = self.batches[place]
        found = own.new_zeros(self.num_regimes, batch.num_columns)
        found[:, self.own[place]] = own
        found[:, batch.gated_places[1]] = logits
        return found

    def scores(self, numbers: Numbers) -> tuple[Float[Tensor, " pair"], Float[Tensor, "pair number"]]:
        """Return the log likelihood of each pair and its gradient, without the prior."""
        every_own, logits, weights = self._parts(numbers)
        log_weights = weights.log_softmax(0)
        total, of_nodes = log_weights.expand(self.num_rows, -1), []
        for place, (own, gates) in enumerate(zip(every_own, torch.split(logits, self.num_gates, 1), strict=True)):
            values, scores = self.batches[place].values_and_scores(self._of_node(place, own, gates))
            total = total.index_add(0, self.rows[place], values.mT)
            of_nodes.append(scores)
        regimes, columns, acting = total.softmax(1), [], []
        for place, scores in enumerate(of_nodes):
            rows, gates = self.rows[place], self.batches[place].gated_places[1]
            share = regimes[rows].mT[..., None]  # (regime, row, 1)
            of_own = (share * scores[..., self.own[place]]).sum(0)
            of_gates = (share * scores[..., gates]).transpose(0, 1)  # (row, regime, gate)
            columns.append(of_own.new_zeros(self.num_rows, of_own.shape[1]).index_copy(0, rows, of_own))
            acting.append(of_own.new_zeros(self.num_rows, *of_gates.shape[1:]).index_copy(0, rows, of_gates))
        of_weights = (regimes - log_weights.exp())[:, :-1]
        return total.logsumexp(1), torch.cat([*columns, torch.cat(acting, 2).flatten(1), of_weights], 1)

    def evaluate(self, numbers: Float[Tensor, "one number"], _: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log posterior, its gradient, and the curvature by the products of the scores of the pairs."""
        values, scores = self.scores(numbers[0])
        away = numbers[0] - self.means
        pull = self.precision @ away
        total, gradient = values.sum() - away @ pull / 2, scores.sum(0) - pull
        return total[None], gradient[None], (scores.mT @ scores + self.precision)[None]

    def fit(self, first: Numbers) -> Numbers:
        """Return the local maximum from a start, with regimes sorted by weight, the largest first."""
        free = torch.ones(1, len(first), dtype=torch.bool)
        bound = torch.full((1, len(first)), torch.inf, dtype=torch.float64)
        bound[:, self.num_own :] = MOST_LOGIT
        reach = torch.where(bound.isinf(), bound, LOGIT_REACH)
        own, gates, weights = self._parts(maximise(self.evaluate, first[None], free, bound, reach)[0])
        order = weights.argsort(descending=True)
        weights = weights[order] - weights[order[-1]]
        return torch.cat([*own, gates[order].flatten(), weights[:-1]])

    def unpacked(self, numbers: Numbers) -> tuple[list[GatedFit], Logits, Float[Tensor, " regime"]]:
        """Return the fits of the nodes, the logits of their gates, and the weights of the regimes.

        The logits in the fits are those from which the regimes started.
        """
        every_own, logits, weights = self._parts(numbers)
        fits = []
        for place, (own, gates) in enumerate(zip(every_own, torch.split(logits, self.num_gates, 1), strict=True)):
            found = self.batches[place].unpacked(self._of_node(place, own, gates))[0]
            fits.append(replace(found, logits=self.fits[place].logits))
        return fits, logits, weights.softmax(0)

    @torch.no_grad()
    def by_em(self, logits: Logits) -> tuple[Logits, Float[Tensor, " regime"], float]:
        """Return logits and weights of regimes after some steps of EM with fixed weights and noise, and the value."""
        given = [one.state_logs(fit, one.outputs(fit)) for one, fit in zip(self.data, self.fits, strict=True)]
        largest = [one.amax(1, keepdim=True) for one in given]
        likely = [(one - most).exp() for one, most in zip(given, largest, strict=True)]  # (row, state)
        log_weights = torch.full((self.num_regimes,), 1 / self.num_regimes, dtype=torch.float64).log()
        value = -torch.inf
        for _ in range(EM_STEPS):
            total, acts = log_weights.expand(self.num_rows, -1), []
            for place, own in enumerate(torch.split(logits, self.num_gates, 1)):
                states = self.batches[place].states
                prior = (own @ states.mT + logsigmoid(-own).sum(1, keepdim=True)).exp()  # (regime, state)
                in_regime = likely[place] @ prior.mT  # (row, regime)
                total = total.index_add(0, self.rows[place], in_regime.log() + largest[place])
                open_states = (prior[:, None] * states.mT).flatten(0, 1)  # (regime * gate, state)
                acts.append((likely[place] @ open_states.mT).view(len(in_regime), *own.shape) / in_regime[..., None])
            value, regimes = float(total.logsumexp(1).sum()), total.softmax(1)
            log_weights = regimes.mean(0).clamp_min(1e-6).log().log_softmax(0)
            shares = [regimes[rows] for rows in self.rows]
            parts = [
                torch.einsum("nk,nkg->kg", share, one) / share.sum(0).clamp_min(1e-6)[:, None]
                for share, one in zip(shares, acts, strict=True)
            ]
            logits = torch.logit(torch.cat(parts, 1), eps=SMALLEST)
        return logits, log_weights.exp(), value

    def natural_scores(self, numbers: Numbers) -> Float[Tensor, "pair number"]:
        """Return scores with probabilities of gates and regimes instead of logits; the last regime is left out.

        The likelihood is linear in each of these probabilities, and so regular at 0 and 1.
        """
        scores, (_, gates, weights) = self.scores(numbers)[1], self._parts(numbers)
        probs = torch.sigmoid(gates.flatten()).clamp(SMALLEST, 1 - SMALLEST)
        regimes = weights.softmax(0).clamp_min(SMALLEST)[:-1]
        first = len(numbers) - len(regimes)
        scores[:, self.num_own : first] /= probs * (1 - probs)
        jacobian = torch.diag(regimes) - torch.outer(regimes, regimes)  # of weights by their logits
        scores[:, first:] = torch.linalg.solve(jacobian, scores[:, first:].mT).mT
        return scores
