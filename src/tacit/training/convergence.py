r"""A convergence check of a training, from the losses of its epochs.

A learning rate that decreases to 0 makes every curve flat at its end, so progress is measured in learning rate: after
epoch $e$ it is $p_e = \sum_{k \le e} \eta_k / \sum_k \eta_k$. With $v_e$ the validation loss of the best replica and
$l$ the last epoch with $p_l \le 0.8$, training stopped too early if the loss still decreased in the last fifth,

$$v_l - v_E > 0.05\, |v_E| \quad\text{and}\quad v_l - v_E > 0.05\, (v_1 - v_E)$$

In default fits the loss decreases by at most 2% there. A fit without epochs was computed in closed form, and a single
epoch is not enough for the check.
"""

from collections.abc import Sequence
from itertools import accumulate

LATE = 0.8  # progress at which the last part begins
STILL_FALLING = 0.05  # threshold, as a share of the loss and of its total decrease
TOO_EARLY = (
    "Training stopped too early: in its last part the validation loss still decreased by {fall:.0%} of its value. "
    "Raise epochs, or use the default training options."
)


def late_fall(learning_rates: Sequence[float], losses: Sequence[float | None]) -> float:
    """Return the relative decrease of the loss in the last part; 0 if training was long enough.

    >>> round(late_fall([0.1] * 5, [1.0, 0.5, 0.4, 0.3, 0.2]), 3)
    0.5
    >>> late_fall([0.1] * 5, [1.0, 0.5, 0.4, 0.201, 0.2])
    0.0
    """
    known = [loss for loss in losses if loss is not None]
    if len(known) < max(2, len(losses)):
        return 0.0
    done = list(accumulate(learning_rates))
    late = max(0, sum(part <= LATE * done[-1] * (1 + 1e-9) for part in done) - 1)
    fall, end = known[late] - known[-1], abs(known[-1])
    return fall / end if fall > STILL_FALLING * end > 0 and fall > STILL_FALLING * (known[0] - known[-1]) else 0.0
