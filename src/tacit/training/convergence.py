r"""Has a training converged? A fixed rule on the losses of its epochs.

A learning rate that falls to 0 makes every curve flat at its end, so that progress is counted in learning rate: after
epoch $e$ it is $p_e = \sum_{k \le e} \eta_k / \sum_k \eta_k$. With $v_e$ the validation loss of the best replica and
$l$ the last epoch with $p_l \le 0.8$, training stopped too early if the loss still fell in the last fifth,

$$v_l - v_E > 0.05\, |v_E| \quad\text{and}\quad v_l - v_E > 0.05\, (v_1 - v_E)$$

Default fits fall by at most 0.02 of their loss there. A fit without epochs has a closed form, and one epoch shows
nothing.
"""

from collections.abc import Sequence
from itertools import accumulate

LATE = 0.8  # of the progress
STILL_FALLING = 0.05  # of the loss, and of its whole fall
TOO_EARLY = (
    "Training stopped too early: in its last part the validation loss still fell by {fall:.0%} of its value. Raise "
    "epochs, or leave the options of the training out."
)


def late_fall(learning_rates: Sequence[float], losses: Sequence[float | None]) -> float:
    """Return by how much of its value the loss still fell at the end; 0 where training went on long enough.

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
