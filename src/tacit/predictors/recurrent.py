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

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.errors import require_whole
from tacit.graph import AnyGraphs, Slots
from tacit.predictors.kinds import Options, PredictorKind, Sizes, one_width
from tacit.predictors.protocol import uniform_within
from tacit.predictors.series import SeriesLayout
from tacit.registry import OBSERVATIONS, PREDICTORS
from tacit.shapes import Inputs, Outputs


class GRU(nn.Module):
    r"""A gated recurrent unit (Cho et al. 2014): reads a window, the oldest lag first, and returns the last state.

    $$r = \sigma(W_r x + V_r h), \quad z = \sigma(W_z x + V_z h), \quad
      n = \tanh(W_n x + r \odot V_n h), \quad h' = (1 - z) \odot n + z \odot h$$

    Biases on both maps, gates in the order $r, z, n$: the weights are those of ``torch.nn.GRU``, whose fused kernels do
    not pass through ``torch.func``.

    >>> GRU(num_features=2, hidden=8)(torch.randn(4, 3, 12, 2)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(self, num_features: int, hidden: int) -> None:
        """Build the unit with all weights at 0."""
        super().__init__()
        require_whole("num_features", num_features)
        require_whole("hidden", hidden)
        self.hidden = hidden
        self.weight_ih = nn.Parameter(torch.zeros(3 * hidden, num_features))
        self.weight_hh = nn.Parameter(torch.zeros(3 * hidden, hidden))
        self.bias_ih = nn.Parameter(torch.zeros(3 * hidden))
        self.bias_hh = nn.Parameter(torch.zeros(3 * hidden))

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return fresh weights, uniform within one over the root of the states, as in PyTorch."""
        bound = 1 / math.sqrt(self.hidden)
        return {name: uniform_within(value, bound, generator) for name, value in self.named_parameters()}

    def forward(self, windows: Float[Tensor, "batch node lag feature"]) -> Float[Tensor, "batch node hidden"]:
        """Return the state of every node of every pair; the weights are shared by all."""
        from_inputs = windows @ self.weight_ih.mT + self.bias_ih  # (batch, node, lag, 3 * hidden), all lags at once
        state = from_inputs.new_zeros(*windows.shape[:2], self.hidden)
        for now in from_inputs.unbind(2):
            from_state = state @ self.weight_hh.mT + self.bias_hh
            reset_in, update_in, new_in = now.chunk(3, -1)
            reset_state, update_state, new_state = from_state.chunk(3, -1)
            reset = torch.sigmoid(reset_in + reset_state)
            update = torch.sigmoid(update_in + update_state)
            new = torch.tanh(new_in + reset * new_state)
            state = new + update * (state - new)
        return state


class RecurrentGNN(nn.Module):
    r"""A GRU per node with shared weights, then graph layers, then a linear head.

    ``numbers_per_target``  1, the mean; or more for an observation model that reads them, for example 2 for
                            :class:`~tacit.observation.HeadGaussianNoise`. The further numbers start at 0
    ``head_reads_graph``    the further numbers are read off $h^{(0)}_i$ and $h^{(L)}_i$; off the node's own state
                            $h^{(0)}_i$ alone, the same under every graph, when False

    >>> predictor = RecurrentGNN(window=12, num_features=2, hidden=8)
    >>> predictor.num_hops, predictor(torch.randn(8, 5, 24), torch.ones(1, 4, 5, 5)).shape
    (1, torch.Size([8, 4, 5, 1]))
    >>> RecurrentGNN(12, 2, numbers_per_target=2)(torch.randn(8, 5, 24), torch.ones(1, 4, 5, 5)).shape
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
        numbers_per_target: int = 1,
        head_reads_graph: bool = False,
    ) -> None:
        """Build it with all weights at 0; a fit starts them at random."""
        super().__init__()
        self.layout = SeriesLayout(window, num_features, out_channels)
        self.layout.require_residual(residual)
        require_whole("num_layers", num_layers)
        require_whole("numbers_per_target", numbers_per_target)
        self.out_channels, self.num_layers, self.residual = out_channels, num_layers, residual
        self.numbers_per_target, self.head_reads_graph = numbers_per_target, head_reads_graph
        self.gru = GRU(num_features, hidden)
        self.own = nn.ParameterList(torch.zeros(hidden, hidden) for _ in range(num_layers))
        self.neighbours = nn.ParameterList(torch.zeros(hidden, hidden) for _ in range(num_layers))
        self.bias = nn.ParameterList(torch.zeros(hidden) for _ in range(num_layers))
        outputs = numbers_per_target * out_channels
        self.head_own = nn.Parameter(torch.zeros(hidden, outputs))
        self.head_graph = nn.Parameter(torch.zeros(hidden, outputs if head_reads_graph else out_channels))
        self.head_bias = nn.Parameter(torch.zeros(outputs))

    @property
    def num_hops(self) -> int:
        """Number of graph layers; each reads one edge further."""
        return self.num_layers

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return fresh weights, uniform within one over the root of the states; the head's bias starts at 0."""
        bound = 1 / math.sqrt(self.gru.hidden)
        fresh = {name: uniform_within(value, bound, generator) for name, value in self.named_parameters()}
        return {**fresh, "head_bias": torch.zeros_like(self.head_bias, device=generator.device)}

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
        further = from_own[..., channels:]
        if self.head_reads_graph:
            further = further + from_graph[..., channels:]
        if self.numbers_per_target == 1:
            return means
        return torch.cat([means, further.expand(*means.shape[:-1], -1)], -1)


def _build(sizes: Sizes, options: Options, _slots: Slots | None, observation: str) -> RecurrentGNN:
    return RecurrentGNN(
        sizes.window,
        sizes.num_features,
        sizes.out_channels,
        one_width(options),
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
