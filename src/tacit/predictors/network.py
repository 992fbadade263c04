r"""A state per node from its window, then graph layers: a general predictor for series.

$$h^{(0)}_i = \mathrm{encoder}(x_i), \qquad
  h^{(l+1)}_i = \mathrm{ReLU}\Big( W_l\, h^{(l)}_i
  + V_l\, \frac{\sum_j A_{ij} h^{(l)}_j}{\max(1, \sum_j A_{ij})} + b_l \Big)$$

$$\hat y_i = \Big[ x^{\text{new}}_i + \Big] \; P\, h^{(0)}_i + Q\, h^{(L)}_i + c + \sum_k \beta_{ik} b_{ik}$$

The encoder is two dense layers (``feedforward``) or a recurrent unit (``recurrent``). All nodes share the weights. The
window is encoded once per pair and node, not once per graph, with the covariates known at the time of the target beside
every lag. Neighbours are averaged, not summed, so that the range of the states does not depend on the degree; a node
without neighbours gets zeros. A node's own state passes through every layer and directly to the output.

Only the columns $b_{ik}$ of the background have weights $\beta_{ik}$ of each node, because a cycle has another phase at
each node. They are not encoded. The window is read as deviations from the level of the background, if there is one.

Two dense layers encode the window of a node as

$$h_i = \mathrm{ReLU}\big( W_2\, \mathrm{ReLU}(W_1 x_i + b_1) + b_2 \big)$$

They need a tenth of the computation of a recurrent unit. On five hourly and simulated series the forecasts were equal
or better on four (docs/results/SPEED.md).

A gated recurrent unit (Cho et al. 2014) is written out, so that ``torch.func`` and tracing work.

$$r = \sigma(W_r x + V_r h), \quad z = \sigma(W_z x + V_z h), \quad
  n = \tanh(W_n x + r \odot V_n h), \quad h' = (1 - z) \odot n + z \odot h$$

Both linear maps have biases, and gates are in the order $r, z, n$. The weights are those of ``torch.nn.GRU``, whose
fused kernels do not support ``torch.func``.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.errors import require_int
from tacit.graph import AnyGraphs, CandidateEdges
from tacit.predictors.kinds import Options, PredictorKind, Sizes, one_width
from tacit.predictors.protocol import uniform_within
from tacit.predictors.series import SeriesLayout
from tacit.registry import OBSERVATIONS, PREDICTORS
from tacit.shapes import Inputs, Outputs

LEARNING_RATE, STEPS = 0.01, 1000  # a lower rate requires more steps for the same CRPS (docs/results/SPEED.md)


class GRU(nn.Module):
    """A recurrent encoder: it processes a window from the oldest lag and returns the state after the newest.

    >>> GRU(num_features=2, hidden=8)(torch.randn(4, 3, 12, 2)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(self, num_features: int, hidden: int) -> None:
        """Build the unit with all weights 0."""
        super().__init__()
        require_int("num_features", num_features)
        require_int("hidden", hidden)
        self.hidden = hidden
        self.weight_ih = nn.Parameter(torch.zeros(3 * hidden, num_features))
        self.weight_hh = nn.Parameter(torch.zeros(3 * hidden, hidden))
        self.bias_ih = nn.Parameter(torch.zeros(3 * hidden))
        self.bias_hh = nn.Parameter(torch.zeros(3 * hidden))

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return random weights, uniform within 1 / sqrt(hidden), as in PyTorch."""
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


class WindowLayers(nn.Module):
    """An encoder of all lags of a window to a state; the inner layer is twice as wide as the state.

    >>> WindowLayers(window=12, num_features=2, hidden=8)(torch.randn(4, 3, 12, 2)).shape
    torch.Size([4, 3, 8])
    """

    def __init__(self, window: int, num_features: int, hidden: int) -> None:
        """Build the layers with all weights 0."""
        super().__init__()
        for name, size in (("window", window), ("num_features", num_features), ("hidden", hidden)):
            require_int(name, size)
        self.hidden = hidden
        self.first = nn.Parameter(torch.zeros(window * num_features, 2 * hidden))
        self.first_bias = nn.Parameter(torch.zeros(2 * hidden))
        self.second = nn.Parameter(torch.zeros(2 * hidden, hidden))
        self.second_bias = nn.Parameter(torch.zeros(hidden))

    def forward(self, windows: Float[Tensor, "batch node lag feature"]) -> Float[Tensor, "batch node hidden"]:
        """Return the state of every node of every pair; the weights are shared by all."""
        inner = torch.relu(windows.flatten(-2) @ self.first + self.first_bias)
        return torch.relu(inner @ self.second + self.second_bias)


class GraphNetwork(nn.Module):
    r"""An encoder of the window, graph layers and a linear head.

    ``encoder``             maps windows (batch, node, lag, feature) to states (batch, node, hidden); has an attribute
                            ``hidden``
    ``numbers_per_target``  1, the mean; or more for an observation model that uses them, for example 2 for
                            :class:`~tacit.observation.HeadGaussianNoise`. The additional numbers start at 0
    ``background``          nodes and columns of the background, which are the last known columns
    ``head_reads_graph``    True: the additional numbers depend on $h^{(0)}_i$ and $h^{(L)}_i$. False: they depend only
                            on the node's own state $h^{(0)}_i$ and are the same for every graph

    >>> predictor = GraphNetwork.recurrent(window=12, num_features=2, hidden=8)
    >>> predictor.num_hops, predictor(torch.randn(8, 5, 24), torch.ones(1, 4, 5, 5)).shape
    (1, torch.Size([8, 4, 5, 1]))
    >>> GraphNetwork.feedforward(12, 2, numbers_per_target=2)(torch.randn(8, 5, 24), torch.ones(1, 4, 5, 5)).shape
    torch.Size([8, 4, 5, 2])
    """

    def __init__(
        self,
        layout: SeriesLayout,
        encoder: GRU | WindowLayers,
        num_layers: int = 1,
        residual: bool = True,
        *,
        numbers_per_target: int = 1,
        head_reads_graph: bool = False,
        background: tuple[int, int] = (0, 0),
    ) -> None:
        """Build the network with all weights 0; a fit starts at random weights."""
        super().__init__()
        layout.require_residual(residual)
        require_int("num_layers", num_layers)
        require_int("numbers_per_target", numbers_per_target)
        self.layout, self.encoder, self.num_layers, self.residual = layout, encoder, num_layers, residual
        self.numbers_per_target, self.head_reads_graph = numbers_per_target, head_reads_graph
        self.out_channels, self.hidden = layout.out_channels, encoder.hidden
        square = self.hidden, self.hidden
        self.own = nn.ParameterList(torch.zeros(square) for _ in range(num_layers))
        self.neighbours = nn.ParameterList(torch.zeros(square) for _ in range(num_layers))
        self.bias = nn.ParameterList(torch.zeros(self.hidden) for _ in range(num_layers))
        outputs = numbers_per_target * layout.out_channels
        self.head_own = nn.Parameter(torch.zeros(self.hidden, outputs))
        self.head_graph = nn.Parameter(torch.zeros(self.hidden, outputs if head_reads_graph else layout.out_channels))
        self.head_bias = nn.Parameter(torch.zeros(outputs))
        self.register_parameter("background", None)
        if background[1]:
            self.background = nn.Parameter(torch.zeros(*background, layout.out_channels))

    @classmethod
    def of_sizes(
        cls,
        encoder: Callable[[int, int], GRU | WindowLayers],
        window: int,
        num_features: int,
        out_channels: int = 1,
        hidden: int = 32,
        *more: Any,
        known: int = 0,
        levels: int = 0,
        background: tuple[int, int] = (0, 0),
        **head: Any,
    ) -> "GraphNetwork":
        """Build a network; ``encoder`` is built from the numbers of features and of hidden units.

        Further arguments are those of the class from ``num_layers`` on.
        """
        layout = SeriesLayout(window, num_features, out_channels, known, levels)
        made = encoder(num_features + known - background[1], hidden)
        return cls(layout, made, *more, background=background, **head)

    @classmethod
    def recurrent(cls, window: int, num_features: int, *sizes: Any, **more: Any) -> "GraphNetwork":
        """Build a network with a recurrent encoder; further arguments as in :meth:`of_sizes`."""
        return cls.of_sizes(GRU, window, num_features, *sizes, **more)

    @classmethod
    def feedforward(cls, window: int, num_features: int, *sizes: Any, **more: Any) -> "GraphNetwork":
        """Build a network with two dense layers as encoder; further arguments as in :meth:`of_sizes`."""
        return cls.of_sizes(partial(WindowLayers, window), window, num_features, *sizes, **more)

    @property
    def num_hops(self) -> int:
        """Number of graph layers; each extends the receptive field by one edge."""
        return self.num_layers

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return random weights, uniform within 1 / sqrt(hidden); the head's bias and the background start at 0."""
        bound, zeros = 1 / math.sqrt(self.hidden), ("head_bias", "background")
        return {
            name: torch.zeros_like(value, device=generator.device)
            if name in zeros
            else uniform_within(value, bound, generator)
            for name, value in self.named_parameters()
        }

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        """Return the output of every pair under each of its graphs."""
        windows, known = self.layout.lags(self.layout.relative(inputs)), self.layout.trailing(inputs)
        own_columns = 0 if self.background is None else self.background.shape[-2]
        if covariates := self.layout.known - own_columns:
            beside = known[:, :, None, :covariates].expand(-1, -1, self.layout.window, -1)
            windows = torch.cat([windows, beside], -1)  # (batch, node, lag, feature + covariate)
        state = self.encoder(windows)[:, None]  # (batch, 1, node, hidden)
        degree = graphs.sum(-1, keepdim=True).clamp_min(1)
        hidden = state
        for own, neighbours, bias in zip(self.own, self.neighbours, self.bias, strict=True):
            messages = graphs @ (hidden @ neighbours) / degree
            hidden = torch.relu(hidden @ own + messages + bias)  # (batch, graph, node, hidden)
        from_own, from_graph = state @ self.head_own + self.head_bias, hidden @ self.head_graph
        channels = self.out_channels
        means: Tensor = from_own[..., :channels] + from_graph[..., :channels]
        if self.background is not None:
            means = means + torch.einsum("bnk,nkc->bnc", known[..., -own_columns:], self.background)[:, None]
        if self.residual:
            means = means + self.layout.newest(inputs)[:, None]
        further = from_own[..., channels:]
        if self.head_reads_graph:
            further = further + from_graph[..., channels:]
        if self.numbers_per_target == 1:
            return means
        return torch.cat([means, further.expand(*means.shape[:-1], -1)], -1)


def _register(name: str, make: Callable[..., GraphNetwork], *, compiles: bool) -> None:
    def build(sizes: Sizes, options: Options, _candidates: CandidateEdges | None, observation: str) -> GraphNetwork:
        return make(
            sizes.window,
            sizes.num_features,
            sizes.out_channels,
            one_width(options),
            options.layers,
            bool(options.residual),
            numbers_per_target=OBSERVATIONS[observation].num_given,
            known=sizes.known,
            levels=sizes.levels,
            background=(sizes.num_nodes, sizes.background),
        )

    kind = PredictorKind(
        build,
        uses=("hidden", "layers", "residual"),
        predicts_change=True,
        background=True,
        observation="gaussian_head",
        learning_rate=LEARNING_RATE,
        steps=STEPS,
        compiles=compiles,
    )
    PREDICTORS.add(name, kind)


# Compiling makes a step of the dense layers 30% faster, but takes as long as all steps of a default training.
_register("feedforward", GraphNetwork.feedforward, compiles=False)
_register("recurrent", GraphNetwork.recurrent, compiles=True)
