import pytest
import torch
from benchmarks.polynomial_filter import PolynomialFilter

from tacit.estimators import check_locality, check_relaxation
from tacit.predictors import initial_parameters
from toys import even_graph


def polynomial_filter(history, adjacency, coefficients, activation):
    """sum_l sum_p c[l, p] S^l x_p for one pair and one graph, S with ones on its diagonal; history (node, lag)."""
    shift = adjacency.clone().fill_diagonal_(1)
    total = torch.zeros(len(history), dtype=history.dtype)
    powers, lags = coefficients.shape
    for power in range(powers):
        for column in range(lags):
            lag = history[:, history.shape[1] - lags + column]  # the last column is the newest lag
            total += coefficients[power, column] * torch.linalg.matrix_power(shift, power) @ lag
    return torch.tanh(total) if activation == "tanh" else total


@pytest.mark.parametrize("activation", ["tanh", "linear"])
@pytest.mark.parametrize(("powers", "lags", "features", "channels"), [(2, 1, 1, 1), (3, 2, 1, 1), (4, 3, 3, 2)])
@pytest.mark.parametrize("shared", [True, False])
def test_equals_the_loop(rng, activation, powers, lags, features, channels, shared):
    coefficients = torch.randn(powers, lags, generator=rng, dtype=torch.float64) / 4
    predictor = PolynomialFilter(coefficients, activation=activation, num_features=features, out_channels=channels)
    inputs = torch.randn(4, 5, 6 * features, generator=rng, dtype=torch.float64)
    graphs = (torch.rand(1 if shared else 4, 3, 5, 5, generator=rng) < 0.4).double()  # some with self-loops, some not
    samples = predictor(inputs, graphs)
    assert samples.shape == (4, 3, 5, channels)
    for b in range(4):
        for s in range(3):
            for channel in range(channels):
                history = torch.stack([inputs[b, :, lag * features + channel] for lag in range(6)], dim=1)
                expected = polynomial_filter(history, graphs[0 if shared else b, s], coefficients, activation)
                assert torch.allclose(samples[b, s, :, channel], expected, atol=1e-12)


def test_row_receives_and_column_sends():
    reads = torch.tensor([[0.0, 1.0], [0.0, 0.0]])  # node 0 reads node 1
    predictor = PolynomialFilter(torch.tensor([[0.0], [1.0]]), activation="linear")
    assert predictor(torch.tensor([[[10.0], [1.0]]]), reads[None, None]).flatten().tolist() == [11.0, 1.0]


def test_the_first_column_belongs_to_the_older_lag():
    predictor = PolynomialFilter(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), activation="linear")
    window = torch.tensor([[[3.0, 4.0, 5.0]]])  # 5 is the newest
    assert predictor(window, torch.zeros(1, 1, 1, 1)).item() == 4.0


def test_it_is_as_local_as_it_says_and_has_derivatives(rng):
    for powers in (2, 3, 4):
        predictor = PolynomialFilter(torch.randn(powers, 2, generator=rng) / 4)
        assert predictor.num_hops == powers - 1
        check_locality(predictor, even_graph(10), 3, predictor.num_hops, generator=rng)
        check_relaxation(predictor, even_graph(10), 3, generator=rng)


def test_fresh_coefficients_follow_the_generator():
    predictor = PolynomialFilter(torch.ones(3, 2))
    first, again, other = (initial_parameters(predictor, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert set(first) == {"coefficients"}
    assert first["coefficients"].shape == (3, 2)
    assert torch.equal(first["coefficients"], again["coefficients"])
    assert not torch.equal(first["coefficients"], other["coefficients"])
    assert 0 < first["coefficients"].abs().max() <= PolynomialFilter.INITIAL_RANGE


def test_errors(unchecked, refused):
    refused(PolynomialFilter, [[1.0], [2.0]])
    refused(PolynomialFilter, torch.ones(1, 2))
    refused(PolynomialFilter, torch.full((2, 2), torch.nan))
    refused(PolynomialFilter, torch.ones(2, 2), activation="relu")
    refused(PolynomialFilter, torch.ones(2, 2), out_channels=2)
    refused(PolynomialFilter(torch.ones(2, 3)), torch.ones(1, 2, 2), torch.ones(1, 1, 2, 2))
