"""The rule that says whether training stopped too early."""

import math

import pytest

from tacit.training import CosineDecay, late_fall

EPOCHS = 50
RATES = [CosineDecay(0.1)(epoch, EPOCHS) for epoch in range(EPOCHS)]


def falling(pace, floor=0.2):
    """A loss that falls with the sum of the learning rates, as fast as ``pace`` says."""
    total, losses = 0.0, []
    for rate in RATES:
        total += rate / sum(RATES)
        losses.append(floor + math.exp(-pace * total))
    return losses


@pytest.mark.parametrize(("pace", "converged"), [(1, False), (3, False), (8, True), (50, True)])
def test_a_loss_that_still_falls_is_noticed_though_the_learning_rate_is_gone(pace, converged):
    losses = falling(pace)
    assert losses[-6] - losses[-1] < 0.02  # flat at the end, whatever the pace
    assert (late_fall(RATES, losses) == 0) == converged


def test_what_is_no_sign_of_an_early_stop():
    assert late_fall([], []) == 0  # a closed form
    assert late_fall([0.1], [1.0]) == 0
    assert late_fall(RATES, [1.0, *[None] * (EPOCHS - 1)]) == 0  # a replica that was dropped
    assert late_fall(RATES, [1.0] * EPOCHS) == 0
    assert late_fall(RATES, [0.0] * EPOCHS) == 0
    assert late_fall(RATES, [1 + epoch / EPOCHS for epoch in range(EPOCHS)]) == 0  # it rises
    assert late_fall(RATES, [1e3, *falling(3)[1:]]) == 0  # next to nothing of the whole fall


def test_two_epochs_are_too_few_where_the_second_still_helps():
    assert late_fall([0.1, 0.1], [1.0, 0.5]) == pytest.approx(1.0)
    assert late_fall([0.1, 0.1], [1.0, 0.99]) == 0
