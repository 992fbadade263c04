import pytest
import torch

from tacit.errors import InputError
from tacit.evaluation import persistence


def test_persistence_is_the_newest_value_of_the_target_variables():
    inputs = torch.arange(12.0).view(1, 1, 12)  # three lags of four features
    assert persistence(inputs, num_features=4, out_channels=2).flatten().tolist() == [8.0, 9.0]
    assert persistence(inputs).flatten().tolist() == [11.0]


def test_errors(unchecked):
    with pytest.raises(InputError, match="num_features needs to divide the 12 columns of inputs"):
        persistence(torch.zeros(1, 1, 12), num_features=5)
    with pytest.raises(InputError, match="at least out_channels=2, got 1"):
        persistence(torch.zeros(1, 1, 12), out_channels=2)
