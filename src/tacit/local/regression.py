r"""The exact likelihood of one node whose edges are weights times gates.

$$p(y \mid x) = \sum_{a \in \{0, 1\}^g} \prod_j \theta_j^{a_j} (1 - \theta_j)^{1 - a_j}\;
  p\Big(y \,\Big|\, f = o + b^\top z + \sum_j a_j\, w_j^\top x_j\Big)$$

$z$ are the node's own inputs, $x_j$ the inputs from source $j$, $o$ a known offset, and $p(y \mid f)$ the observation
model. $g$ edges have random gates; the others always act, $a_j = 1$. The sum runs over all $2^g$ states of the gates,
so weights, probabilities and noise are estimated without sampling. Without gates this is a generalised linear model.

The logit of a probability may depend on features $\phi$ of the row,

$$\mathrm{logit}\, \theta_j = l_j + s_j^\top \phi_j$$

The slopes $s_j$ have a normal prior with mean 0 and standard deviation ``SLOPE_DEVIATION``.

The noise may grow with columns $s$ of the row, for example with the size of a source. If it is added to the output,

$$y = f + e^{t}\, \varepsilon, \qquad p(y \mid f) = e^{-t}\, p_0(e^{-t} y \mid e^{-t} f), \qquad t = \gamma^\top s$$

The coefficients $\gamma$ have a normal prior with mean 0 and standard deviation ``SPREAD_DEVIATION``.

Weights have a normal prior with standard deviation ``PRIOR_DEVIATION``, in units of the output for an input of standard
deviation 1. It matters only if the data do not determine a weight, for example under perfect separation.
"""

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.observation import ObservationModel
from tacit.shapes import TargetParams, Targets

PRIOR_DEVIATION = 5.0
NOISE_DEVIATION = 10.0  # prior standard deviation of the observation model's parameters, around their initial values
SPREAD_DEVIATION = 2.0
MOST_LOGIT = 9.0  # bound on the logit of a probability
RIDGE = 1e-8  # relative to a column's mean square


@dataclass(frozen=True, eq=False)
class GatedFit:
    r"""A maximum of the likelihood: own weights, edge weights, logits of the gated edges, and the noise.

    ``log_likelihood``  without the prior
    ``slopes``          $s_j$, coefficients of the features in the logit of an edge; None: all edges are constant
    ``varying``         the edges whose slopes are learned; the slopes of others are fixed
    ``spread``          $\gamma$, coefficients of the logarithm of the noise's scale
    """

    own: Float[Tensor, " own"]
    edges: Float[Tensor, "source lag"]
    logits: Float[Tensor, " source"]
    gated: Bool[Tensor, " source"]
    observation: ObservationModel
    log_likelihood: float = -math.inf
    slopes: Float[Tensor, "source feature"] | None = None
    varying: Bool[Tensor, " source"] | None = None
    spread: Float[Tensor, " term"] | None = None

    @property
    def weights(self) -> Float[Tensor, " column"]:
        """The weights of the columns of the design."""
        return torch.cat([self.own, self.edges.flatten()])

    @property
    def num_parameters(self) -> int:
        """The number of learned parameters."""
        slopes = 0 if self.slopes is None or self.varying is None else int(self.varying.sum()) * self.slopes.shape[1]
        noise = sum(value.numel() for value in self.observation.parameters())
        noise += 0 if self.spread is None else len(self.spread)
        return self.own.numel() + self.edges.numel() + int(self.gated.sum()) + slopes + noise

    @property
    def edge_probs(self) -> Float[Tensor, " source"]:
        """The probability that each edge acts if its features are 0; 1 for edges without a gate."""
        return torch.where(self.gated, torch.sigmoid(self.logits), 1.0)

    def with_gate(self, source: int, prob: float) -> "GatedFit":
        """Return initial values with one more gated edge and unchanged mean effect."""
        logits, gated, edges = self.logits.clone(), self.gated.clone(), self.edges.clone()
        edges[source] = edges[source] * float(self.edge_probs[source]) / prob
        gated[source], logits[source] = True, math.log(prob / (1 - prob))
        return replace(self, logits=logits, gated=gated, edges=edges)

    def without_gate(self, source: int) -> "GatedFit":
        """Return initial values with an edge that always acts and unchanged mean effect."""
        gated, edges = self.gated.clone(), self.edges.clone()
        edges[source] = edges[source] * float(self.edge_probs[source])
        gated[source] = False
        return replace(self, gated=gated, edges=edges)

    def with_constant_noise(self) -> "GatedFit":
        """Return initial values in which the scale of the noise does not depend on the row."""
        return self if self.spread is None else replace(self, spread=torch.zeros_like(self.spread))

    def with_slopes(self, varying: Bool[Tensor, " source"], num_features: int) -> "GatedFit":
        """Return initial values in which only the given gated edges depend on their features."""
        slopes = self.edges.new_zeros(len(self.gated), num_features) if self.slopes is None else self.slopes
        varying = varying & self.gated
        return replace(self, slopes=torch.where(varying[:, None], slopes, 0.0), varying=varying)


@dataclass(frozen=True, eq=False)
class GatedRegression:
    """The data of one node, in double precision.

    ``weights``   weight of each row
    ``features``  features that the probabilities of the edges may depend on; None: they are constant
    ``spread``    columns that the logarithm of the noise's scale depends on; None: it is constant
    """

    own: Float[Tensor, "row own"]
    sent: Float[Tensor, "source row lag"]
    offset: Float[Tensor, " row"]
    targets: Float[Tensor, " row"]
    weights: Float[Tensor, " row"]
    observation: ObservationModel
    features: Float[Tensor, "row source feature"] | None = None
    spread: Float[Tensor, "row term"] | None = None

    @cached_property
    def precision(self) -> Float[Tensor, "column column"]:
        """The precision of the prior of the weights."""
        design = self.design
        share = (self.weights / self.weights.sum().clamp_min(1)).sqrt()[:, None]
        gram = (design * share).mT @ (design * share)
        sizes = gram.diagonal().clamp_min(RIDGE)
        return (gram + torch.diag(RIDGE + 1e-6 * sizes)) / PRIOR_DEVIATION**2

    @property
    def design(self) -> Float[Tensor, "row column"]:
        """The design matrix: own columns, then the lags of each source."""
        return torch.cat([self.own, self.sent.transpose(0, 1).flatten(1)], 1)

    def every(self, step: int) -> "GatedRegression":
        """Return the regression of every ``step``-th row."""
        return replace(
            self,
            own=self.own[::step],
            sent=self.sent[:, ::step],
            offset=self.offset[::step],
            targets=self.targets[::step],
            weights=self.weights[::step],
            features=None if self.features is None else self.features[::step],
            spread=None if self.spread is None else self.spread[::step],
        )

    def start(self) -> GatedFit:
        """Return initial values: weights of 0 and no gates."""
        sources, _, lags = self.sent.shape
        none = torch.zeros(sources, dtype=torch.bool)
        own, edges = self.own.new_zeros(self.own.shape[1]), self.own.new_zeros(sources, lags)
        spread = None if self.spread is None else self.own.new_zeros(self.spread.shape[1])
        return GatedFit(own, edges, self.own.new_zeros(sources), none, self.observation, spread=spread)

    def outputs(self, fit: GatedFit) -> Float[Tensor, "row state"]:
        """Return the output for every state of the gates."""
        base = self.offset + self.own @ fit.own
        messages = torch.einsum("jnl,jl->nj", self.sent, fit.edges)
        base = base + messages[:, ~fit.gated].sum(1)
        return base[:, None] + messages[:, fit.gated] @ states(int(fit.gated.sum())).mT

    def mean_output(self, fit: GatedFit) -> Float[Tensor, " row"]:
        """Return the mean of the output over the states of the gates, with constant probabilities."""
        messages = torch.einsum("jnl,jl->nj", self.sent, fit.edges)
        return self.offset + self.own @ fit.own + messages @ fit.edge_probs.to(messages)

    def state_logs(self, fit: GatedFit, outputs: Float[Tensor, "row state"]) -> Float[Tensor, "row state"]:
        """Return the log probability of each target in each state."""
        described, targets, sizes = self._described(fit, outputs)
        return fit.observation.log_prob(described, targets)[..., 0, 0] - sizes[:, None]

    def joint(self, fit: GatedFit, outputs: Float[Tensor, "row state"]) -> Float[Tensor, "row state"]:
        """Return the joint log probability of each target and each state."""
        gates, log_probs = states(int(fit.gated.sum())), self.state_logs(fit, outputs)
        logits = fit.logits[fit.gated].expand(len(outputs), -1)
        if fit.slopes is not None and self.features is not None:
            logits = logits + torch.einsum("ngk,gk->ng", self.features[:, fit.gated], fit.slopes[fit.gated])
        return log_probs + logits @ gates.mT + logsigmoid(-logits).sum(1, keepdim=True)

    @torch.no_grad()
    def ranks(self, fit: GatedFit, outputs: Float[Tensor, "row state"]) -> Float[Tensor, "row state"]:
        """Return the distribution function of each target in each state, in the middle of its step if it has one."""
        described, targets, _ = self._described(fit, outputs)
        below, up_to = fit.observation.cdf(described, targets)
        return (below + up_to)[..., 0, 0] / 2

    def _described(
        self, fit: GatedFit, outputs: Float[Tensor, "row state"]
    ) -> tuple[TargetParams, Targets, Float[Tensor, " row"]]:
        """Return the parameters of the targets, the targets in units of the noise's scale, and its logarithm."""
        targets, sizes = self.targets, outputs.new_zeros(len(outputs))
        if fit.spread is not None and self.spread is not None:
            sizes = self.spread @ fit.spread
            targets, outputs = targets * (-sizes).exp(), outputs * (-sizes).exp()[:, None]
        described = fit.observation.describe(outputs[..., None, None], outputs.new_zeros(len(outputs), 1, 1))
        return described, targets[:, None, None], sizes

    @torch.no_grad()
    def row_log_likelihoods(self, fit: GatedFit) -> Float[Tensor, " row"]:
        """Return the log likelihood of each row."""
        return self.joint(fit, self.outputs(fit)).logsumexp(1)


def states(gates: int) -> Float[Tensor, "state gate"]:
    """Return all states of some gates.

    >>> states(2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=gates)), dtype=torch.float64).view(2**gates, gates)


def noise_vector(observation: ObservationModel) -> Float[Tensor, " number"]:
    """Return the parameters of the observation model of one node as a vector."""
    values = [value.detach().double().flatten() for value in observation.parameters()]
    return torch.cat(values) if values else torch.zeros(0, dtype=torch.float64)


def fill_noise(model: ObservationModel, noise: Float[Tensor, "node number"]) -> None:
    """Set the parameters of each node of an observation model; the inverse of :func:`noise_vector`."""
    first = 0
    for value in model.parameters():
        size = value[0].numel()
        value.data = noise[:, first : first + size].reshape(value.shape)
        first += size
