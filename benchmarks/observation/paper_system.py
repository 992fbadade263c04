r"""The paper's system with another observation model: 12 nodes in two communities, a hidden graph for each pair.

$$f_i = b + s \tanh\Big( \sum_j A_{ij}\, x_j \psi \Big), \qquad y_i \sim \mathrm{Poisson}(\log(1 + e^{f_i}))
  \quad \text{or} \quad y_i \sim \mathrm{Bernoulli}(\sigma(f_i))$$

One hop, so that a node sees the edges into it alone: the likelihood of theta given psi is a product over nodes, and its
information has no more terms than there are graphs of one node (:func:`error_bound`).
"""

import itertools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.data import Pairs
from tacit.graph import AnyGraphs, BernoulliGraph
from tacit.observation import ObservationModel
from tacit.predictors import HopPredictor
from tacit.randomness import generator_for
from tacit.shapes import EdgeProbs, Inputs, Outputs
from tacit.systems import PAPER_HOP_WEIGHTS, community_edge_probs

INPUT_SCALE = 1.5  # as in the paper
LOWEST, HIGHEST = 0.3, 0.9  # of the true edge probabilities
BASES = {"poisson": (10.0, 10.0), "bernoulli": (0.0, 3.0)}  # b and s: means .7 to 20, probabilities .05 to .95
BOUND_INPUTS = 2_000
LARGEST_COUNT = 50  # of the sums over counts: P(v > 50) < 1e-8 at a mean of 20


class ScaledHops(nn.Module):
    r"""$b + s \tanh(\sum_j A_{ij} x_j \psi)$: the paper's predictor with one hop, and a range of its own."""

    num_hops = 1

    def __init__(self, hop_weights: Float[Tensor, "hop in_channel channel"], base: float, scale: float) -> None:
        super().__init__()
        self.hops = HopPredictor(hop_weights)
        self.base, self.scale = nn.Parameter(torch.tensor(base)), nn.Parameter(torch.tensor(scale))

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        """Return the output of every pair under each of its graphs."""
        return self.base + self.scale * self.hops(inputs, graphs)

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return random weights, and base and scale as they are."""
        weights = self.hops.initial_parameters(generator)
        same = {name: getattr(self, name).detach().to(generator.device) for name in ("base", "scale")}
        return {**{f"hops.{name}": value for name, value in weights.items()}, **same}


@dataclass(frozen=True)
class CommunityCounts:
    """The system of a kind, "poisson" or "bernoulli"; edges within and between communities as in the paper."""

    kind: str

    @property
    def true_edge_probs(self) -> EdgeProbs:
        """Between .3 and .9 on the 50 edges of the paper's system, self-loops among them; 0 elsewhere."""
        drawn = torch.rand(12, 12, generator=Generator().manual_seed(1))
        return torch.where(community_edge_probs() > 0, LOWEST + (HIGHEST - LOWEST) * drawn, 0.0)

    def predictor(self, *, known: bool = True, seed: int = 0) -> ScaledHops:
        """Return the true predictor, its parameters fixed; or a random one, base and scale off by a tenth of s."""
        base, scale = BASES[self.kind]
        true = ScaledHops(torch.tensor(PAPER_HOP_WEIGHTS)[:1, :, None], base, scale)
        if known:
            return true.requires_grad_(False)
        random = HopPredictor.random(1, 4, 1, generator=generator_for(seed, "learned")).hop_weights.detach()
        return ScaledHops(random, base + 0.1 * scale, 1.1 * scale)

    def generate(self, num_pairs: int, seed: int) -> Pairs:
        """Draw pairs, each with a hidden graph of its own."""
        generator = generator_for(seed, "observation system")
        inputs = INPUT_SCALE * torch.randn(num_pairs, 12, 4, generator=generator)
        graphs = BernoulliGraph(self.true_edge_probs).sample(1, num_pairs=num_pairs, generator=generator)
        outputs = self.predictor()(inputs, graphs)[:, 0]
        if self.kind == "poisson":
            return Pairs(inputs, torch.poisson(nn.functional.softplus(outputs), generator=generator))
        return Pairs(inputs, torch.bernoulli(torch.sigmoid(outputs), generator=generator))


def masses(kind: str, outputs: Float[Tensor, "*any"]) -> Float[Tensor, "*any value"]:
    """Return the probability of every value, up to ``LARGEST_COUNT``."""
    if kind == "bernoulli":
        high = torch.sigmoid(outputs)
        return torch.stack([1 - high, high], -1)
    counts = torch.arange(LARGEST_COUNT + 1, dtype=outputs.dtype)
    mean = nn.functional.softplus(outputs)[..., None]
    return (torch.xlogy(counts, mean) - mean - torch.lgamma(counts + 1)).exp()


def error_bound(system: CommunityCounts, num_pairs: int) -> dict[str, float]:
    r"""Return the mean absolute error that no unbiased estimator of theta can go below, psi known.

    $$I_{jk} = E_x \sum_y \frac{\partial_j p(y \mid x)\, \partial_k p(y \mid x)}{p(y \mid x)},
      \qquad p(y \mid x) = \sum_A P_\theta(A)\, p(y \mid f(x, A))$$

    Sums go over all graphs of a node and all values; the mean over inputs takes ``BOUND_INPUTS`` of them. An error is
    normal with the variance that the inverse of n I has, so that its mean size is $\sqrt{2 / \pi}$ deviations. Edges
    that are not there are taken as known.
    """
    generator, errors = generator_for(0, "bound"), []
    base, scale = BASES[system.kind]
    psi = torch.tensor(PAPER_HOP_WEIGHTS[0], dtype=torch.float64)
    for row in system.true_edge_probs.double():
        theta = row[row > 0]
        x = INPUT_SCALE * torch.randn(BOUND_INPUTS, len(theta), 4, generator=generator, dtype=torch.float64)
        graphs = torch.tensor(list(itertools.product((0.0, 1.0), repeat=len(theta))), dtype=torch.float64)
        probs = torch.where(graphs > 0, theta, 1 - theta).prod(1)
        scores = torch.where(graphs > 0, 1 / theta, -1 / (1 - theta))
        given = masses(system.kind, base + scale * torch.tanh((x @ psi) @ graphs.T))  # (input, graph, value)
        total = torch.einsum("g,xgv->xv", probs, given)
        slopes = torch.einsum("g,gj,xgv->xjv", probs, scores, given)
        information = torch.einsum("xjv,xkv,xv->jk", slopes, slopes, 1 / total.clamp_min(1e-300)) / BOUND_INPUTS
        errors.append((num_pairs * information).inverse().diagonal().sqrt())
    deviations = torch.cat(errors)
    return {
        "mean_absolute_error": float(math.sqrt(2 / math.pi) * deviations.mean()),
        "largest_deviation": float(deviations.max()),
    }


def observation_of(kind: str) -> ObservationModel:
    """Return the observation model of the system, for targets that are not scaled."""
    from tacit import observation
    from tacit.observation import TargetValues

    zero, one = torch.zeros(12, 1), torch.ones(12, 1)
    if kind == "poisson":
        return observation.PoissonCounts(12, 1, TargetValues(zero, one, largest=LARGEST_COUNT))
    return observation.BernoulliTargets.for_sizes(num_nodes=12, in_channels=4, channels=1)
