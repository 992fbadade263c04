r"""Gaussian noise that is correlated between nodes within a step.

$$y = \mu + L\, z, \qquad z \sim N(0, I), \qquad L_{ik} = M_{ik}\, \sigma_k$$

$M$ comes from the predictor (:class:`~tacit.predictors.SimultaneousFilter`): the noise of node $k$ affects the nodes
that read it within the step. Each single target is Gaussian with $\sigma_i = |L_i|$.
"""

from typing import ClassVar

import torch
from torch import Generator, Tensor

from tacit.observation.gaussian import INITIAL_SIGMA, GaussianNoise
from tacit.shapes import Draws, Inputs, NoiseUniforms, Outputs, Samples, TargetParams


class SimultaneousNoise(GaussianNoise):
    r"""One $\sigma$ per node; the distribution parameters of a target are its mean and its row of $L$.

    >>> noise, mixing = SimultaneousNoise(num_nodes=2), torch.tensor([[1.0, 0.0], [2.0, 1.0]])
    >>> parameters = noise.describe(torch.cat([torch.zeros(2, 1), mixing], 1)[None, None], torch.zeros(1, 2, 3))
    >>> [round(value, 4) for value in noise.variance(parameters).flatten().tolist()]
    [0.25, 1.25]
    """

    joint: ClassVar[bool] = True
    wider: ClassVar[str] = ""

    def __init__(self, num_nodes: int, channels: int = 1, *, initial_sigma: float = INITIAL_SIGMA) -> None:
        super().__init__(num_nodes, channels, initial_sigma=initial_sigma)
        self.num_given = self.num_parameters = 1 + num_nodes

    def describe(self, outputs: Outputs, inputs: Inputs) -> TargetParams:
        """Return the mean and the loadings of every target under each graph."""
        self._require_outputs(outputs)
        means, mixing = outputs.tensor_split([1], -1)
        return torch.cat([means, mixing * self._sigmas(outputs, inputs)[:, 0]], -1)

    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        r"""Return $\mu + L\, \Phi^{-1}(u)$."""
        means, loadings = parameters.tensor_split([1], -1)
        samples: Samples = means + loadings @ torch.special.ndtri(uniforms)
        return samples

    def draw(self, parameters: TargetParams, *, generator: Generator, draws: int = 1) -> Draws:
        """Return ``draws`` samples of each graph, concatenated along the graph axis."""
        means, loadings = parameters.tensor_split([1], -1)
        shape = (*loadings.shape[:3], draws)
        normals = torch.randn(shape, generator=generator, device=generator.device, dtype=means.dtype)
        values = means + loadings @ normals.to(means.device)  # (batch, graph, node, draw)
        return values.transpose(2, 3).flatten(1, 2)[..., None]

    def _mean_and_sigma(self, parameters: TargetParams) -> tuple[Tensor, Tensor]:
        means, loadings = parameters.tensor_split([1], -1)
        return means, torch.linalg.vector_norm(loadings, dim=-1, keepdim=True)
