r"""The paper's predictor: each hop of the graph has its own linear map.

$$f_\psi(x, A) = \tanh\Big( \sum_{l=1}^{L} 1[A^l \neq 0]\, x\, \psi_l \Big)$$
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.errors import require, require_int
from tacit.graph import AnyGraphs, CandidateEdges, aggregate, powers, relaxed_powers
from tacit.predictors.kinds import Options, PredictorKind, Sizes
from tacit.randomness import generator_for
from tacit.registry import PREDICTORS
from tacit.shapes import Inputs, Samples

HopWeights = Float[Tensor, "hop in_channel channel"]
# Up to this size a compiled sum is faster than a matrix product (H200: its backward pass took 31 us of a step of 160).
FEW_WEIGHTS = 64


class HopPredictor(nn.Module):
    r"""$\tanh(\sum_l 1[A^l \neq 0]\, x\, \psi_l)$ with ``hop_weights`` $\psi$, one matrix per hop.

    >>> predictor = HopPredictor(torch.ones(2, 4, 1))
    >>> predictor.num_hops, predictor(torch.randn(8, 5, 4), torch.ones(1, 3, 5, 5)).shape
    (2, torch.Size([8, 3, 5, 1]))
    """

    # Random psi starts uniformly between minus and plus this value (measured: most of 32 starts converge well).
    INITIAL_RANGE = 0.5

    def __init__(self, hop_weights: HopWeights) -> None:
        super().__init__()
        require(
            isinstance(hop_weights, Tensor) and hop_weights.is_floating_point(),
            "hop_weights must be a tensor of floats; use torch.as_tensor(values).float()",
        )
        require(
            hop_weights.ndim == 3 and hop_weights.numel() > 0,
            f"hop_weights must have shape (hops, in_channels, channels), got {tuple(hop_weights.shape)}; "
            "pass one matrix per hop",
        )
        require(
            bool(torch.isfinite(hop_weights).all()),
            "hop_weights must have finite numbers, got NaN or infinity; correct them",
        )
        self.hop_weights = nn.Parameter(hop_weights.detach().clone())

    @classmethod
    def random(cls, num_hops: int, in_channels: int, channels: int = 1, *, generator: Generator) -> "HopPredictor":
        """Return a predictor with random weights."""
        for name, value in (("num_hops", num_hops), ("in_channels", in_channels), ("channels", channels)):
            require_int(name, value)
        predictor = cls(torch.zeros(num_hops, in_channels, channels, device=generator.device))
        predictor.load_state_dict(predictor.initial_parameters(generator))
        return predictor

    @property
    def num_hops(self) -> int:
        """Number of hops L; the output of a node depends on the rows of nodes within L - 1 edges."""
        return self.hop_weights.shape[-3]

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return random weights."""
        shape, device = self.hop_weights.shape, generator.device
        uniforms = torch.rand(shape, generator=generator, device=device, dtype=self.hop_weights.dtype)
        return {"hop_weights": (2 * uniforms - 1) * self.INITIAL_RANGE}

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Samples:
        """Return the output of every pair under each of its graphs."""
        return self._output(inputs, powers(graphs, self.num_hops))

    def relaxed(self, inputs: Inputs, graphs: AnyGraphs) -> Samples:
        """Return an output that is differentiable in the graphs; the same output for edges of 0 and 1."""
        return self._output(inputs, relaxed_powers(graphs, self.num_hops))

    def _output(self, inputs: Inputs, powers: Iterator[AnyGraphs]) -> Samples:
        if inputs.is_cuda and self.hop_weights.numel() <= FEW_WEIGHTS:
            messages = (inputs[None, ..., None] * self.hop_weights[:, None, None]).sum(-2)
        else:
            messages = torch.einsum("bjc,lco->lbjo", inputs, self.hop_weights)  # (hop, batch, node, channel)
        total: Tensor | float = 0.0
        for hop, power in enumerate(powers):
            total = total + aggregate(power, messages[hop])
        return torch.tanh(torch.as_tensor(total))


def _build(sizes: Sizes, options: Options, _candidates: CandidateEdges | None, _observation: str) -> HopPredictor:
    generator = generator_for(0, "predictor")
    return HopPredictor.random(options.num_hops, sizes.in_channels, sizes.out_channels, generator=generator)


PREDICTORS.add(
    "hops",
    PredictorKind(
        _build,
        uses=("num_hops",),
        scaled=False,
        observation="none",
        learning_rate=0.1,  # the rate of the edges: there are few weights, shared by all nodes
        replicas=8,  # two to four of eight starts reach the best minimum
        quick=True,
        compiles=True,
        gated_by_inputs=True,
        edge_channels=lambda sizes, _: sizes.in_channels,
        num_layers=lambda options: options.num_hops,
    ),
)
