r"""Stacks of dense graph convolutions (Morris et al. 2019): a general predictor without knowledge of the system.

$$h^{(l+1)}_i = \sigma\Big( W_l\, h^{(l)}_i + V_l \sum_j A_{ij}\, h^{(l)}_j + b_l \Big)$$

Between the layers there is a ReLU or tanh; on the output a tanh, or none if it is ``"linear"``. With ``self_loops`` the
diagonal of the graph is set to 1, as in the paper's stack, so that self-loops are not learned.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Generator, Tensor, nn

from tacit.errors import require
from tacit.graph import AnyGraphs, CandidateEdges, with_self_loops
from tacit.predictors.kinds import Options, PredictorKind, Sizes
from tacit.randomness import generator_for
from tacit.registry import PREDICTORS
from tacit.shapes import Inputs, Samples

Activation = Literal["relu", "tanh"]
Output = Literal["tanh", "linear"]


class ConvolutionStack(nn.Module):
    """Graph convolutions of given widths, from the input channels to the output channels.

    >>> stack = ConvolutionStack.random([4, 8, 1], generator=torch.Generator().manual_seed(0))
    >>> stack.num_hops, stack(torch.randn(5, 6, 4), torch.ones(1, 3, 6, 6)).shape
    (2, torch.Size([5, 3, 6, 1]))
    """

    def __init__(
        self,
        widths: Sequence[int],
        *,
        self_loops: bool = False,
        activation: Activation = "relu",
        output: Output = "tanh",
    ) -> None:
        super().__init__()
        require(
            len(widths) >= 2 and all(isinstance(width, int) and width >= 1 for width in widths),
            f"widths must have at least two positive integers, got {widths}; pass for example [4, 8, 1]",
        )
        require(
            activation in get_args(Activation),
            f"activation must be one of {', '.join(get_args(Activation))}, got '{activation}'; use 'relu'",
        )
        require(
            output in get_args(Output),
            f"output must be one of {', '.join(get_args(Output))}, got '{output}'; use 'linear' for targets of any "
            "size",
        )
        self.widths, self.self_loops, self.activation, self.output = tuple(widths), self_loops, activation, output
        self.own = nn.ParameterList(torch.zeros(a, b) for a, b in itertools.pairwise(widths))
        self.neighbours = nn.ParameterList(torch.zeros(a, b) for a, b in itertools.pairwise(widths))
        self.bias = nn.ParameterList(torch.zeros(b) for b in widths[1:])

    @classmethod
    def random(
        cls,
        widths: Sequence[int],
        *,
        self_loops: bool = False,
        activation: Activation = "relu",
        output: Output = "tanh",
        generator: Generator,
    ) -> "ConvolutionStack":
        """Return a stack with random weights."""
        stack = cls(widths, self_loops=self_loops, activation=activation, output=output)
        stack.load_state_dict(stack.initial_parameters(generator))
        return stack

    @property
    def num_hops(self) -> int:
        """Number of layers; each extends the receptive field by one edge."""
        return len(self.widths) - 1

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return random weights, uniform within 1 / sqrt(number of inputs), as for PyTorch's linear layers."""
        fresh = {}
        for name, value in self.named_parameters():
            layer = int(name.rsplit(".", 1)[1])
            bound = 1 / math.sqrt(self.widths[layer])
            uniforms = torch.rand(value.shape, generator=generator, device=generator.device, dtype=value.dtype)
            fresh[name] = (2 * uniforms - 1) * bound
        return fresh

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Samples:
        """Return the output of every pair under each of its graphs."""
        graphs = with_self_loops(graphs) if self.self_loops else graphs
        hidden = inputs[:, None]  # (batch, graph or 1, node, channel)
        for layer in range(self.num_hops):
            messages = graphs @ (hidden @ self.neighbours[layer])
            hidden = hidden @ self.own[layer] + messages + self.bias[layer]
            if layer < self.num_hops - 1:
                hidden = torch.tanh(hidden) if self.activation == "tanh" else torch.relu(hidden)
        return torch.tanh(hidden) if self.output == "tanh" else hidden


def _build(sizes: Sizes, options: Options, _candidates: CandidateEdges | None, _observation: str) -> ConvolutionStack:
    hidden = options.hidden if isinstance(options.hidden, tuple) else (options.hidden,) * options.layers
    widths = [sizes.in_channels, *hidden, sizes.out_channels]
    return ConvolutionStack.random(widths, output="linear", generator=generator_for(0, "predictor"))


PREDICTORS.add(
    "convolution",
    PredictorKind(
        _build,
        uses=("hidden", "layers"),
        replicas=4,
        quick=True,
        compiles=True,
        num_layers=lambda options: options.layers + 1,
    ),
)
