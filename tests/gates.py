"""Pairs whose edges act always or at times, and a linear filter for them."""

import torch

from tacit.data import Pairs
from tacit.graph import BernoulliGraph
from tacit.local import GatedRegression
from tacit.losses import EnergyScore
from tacit.observation import GaussianNoise
from tacit.predictors import GraphFilter
from tacit.training import LatentGraphModel

OFTEN = torch.tensor([[0.0, 1.0, 0.6], [0.0, 0.0, 1.0], [0.5, 0.0, 0.0]], dtype=torch.float64)
WEIGHTS = torch.tensor([[0.0, 0.7, -0.9], [0.0, 0.0, 0.8], [1.0, 0.0, 0.0]], dtype=torch.float64)


def gate_pairs(count, *, often=OFTEN, weights=WEIGHTS, sigma=0.4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    nodes = len(often)
    inputs = torch.randn(count, nodes, generator=generator, dtype=torch.float64)
    acts = (torch.rand(count, nodes, nodes, generator=generator, dtype=torch.float64) < often).double()
    noise = sigma * torch.randn(count, nodes, generator=generator, dtype=torch.float64)
    targets = 0.5 * inputs + torch.einsum("bij,bj->bi", acts * weights, inputs) + noise
    return Pairs(inputs[..., None], targets[..., None])


def filter_model(present, **choices):
    """A filter that may read the edges of a mask, all at .3."""
    probs = torch.where(present, 0.3, 0.0)
    graph = BernoulliGraph(probs, fixed=~present, **choices)
    nodes = len(present)
    filters = GraphFilter(nodes, 1, 1, residual=False)
    return LatentGraphModel(graph, filters, EnergyScore(scope="node"), observation=GaussianNoise(nodes)).double()


def node_data(count=200, sources=2, lags=1, seed=0):
    """A node that reads gates of several lags."""
    generator = torch.Generator().manual_seed(seed)

    def normals(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    own = torch.cat([normals(count, 1), torch.ones(count, 1, dtype=torch.float64)], 1)
    sent = normals(sources, count, lags)
    acts = (torch.rand(count, sources, generator=generator, dtype=torch.float64) < 0.6).double()
    target = 0.3 * own[:, 0] + (acts * sent.sum(2).mT).sum(1) + 0.5 * normals(count)
    spread, one = torch.stack([torch.ones(count).double(), own[:, 0].square()], 1), torch.ones_like(target)
    return GatedRegression(own, sent, torch.zeros_like(target), target, one, GaussianNoise(1), spread=spread)
