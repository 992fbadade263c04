r"""Scores of the rows of one node: derivatives of the log likelihood of each row.

With the posterior of the states of the gates, $q_a = p(a \mid y, x)$,

$$\frac{\partial \ell}{\partial o} = \sum_a q_a\, u_a, \qquad
\frac{\partial \ell}{\partial m_j} = \sum_a q_a\, a_j\, u_a, \qquad
\frac{\partial \ell}{\partial l_j} = \sum_a q_a\, a_j - \theta_j, \qquad
u_a = \frac{\partial \log p(y \mid f_a)}{\partial f}$$

for the output $o$ without gated edges, the message $m_j$ of a gated edge and the logit $l_j$ of its probability. Each
row has a copy of the noise parameters, so that these have a score for each row as well.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.observation import ObservationModel
from tacit.training.gated_fit import GatedFit
from tacit.training.gated_regression import GatedRegression, states


class RowScores(NamedTuple):
    """Log likelihoods of rows, and their derivatives."""

    values: Float[Tensor, " row"]
    base: Float[Tensor, " row"]
    messages: Float[Tensor, "row gate"]
    logits: Float[Tensor, "row gate"]
    noise: Float[Tensor, "row number"]


class RowLikelihood:
    """The likelihood for a given number of gates; a call takes the observation model's parameters as ``noise``."""

    def __init__(self, data: GatedRegression, start: GatedFit) -> None:
        self.data, self.parts, self.states = data, data.parts(start), states(int(start.gated.sum())).mT.contiguous()
        sizes = [part.stop - part.start for part in self.parts]
        self.models = [data.observation.chosen([0] * size).double() for size in sizes]

    def __call__(self, fit: GatedFit, noise: Float[Tensor, " number"]) -> RowScores:
        """Return the log likelihood of each row, and its derivatives."""
        data = self.data
        messages = torch.einsum("jnl,jl->nj", data.sent, fit.edges)
        base = data.offset + data.own @ fit.own + messages[:, ~fit.gated].sum(1)
        every = zip(self.parts, self.models, strict=True)
        found = [self._part(fit, base[rows], messages[rows][:, fit.gated], noise, rows, one) for rows, one in every]
        return RowScores(*(torch.cat(column) for column in zip(*found, strict=True)))

    def _part(
        self,
        fit: GatedFit,
        base: Float[Tensor, " row"],
        messages: Float[Tensor, "row gate"],
        noise: Float[Tensor, " number"],
        rows: slice,
        model: ObservationModel,
    ) -> RowScores:
        logits = self.data.row_logits(fit, rows)
        outputs = (base + (messages @ self.states).mT).requires_grad_()  # (state, row)
        parameters = list(model.parameters())
        fill_copies(parameters, noise)
        described = model.describe(outputs[None, ..., None], outputs.new_zeros(1, len(base), 1))
        log_probs = model.log_prob(described, self.data.targets[rows][None, :, None])[0, ..., 0]
        joint = log_probs.detach() + (logits @ self.states).mT + logsigmoid(-logits).sum(1)
        values = joint.logsumexp(0)
        posterior = (joint - values).exp_()
        slopes, *own = torch.autograd.grad((log_probs * posterior).sum(), [outputs, *parameters])
        return RowScores(
            values,
            slopes.sum(0),
            (self.states @ slopes).mT,
            (self.states @ posterior).mT - torch.sigmoid(logits),
            torch.cat([one.flatten(1) for one in own], 1) if own else base.new_zeros(len(base), 0),
        )


def fill_copies(parameters: list[torch.nn.Parameter], noise: Float[Tensor, " number"]) -> None:
    """Set the same parameters for all rows."""
    first = 0
    with torch.no_grad():
        for value in parameters:
            size = value[0].numel()
            value.copy_(noise[first : first + size].view_as(value[:1]).expand_as(value))
            first += size
