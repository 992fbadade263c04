r"""Polynomial graph filter over lags: the predictor behind GPVAR, a vector autoregression on a graph.

$$\hat x_t = \tanh\Big( \sum_{l=0}^{L} \sum_{p=1}^{P} \psi_{l,p}\, S^l x_{t - P - 1 + p} \Big), \qquad S = A + I$$

$\psi$ are the ``coefficients``, (hops + 1, lags). The first column belongs to the oldest lag that is read, $t - P$, the
last to $t - 1$, as in the code of Cini et al. (2023, "Sparse graph learning from spatiotemporal time series"). $S$ is
not normalised. The diagonal of the graph is taken as 1 whatever it was: what a node reads of itself is always on, and
not learned from the graph.
"""

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.errors import require, require_int
from tacit.graph import AnyGraphs
from tacit.shapes import Inputs, Samples

Coefficients = Float[Tensor, "power lag"]
FilterActivation = Literal["tanh", "linear"]


class PolynomialFilter(nn.Module):
    """Powers 0 to L of the graph, each with a number per lag; reads the newest lags of the target variables alone.

    ``inputs`` are windows, (batch, node, window * num_features) with the lag in front and the oldest first; the
    target variables are the first ``out_channels`` features, and all are filtered alike.

    >>> filter = PolynomialFilter(torch.tensor([[0.0, 1.0], [0.5, 0.0]]), activation="linear")
    >>> windows = torch.tensor([[[9.0, 0.0, 1.0], [9.0, 4.0, 0.0]]])       # two nodes, three lags
    >>> reads = torch.tensor([[0.0, 1.0], [0.0, 0.0]])                     # node 0 reads node 1
    >>> filter.num_hops, filter(windows, reads[None, None]).flatten().tolist()
    (1, [3.0, 2.0])
    """

    # Random psi starts uniformly in this range on either side of 0 (GPVAR, 10,000 steps: F1 of 6 starts 0.995 to 1).
    INITIAL_RANGE = 0.5

    def __init__(
        self,
        coefficients: Coefficients,
        *,
        activation: FilterActivation = "tanh",
        num_features: int = 1,
        out_channels: int = 1,
    ) -> None:
        super().__init__()
        require(
            isinstance(coefficients, Tensor) and coefficients.is_floating_point(),
            "coefficients must be a tensor of floats; use torch.as_tensor(values).float()",
        )
        require(
            coefficients.ndim == 2 and coefficients.shape[0] >= 2 and coefficients.shape[1] >= 1,
            f"coefficients must have shape (hops + 1, lags) with at least one hop and one lag, got "
            f"{tuple(coefficients.shape)}; pass a row for each power of the graph, from 0",
        )
        require(
            bool(torch.isfinite(coefficients).all()),
            "coefficients must have finite numbers, got NaN or infinity; check them",
        )
        require(
            activation in get_args(FilterActivation),
            f"activation must be one of {', '.join(get_args(FilterActivation))}, got '{activation}'; use 'tanh'",
        )
        require_int("num_features", num_features)
        require_int("out_channels", out_channels)
        require(
            out_channels <= num_features,
            f"out_channels must be at most num_features={num_features}, got {out_channels}; lower it",
        )
        self.activation, self.num_features, self.out_channels = activation, num_features, out_channels
        self.coefficients = nn.Parameter(coefficients.detach().clone())

    @property
    def num_hops(self) -> int:
        """The highest power L; the output of a node depends on rows of nodes within L - 1 edges."""
        return self.coefficients.shape[-2] - 1

    @property
    def num_lags(self) -> int:
        """How many lags are read, the newest of the window."""
        return self.coefficients.shape[-1]

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return fresh random coefficients."""
        shape, dtype = self.coefficients.shape, self.coefficients.dtype
        uniforms = torch.rand(shape, generator=generator, device=generator.device, dtype=dtype)
        return {"coefficients": (2 * uniforms - 1) * self.INITIAL_RANGE}

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Samples:
        r"""Return the output of every pair under each of its graphs, by Horner's rule: no power of $S$ is formed."""
        messages = torch.einsum("lp,bnpo->lbno", self.coefficients, self._newest(inputs))[:, :, None]
        own = 1 - graphs.diagonal(dim1=-2, dim2=-1)[..., None]  # what is missing of a 1 on the diagonal
        total = messages[-1]  # (batch, 1, node, channel), from the first product on (batch, graph, node, channel)
        for hop in range(self.num_hops - 1, -1, -1):
            total = graphs @ total + own * total + messages[hop]
        return torch.tanh(total) if self.activation == "tanh" else total

    def _newest(self, inputs: Inputs) -> Float[Tensor, "batch node lag channel"]:
        columns = inputs.shape[-1]
        window = columns // self.num_features
        require(
            columns == window * self.num_features and window >= self.num_lags,
            f"inputs must have window * num_features columns with num_features={self.num_features} and a window of at "
            f"least {self.num_lags} lags, got {columns} columns; cut longer windows",
        )
        by_lag = inputs.reshape(*inputs.shape[:-1], window, self.num_features)
        return by_lag[..., -self.num_lags :, : self.out_channels]
