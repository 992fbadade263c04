"""Replaying a recorded function, where there is no GPU and where there is one."""

import pytest
import torch

from tacit.training.gradient import WARM_UP_CALLS, Recorded

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="requires a CUDA device")


def test_without_a_gpu_every_call_is_a_plain_one():
    calls = []

    def double(values):
        calls.append(values)
        return (2 * values,)

    recorded = Recorded(double)
    for number in range(WARM_UP_CALLS + 3):
        assert recorded(torch.full((2,), float(number)))[0].tolist() == [2.0 * number] * 2
    assert len(calls) == WARM_UP_CALLS + 3
    assert recorded.fallback is None


@pytest.mark.gpu
@needs_gpu
def test_a_recorded_function_is_not_called_again_and_sees_new_inputs():
    calls, total = [], torch.zeros(2, device="cuda")

    def add(values):
        calls.append(1)
        total.add_(values)
        return (total * 10,)

    recorded = Recorded(add)
    for number in range(10):
        out = recorded(torch.full((2,), float(number), device="cuda"))[0]
        assert out.tolist() == [10.0 * sum(range(number + 1))] * 2
    assert len(calls) == WARM_UP_CALLS + 1  # the last of them was recorded
    assert recorded.fallback is None


@pytest.mark.gpu
@needs_gpu
def test_what_cannot_be_recorded_runs_as_before_and_says_why():
    total = torch.zeros(1, device="cuda")

    def looks(values):
        total.add_(values)
        return (values * float(values.sum().item()),)  # a look at a value stops the recording

    recorded = Recorded(looks)
    for number in range(8):
        assert recorded(torch.full((1,), float(number), device="cuda"))[0].item() == number**2
    assert total.item() == sum(range(8))
    assert recorded.fallback
