r"""A recurrent unit per node, then graph layers: a general predictor for series.

$$h^{(0)}_i = \mathrm{GRU}(x_i), \qquad
  h^{(l+1)}_i = \mathrm{ReLU}\Big( W_l\, h^{(l)}_i
  + V_l\, \frac{\sum_j A_{ij} h^{(l)}_j}{\max(1, \sum_j A_{ij})} + b_l \Big)$$

$$\hat y_i = \Big[ x^{\text{new}}_i + \Big] \; P\, h^{(0)}_i + Q\, h^{(L)}_i + c$$

All weights are shared by the nodes. The window is read once per pair and node, not once per graph. Neighbours are
averaged, not summed: a mean stays in the range of the states whatever the degree, so that sampled graphs of very
different density do not throw the layers off. A row that reads nobody gets a zero. Averaging over the row alone keeps
the promise of locality. A node's own path passes through every layer and straight to the output.
"""

import math
from typing import Literal, get_args

import torch
from torch import Generator, Tensor, nn

from tacit.errors import require, require_whole
from tacit.graph import AnyGraphs, Slots
from tacit.predictors.gru import GRU
from tacit.predictors.initial import uniform_within
from tacit.predictors.kinds import Options, PredictorKind, Sizes
from tacit.predictors.noise import INITIAL_SIGMA, positive_sigma, raw_sigma
from tacit.predictors.series import SeriesLayout
from tacit.registry import OBSERVATIONS, PREDICTORS
from tacit.shapes import Inputs, Outputs

HeadNoise = Literal["none", "input", "graph"]


class RecurrentGNN(nn.Module):
    r"""A GRU per node with shared weights, then graph layers, then a linear head.

    ``noise``  "none"; "input": $\sigma_i$ from the node's own state $h^{(0)}_i$, the same under every graph; "graph":
               from $h^{(0)}_i$ and $h^{(L)}_i$. For one constant $\sigma$ per node wrap it in ``WithNoise``.

    >>> predictor = RecurrentGNN(window=12, num_features=2, hidden=8)
    >>> predictor.num_hops, predictor(torch.randn(8, 5, 24), torch.ones(1, 4, 5, 5)).shape
    (1, torch.Size([8, 4, 5, 1]))
    >>> RecurrentGNN(12, 2, noise="input")(torch.randn(8, 5, 24), torch.ones(1, 4, 5, 5)).shape
    torch.Size([8, 4, 5, 2])
    """

    def __init__(
        self,
        window: int,
        num_features: int,
        out_channels: int = 1,
        hidden: int = 32,
        num_layers: int = 1,
        residual: bool = True,
        *,
        noise: HeadNoise = "none",
    ) -> None:
        """Build it with all weights at 0; a fit starts them at random."""
        super().__init__()
        self.layout = SeriesLayout(window, num_features, out_channels)
        self.layout.require_residual(residual)
        require_whole("num_layers", num_layers)
        require(
            noise in get_args(HeadNoise),
            f"noise needs one of {', '.join(get_args(HeadNoise))}, got '{noise}'; for one sigma per node wrap the "
            "predictor in WithNoise",
        )
        self.out_channels, self.num_layers, self.residual, self.noise = out_channels, num_layers, residual, noise
        self.gru = GRU(num_features, hidden)
        self.own = nn.ParameterList(torch.zeros(hidden, hidden) for _ in range(num_layers))
        self.neighbours = nn.ParameterList(torch.zeros(hidden, hidden) for _ in range(num_layers))
        self.bias = nn.ParameterList(torch.zeros(hidden) for _ in range(num_layers))
        outputs = out_channels if noise == "none" else 2 * out_channels
        self.head_own = nn.Parameter(torch.zeros(hidden, outputs))
        self.head_graph = nn.Parameter(torch.zeros(hidden, outputs if noise == "graph" else out_channels))
        self.head_bias = nn.Parameter(self._first_bias(outputs))

    @property
    def num_hops(self) -> int:
        """Number of graph layers; each reads one edge further."""
        return self.num_layers

    @property
    def noisy(self) -> bool:
        """Are there sigmas beside the means?"""
        return self.noise != "none"

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return fresh weights, uniform within one over the root of the states; sigma starts the same everywhere."""
        bound = 1 / math.sqrt(self.gru.hidden)
        fresh = {name: uniform_within(value, bound, generator) for name, value in self.named_parameters()}
        first_bias = self._first_bias(len(self.head_bias))
        return {**fresh, "head_bias": first_bias.to(generator.device, self.head_bias.dtype)}

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        """Return the output of every pair under each of its graphs."""
        state = self.gru(self.layout.lags(inputs))[:, None]  # (batch, 1, node, hidden)
        degree = graphs.sum(-1, keepdim=True).clamp_min(1)
        hidden = state
        for own, neighbours, bias in zip(self.own, self.neighbours, self.bias, strict=True):
            messages = graphs @ (hidden @ neighbours) / degree
            hidden = torch.relu(hidden @ own + messages + bias)  # (batch, graph, node, hidden)
        from_own, from_graph = state @ self.head_own + self.head_bias, hidden @ self.head_graph
        channels = self.out_channels
        means: Tensor = from_own[..., :channels] + from_graph[..., :channels]
        if self.residual:
            means = means + self.layout.newest(inputs)[:, None]
        if self.noise == "none":
            return means
        raw = from_own[..., channels:]
        if self.noise == "graph":
            raw = raw + from_graph[..., channels:]
        return torch.cat([means, positive_sigma(raw).expand_as(means)], -1)

    def _first_bias(self, outputs: int) -> Tensor:
        bias = torch.zeros(outputs)
        bias[self.out_channels :] = raw_sigma(INITIAL_SIGMA)
        return bias


def _build(sizes: Sizes, options: Options, _slots: Slots | None, observation: str) -> RecurrentGNN:
    require(
        isinstance(options.hidden, int),
        f"hidden in [predictor] must be one number for 'recurrent', got {options.hidden}; pass for example 32",
    )
    return RecurrentGNN(
        sizes.window,
        sizes.num_features,
        sizes.out_channels,
        options.hidden,
        options.layers,
        bool(options.residual),
        numbers_per_target=OBSERVATIONS[observation].num_given,
    )


PREDICTORS.add(
    "recurrent",
    PredictorKind(
        _build,
        uses=("hidden", "layers", "residual"),
        predicts_change=True,
        observation="gaussian_head",
        compiles=True,
    ),
)
