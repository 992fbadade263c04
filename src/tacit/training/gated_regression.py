r"""The exact likelihood of one node whose edges are weights times gates.

$$p(y \mid x) = \sum_{a \in \{0, 1\}^g} \prod_j \theta_j^{a_j} (1 - \theta_j)^{1 - a_j}\;
  p\Big(y \,\Big|\, f = o + b^\top z + \sum_j a_j\, w_j^\top x_j\Big)$$

$z$ are the node's own inputs, $x_j$ the inputs from source $j$, $o$ a known offset, and $p(y \mid f)$ the observation
model. $g$ edges have random gates; the others always act, $a_j = 1$. The sum runs over all $2^g$ states of the gates,
so weights, probabilities and noise are estimated without sampling. Without gates this is a generalised linear model.

The logit of a probability may depend on features $\phi$ of the row,

$$\mathrm{logit}\, \theta_j = l_j + s_j^\top \phi_j$$

The slopes $s_j$ have a normal prior with mean 0 and standard deviation ``SLOPE_DEVIATION``.

Weights have a normal prior with standard deviation ``PRIOR_DEVIATION``, in units of the output for an input of standard
deviation 1. It matters only if the data do not determine a weight, for example under perfect separation.
"""

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from tacit.graph import PRIOR_DEVIATION as SLOPE_DEVIATION
from tacit.observation import ObservationModel
from tacit.training.gated_fit import GatedFit

PRIOR_DEVIATION = 5.0
NOISE_DEVIATION = 10.0  # prior standard deviation of the observation model's parameters, around their initial values
MOST_LOGIT = 9.0  # bound on the logit of a probability
MOST_NUMBERS = 2**21  # rows times states evaluated at once
MOST_STEPS = 200
TOLERANCE = 1e-11  # relative change of the objective, nats per row, at which a fit ends
RIDGE = 1e-8  # relative to a column's mean square


@dataclass(frozen=True, eq=False)
class GatedRegression:
    """The data of one node, in double precision.

    ``weights``    weight of each row
    ``features``   features that the probabilities of the edges may depend on; None: they are constant
    ``tolerance``  relative change of the objective at which a fit ends
    """

    own: Float[Tensor, "row own"]
    sent: Float[Tensor, "source row lag"]
    offset: Float[Tensor, " row"]
    targets: Float[Tensor, " row"]
    weights: Float[Tensor, " row"]
    observation: ObservationModel
    features: Float[Tensor, "row source feature"] | None = None
    tolerance: float = TOLERANCE
    _root: Float[Tensor, "column column"] = field(init=False)

    def __post_init__(self) -> None:
        design = self.design
        share = (self.weights / self.weights.sum().clamp_min(1)).sqrt()[:, None]
        gram = (design * share).mT @ (design * share)
        sizes = gram.diagonal().clamp_min(RIDGE)
        root = torch.linalg.cholesky(gram + torch.diag(RIDGE + 1e-6 * sizes))
        object.__setattr__(self, "_root", torch.linalg.inv(root))

    @property
    def design(self) -> Float[Tensor, "row column"]:
        """The design matrix: own columns, then the lags of each source."""
        return torch.cat([self.own, self.sent.transpose(0, 1).flatten(1)], 1)

    def start(self) -> GatedFit:
        """Return initial values: weights of 0 and no gates."""
        sources, _, lags = self.sent.shape
        none = torch.zeros(sources, dtype=torch.bool)
        own, edges = self.own.new_zeros(self.own.shape[1]), self.own.new_zeros(sources, lags)
        return GatedFit(own, edges, self.own.new_zeros(sources), none, self.observation)

    def fit(self, start: GatedFit | None = None, fixed: int | None = None) -> GatedFit:
        """Return the local maximum from given initial values; ``fixed`` fixes the probability of one edge."""
        from scipy.optimize import minimize

        start = self.start() if start is None else start
        flat = FlatFit(self, start, fixed)
        bounds = flat.bounds()
        found = minimize(
            flat.value_and_gradient,
            flat.first,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": MOST_STEPS, "ftol": self.tolerance, "gtol": 1e-5, "maxcor": 30},
        )
        fit = flat.unpacked(torch.from_numpy(found.x))
        return replace(fit, log_likelihood=float(self.row_log_likelihoods(fit) @ self.weights))

    def fit_gates(self, gated: Bool[Tensor, " source"], start: GatedFit, prob: float = 0.8) -> GatedFit:
        """Return the fit with exactly these gated edges; new gates start at ``prob``."""
        for source in (gated & ~start.gated).nonzero()[:, 0].tolist():
            start = start.with_gate(source, prob)
        for source in (start.gated & ~gated).nonzero()[:, 0].tolist():
            start = start.without_gate(source)
        return self.fit(start)

    def outputs(self, fit: GatedFit) -> Float[Tensor, "row state"]:
        """Return the output for every state of the gates."""
        base = self.offset + self.own @ fit.own
        messages = torch.einsum("jnl,jl->nj", self.sent, fit.edges)
        base = base + messages[:, ~fit.gated].sum(1)
        return base[:, None] + messages[:, fit.gated] @ states(int(fit.gated.sum())).mT

    def joint(self, fit: GatedFit, outputs: Float[Tensor, "row state"], rows: slice) -> Float[Tensor, "row state"]:
        """Return the joint log probability of each target and each state."""
        observation = fit.observation
        described = observation.describe(outputs[..., None, None], outputs.new_zeros(len(outputs), 1, 1))
        log_probs = observation.log_prob(described, self.targets[rows, None, None])[..., 0, 0]
        logits, gates = fit.logits[fit.gated], states(int(fit.gated.sum()))
        if fit.slopes is None:
            return log_probs + gates @ logsigmoid(logits) + (1 - gates) @ logsigmoid(-logits)
        logits = self.row_logits(fit, rows)
        return log_probs + logits @ gates.mT + logsigmoid(-logits).sum(1, keepdim=True)

    def row_logits(self, fit: GatedFit, rows: slice) -> Float[Tensor, "row gate"]:
        """Return the logits of the gated edges in some rows."""
        assert self.features is not None
        assert fit.slopes is not None
        features = self.features[rows][:, fit.gated]
        return fit.logits[fit.gated] + torch.einsum("ngk,gk->ng", features, fit.slopes[fit.gated])

    @torch.no_grad()
    def row_log_likelihoods(self, fit: GatedFit) -> Float[Tensor, " row"]:
        """Return the log likelihood of each row."""
        outputs = self.outputs(fit)
        return torch.cat([self.joint(fit, outputs[rows], rows).logsumexp(1) for rows in self.parts(fit)])

    def parts(self, fit: GatedFit) -> list[slice]:
        """Return the chunks of rows that are evaluated at once."""
        count, at_once = len(self.targets), max(1, MOST_NUMBERS >> int(fit.gated.sum()))
        return [slice(first, min(first + at_once, count)) for first in range(0, count, at_once)]


def states(gates: int) -> Float[Tensor, "state gate"]:
    """Return all states of some gates.

    >>> states(2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=gates)), dtype=torch.float64).view(2**gates, gates)


class FlatFit:
    """The parameters as one vector: whitened weights, learned logits, learned slopes, and the noise.

    ``deviations``  the prior standard deviations of these four
    """

    deviations: ClassVar[tuple[float, ...]] = (PRIOR_DEVIATION, math.inf, SLOPE_DEVIATION, NOISE_DEVIATION)

    def __init__(self, data: GatedRegression, start: GatedFit, fixed: int | None = None) -> None:
        self.data, self.start = data, start
        self.learned = start.gated.clone()
        if fixed is not None:
            self.learned[fixed] = False
        self.observation = start.observation.chosen([0]).double()
        self.center = _vector(data.observation)
        weights = torch.cat([start.own, start.edges.flatten()])
        whitened = torch.linalg.solve(data._root.mT, weights)
        slopes = weights.new_zeros(0) if start.slopes is None else start.slopes[start.varying].flatten()
        parts = [whitened, start.logits[self.learned], slopes, _vector(self.observation)]
        self.sizes = [len(part) for part in parts]
        self.first = torch.cat(parts).numpy()

    @property
    def gates(self) -> slice:
        """Slice of the logits."""
        return slice(self.sizes[0], self.sizes[0] + self.sizes[1])

    @property
    def slopes(self) -> slice:
        """Slice of the slopes, edge by edge."""
        return slice(self.gates.stop, self.gates.stop + self.sizes[2])

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Return the bounds of each parameter; only logits are bounded."""
        free: list[tuple[float | None, float | None]] = [(None, None)]
        return free * self.sizes[0] + [(-MOST_LOGIT, MOST_LOGIT)] * self.sizes[1] + free * sum(self.sizes[2:])

    def split(self, flat: Float[Tensor, " number"]) -> tuple[Tensor, ...]:
        """Return weights, logits, slopes and noise."""
        return flat.tensor_split([self.gates.start, self.slopes.start, self.slopes.stop])

    def unpacked(self, flat: Float[Tensor, " number"]) -> GatedFit:
        """Return the fit of a parameter vector; it is differentiable."""
        whitened, learned, moving, noise = self.split(flat)
        weights = self.data._root.mT @ whitened
        own, edges = weights.tensor_split([len(self.start.own)])
        logits = self.start.logits.masked_scatter(self.learned, learned)
        slopes = self.start.slopes
        if slopes is not None and self.start.varying is not None:
            slopes = slopes.masked_scatter(self.start.varying[:, None].expand_as(slopes), moving)
        first = 0
        with torch.no_grad():
            for value in self.observation.parameters():
                value.copy_(noise[first : first + value.numel()].view_as(value))
                first += value.numel()
        edges = edges.view_as(self.start.edges)
        return replace(self.start, own=own, edges=edges, logits=logits, observation=self.observation, slopes=slopes)

    def value_and_gradient(self, numbers: np.ndarray) -> tuple[float, np.ndarray]:
        """Return minus the log posterior divided by the number of rows, and its gradient."""
        flat = torch.from_numpy(numbers).clone().requires_grad_()
        fit, rows = self.unpacked(flat), self.data.weights.sum()
        outputs = self.data.outputs(fit)
        parameters = list(self.observation.parameters())
        total, gradient, noise = 0.0, torch.zeros_like(flat), torch.zeros_like(self.center)
        for part in self.data.parts(fit):
            value = self.data.joint(fit, outputs[part], part).logsumexp(1) @ self.data.weights[part]
            found = torch.autograd.grad(value, [flat, *parameters], retain_graph=True)
            total, gradient = total + float(value.detach()), gradient + found[0]
            noise = noise + torch.cat([one.flatten() for one in found[1:]]) if parameters else noise
        gradient[self.slopes.stop :] += noise
        away = flat.detach() - self.prior_means()
        gradient -= away / self.prior_variances()
        for some, deviation in zip(self.split(away), self.deviations, strict=True):
            total -= float(some.square().sum() / (2 * deviation**2))
        return -total / float(rows), (-gradient / rows).numpy()

    def prior_means(self) -> Float[Tensor, " number"]:
        """Return the prior mean of each parameter."""
        return torch.cat([self.center.new_zeros(self.slopes.stop), self.center])

    def prior_variances(self) -> Float[Tensor, " number"]:
        """Return the prior variance of each parameter; infinite for logits, which have no prior."""
        sizes = zip(self.sizes, self.deviations, strict=True)
        return torch.cat([self.center.new_full((size,), deviation**2) for size, deviation in sizes])


def _vector(observation: ObservationModel) -> Float[Tensor, " number"]:
    values = [value.detach().double().flatten() for value in observation.parameters()]
    return torch.cat(values) if values else torch.zeros(0, dtype=torch.float64)
