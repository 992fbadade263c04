r"""Noise of the targets: what the graph does not explain.

$$y = f(x, A) + \sigma\, e, \qquad e \sim N(0, 1)$$

Where the graph is the only randomness of a model, its edge probabilities are bent until they explain the noise as well.
A predictor with noise says so by ``noisy = True``, names its ``out_channels`` and returns twice as many channels: the
means, then the sigmas. Two wrappers give noise to any predictor, and ``RecurrentGNN`` has a head of its own for it.
"""

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import softplus

from tacit.errors import InputError, require, require_positive, require_whole
from tacit.graph import AnyGraphs
from tacit.predictors.protocol import initial_parameters, num_hops_of, relaxed_call
from tacit.shapes import Inputs, Outputs

# Of scaled targets: sigma starts at half their deviation, and is never so small that a density becomes a spike.
INITIAL_SIGMA = 0.5
SIGMA_FLOOR = 1e-3


def noisy_channels(predictor: nn.Module) -> int | None:
    """Return for how many channels a predictor has noise, or None when it has none."""
    if getattr(predictor, "noisy", False) is not True:
        return None
    channels = getattr(predictor, "out_channels", None)
    if not isinstance(channels, int):
        raise InputError(
            f"out_channels of {type(predictor).__name__}, which says it is noisy, needs to be a whole number, "
            f"got {channels!r}; set it to the number of target channels"
        )
    return channels


def positive_sigma(raw: Tensor) -> Tensor:
    r"""Return $\sigma = \log(1 + e^{\text{raw}})$ and a floor: a positive number from any.

    >>> round(positive_sigma(torch.tensor(raw_sigma(0.5))).item(), 6)
    0.5
    """
    return softplus(raw) + SIGMA_FLOOR


def raw_sigma(sigma: float) -> float:
    """Return the number that :func:`positive_sigma` makes ``sigma`` of."""
    return math.log(math.expm1(sigma - SIGMA_FLOOR))


class _Wrapped(nn.Module):
    """A predictor whose samples become means, with sigmas beside them that do not depend on the graph."""

    noisy = True

    def __init__(self, predictor: nn.Module, num_nodes: int, out_channels: int, initial_sigma: float) -> None:
        super().__init__()
        require(
            isinstance(predictor, nn.Module),
            f"predictor needs to be a module, got {predictor!r}; build one, for example a GraphFilter",
        )
        require(noisy_channels(predictor) is None, f"{type(predictor).__name__} has noise already; do not wrap it")
        require_whole("num_nodes", num_nodes)
        require_whole("out_channels", out_channels)
        require_positive("initial_sigma", initial_sigma, INITIAL_SIGMA)
        require(
            initial_sigma > SIGMA_FLOOR,
            f"initial_sigma needs to be above {SIGMA_FLOOR}, got {initial_sigma}; scale the targets",
        )
        self.predictor, self.out_channels, self.initial_sigma = predictor, out_channels, initial_sigma

    @property
    def num_hops(self) -> int | None:
        """The locality of the predictor: the noise does not read the graph."""
        return num_hops_of(self.predictor)

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        """Return means and sigmas of every pair under each of its graphs."""
        return self._with_sigmas(self.predictor, inputs, graphs)

    def relaxed(self, inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        """Return the same with derivatives for the graphs."""
        return self._with_sigmas(relaxed_call(self.predictor), inputs, graphs)

    def _with_sigmas(self, predict: Callable[..., Tensor], inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        means = predict(inputs, graphs)
        require(
            means.shape[-1] == self.out_channels,
            f"{type(self.predictor).__name__} needs to return out_channels={self.out_channels} channels, "
            f"got {means.shape[-1]}; correct out_channels of {type(self).__name__}",
        )
        return torch.cat([means, self._sigmas(inputs).expand_as(means)], -1)

    def _sigmas(self, inputs: Inputs) -> Tensor:
        """Return sigmas that can be expanded to (batch, graph, node, channel)."""
        raise NotImplementedError

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return fresh parameters of the predictor, and the noise at its start."""
        inner = initial_parameters(self.predictor, generator)
        return {f"predictor.{name}": value for name, value in inner.items()} | self._initial_noise(generator)

    def _initial_noise(self, generator: Generator) -> dict[str, Tensor]:
        raise NotImplementedError


class WithNoise(_Wrapped):
    r"""Gaussian noise with one $\sigma$ per node and channel, whatever the input: ``log_sigma`` is learned.

    >>> from tacit.predictors import GraphFilter
    >>> predictor = WithNoise(GraphFilter(num_nodes=5, window=3, num_features=1), num_nodes=5)
    >>> outputs = predictor(torch.randn(8, 5, 3), torch.ones(1, 4, 5, 5))
    >>> outputs.shape, round(outputs[0, 0, 0, 1].item(), 4)
    (torch.Size([8, 4, 5, 2]), 0.5)
    """

    def __init__(
        self, predictor: nn.Module, num_nodes: int, out_channels: int = 1, *, initial_sigma: float = INITIAL_SIGMA
    ) -> None:
        super().__init__(predictor, num_nodes, out_channels, initial_sigma)
        start = math.log(initial_sigma - SIGMA_FLOOR)
        self.log_sigma = nn.Parameter(torch.full((num_nodes, out_channels), start))

    def _sigmas(self, inputs: Inputs) -> Tensor:
        del inputs
        return self.log_sigma.exp() + SIGMA_FLOOR  # (node, channel)

    def _initial_noise(self, generator: Generator) -> dict[str, Tensor]:
        start = math.log(self.initial_sigma - SIGMA_FLOOR)
        return {"log_sigma": torch.full_like(self.log_sigma, start, device=generator.device)}


class WithInputNoise(_Wrapped):
    r"""Gaussian noise whose $\sigma$ follows the node's own input.

    $$\sigma_i = \log(1 + \exp(b_i + u\, x_i + v\, |x_i|))$$

    $u$ and $v$ are shared by the nodes, $b$ is not. Sizes stand beside the values because noise often grows with the
    size of a value or change, whatever its sign.

    >>> from tacit.predictors import GraphFilter
    >>> predictor = WithInputNoise(GraphFilter(num_nodes=5, window=3, num_features=1), num_nodes=5, in_channels=3)
    >>> predictor(torch.randn(8, 5, 3), torch.ones(1, 4, 5, 5)).shape
    torch.Size([8, 4, 5, 2])
    """

    def __init__(
        self,
        predictor: nn.Module,
        num_nodes: int,
        in_channels: int,
        out_channels: int = 1,
        *,
        initial_sigma: float = INITIAL_SIGMA,
    ) -> None:
        super().__init__(predictor, num_nodes, out_channels, initial_sigma)
        require_whole("in_channels", in_channels)
        self.sigma_weights = nn.Parameter(torch.zeros(2 * in_channels, out_channels))
        self.sigma_bias = nn.Parameter(torch.full((num_nodes, out_channels), raw_sigma(initial_sigma)))

    def _sigmas(self, inputs: Inputs) -> Tensor:
        features = torch.cat([inputs, inputs.abs()], -1)
        return positive_sigma(features @ self.sigma_weights + self.sigma_bias)[:, None]  # (batch, 1, node, channel)

    def _initial_noise(self, generator: Generator) -> dict[str, Tensor]:
        start = raw_sigma(self.initial_sigma)
        return {
            "sigma_weights": torch.zeros_like(self.sigma_weights, device=generator.device),
            "sigma_bias": torch.full_like(self.sigma_bias, start, device=generator.device),
        }
