"""Small graphs are computed with one thread, whatever torch is set to; the number is put back."""

import pytest
import torch

from tacit.threads import LARGE, threads_for


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_small_graphs_have_one_thread_and_large_ones_all():
    with threads_for(LARGE):
        assert torch.get_num_threads() == 1
        with threads_for(4):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with threads_for(LARGE + 1):
        assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_the_number_is_put_back_after_an_error():
    with pytest.raises(KeyboardInterrupt), threads_for(1):
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 2
