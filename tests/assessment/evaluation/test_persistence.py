import torch

from tacit.assessment.evaluation import persistence


def test_persistence_is_the_newest_value_of_the_target_variables():
    inputs = torch.arange(12.0).view(1, 1, 12)  # three lags of four features
    assert persistence(inputs, num_features=4, out_channels=2).flatten().tolist() == [8.0, 9.0]
    assert persistence(inputs).flatten().tolist() == [11.0]


def test_errors(unchecked, refused):
    refused(persistence, torch.zeros(1, 1, 12), num_features=5)
    refused(persistence, torch.zeros(1, 1, 12), out_channels=2)
