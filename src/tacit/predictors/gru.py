r"""A gated recurrent unit (Cho et al. 2014), written out so that ``torch.func`` and tracing work.

$$r = \sigma(W_r x + V_r h), \quad z = \sigma(W_z x + V_z h), \quad
  n = \tanh(W_n x + r \odot V_n h), \quad h' = (1 - z) \odot n + z \odot h$$

Both linear maps have biases, and gates are in the order $r, z, n$. The weights are those of ``torch.nn.GRU``, whose
fused kernels do not support ``torch.func``.
"""

import math

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.errors import require_int
from tacit.predictors.protocol import uniform_within


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
