r"""Adam (Kingma and Ba 2015), for all replicas at once and in place.

$$m \leftarrow \beta_1 m + (1 - \beta_1)\, g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2, \qquad
  p \leftarrow p - \eta\, \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \varepsilon}$$

The same numbers as ``torch.optim.Adam``. It is written out because a step here is a fraction of a millisecond: six
operations instead of an optimizer's bookkeeping, and on a GPU one kernel together with what follows them.
"""

from torch import Tensor

EPSILON = 1e-8  # PyTorch's


def adam_(
    value: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    rate: float | Tensor,
    betas: tuple[float, float],
    corrections: tuple[float | Tensor, float | Tensor],
) -> None:
    r"""Move ``value``, and with it the moments; ``corrections`` are $1 - \beta_1^t$ and $1 - \beta_2^t$.

    >>> import torch
    >>> value, first, second = torch.ones(1), torch.zeros(1), torch.zeros(1)
    >>> adam_(value, torch.tensor([3.0]), first, second, rate=0.1, betas=(0.9, 0.99), corrections=(0.1, 0.01))
    >>> round(value.item(), 4)  # the first step is as long as the rate, whatever the gradient
    0.9
    """
    first.lerp_(gradient, 1 - betas[0])
    second.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    length = (second / corrections[1]).sqrt_().add_(EPSILON)
    value.sub_(first / length * (rate / corrections[0]))
