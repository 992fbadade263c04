"""Draws of mean equations: left out edges against regressions without them, uncertain edges, and lags."""

from dataclasses import replace

import pytest
import torch

from gates import OFTEN, filter_model, gate_pairs
from tacit.local import Dependence, LocalModel, MeanEquations, has_linear_mean, mean_equations
from tacit.local.equations import _other_lags, _without

DOUBLE = torch.float64
COUNT = 4_000


def known(exists, lags=1):
    """Two nodes, and an edge from the second to the first; the covariances are those of independent weights."""
    own = torch.full((2, lags), 0.5)
    edges = torch.full((1, lags), 0.8)
    blocks = [0.01 * torch.eye(2 * lags).flatten(), 0.01 * torch.eye(lags).flatten()]
    numbers = torch.tensor([exists]), own, edges, torch.tensor(lags), torch.full((2,), 100.0)
    return MeanEquations(torch.tensor([1]), torch.tensor([0]), *numbers, torch.cat(blocks))


def test_edges_that_are_left_out_give_the_regression_without_their_columns(rng):
    design, target = (torch.randn(200, size, generator=rng, dtype=DOUBLE) for size in (5, 1))
    design[:, 3] += design[:, 0]  # so that the others change
    beta = torch.linalg.lstsq(design, target).solution[:, 0]
    inverse = torch.linalg.inv(design.mT @ design)
    out = torch.tensor([False, False, False, True, True])
    mean, root = _without(beta, inverse, out)
    left = design[:, ~out]
    assert torch.allclose(mean[~out], torch.linalg.lstsq(left, target).solution[:, 0], atol=1e-10)
    assert torch.allclose((root @ root.mT)[~out][:, ~out], torch.linalg.inv(left.mT @ left), atol=1e-10)
    assert not mean[out].any()
    assert not root[out].any()


@pytest.mark.parametrize("exists", [1.0, 0.3, 0.01])
def test_an_edge_is_drawn_as_often_as_it_exists(exists, rng):
    """The share of draws with the edge is within 5 standard errors."""
    own, edges = known(exists).draw(COUNT, rng)
    there = edges[:, 0, 0] != 0
    share = 0.0 if exists < 0.02 else exists
    assert abs(float(there.double().mean()) - share) <= 5 * (share * (1 - share) / (COUNT / 2)) ** 0.5
    assert float(own.std(0).mean()) == pytest.approx(0.1, rel=0.05)
    assert torch.allclose(own.mean(0), torch.full((2, 1), 0.5, dtype=DOUBLE), atol=1e-10)  # errors come in pairs
    if exists == 1.0:
        assert float(edges.mean()) == pytest.approx(0.8, abs=1e-7)


def test_the_best_graph_has_no_uncertain_edge(rng):
    assert known(0.3).best.draw(10, rng)[1].eq(0).all()
    assert known(0.7).best.draw(10, rng)[1].ne(0).all()


def test_one_lag_or_all(rng):
    """Of two lags of equal size both are used; of one large and one small lag the large one mostly."""
    equations = known(1.0, lags=2)
    _, edges = equations.draw(COUNT, rng)
    assert edges.ne(0).all()  # a Wald statistic of 64 against log 100
    weak = replace(equations, edges=torch.tensor([[0.02, 0.8]]), own=torch.tensor([[0.0, 0.5], [0.0, 0.5]]))
    own, edges = weak.draw(COUNT, rng)
    beta, covariance = torch.tensor([0.02, 0.8], dtype=DOUBLE), 0.01 * torch.eye(2, dtype=DOUBLE)
    others, prob = _other_lags(beta, covariance, torch.arange(2), 100.0, newest=False)
    assert others.tolist() == [0]
    assert prob == pytest.approx(1 / (1 + 10 * 2.718281828 ** (-0.02)))
    for share in (edges[:, 0, 0].ne(0), own[:, 0, 0].ne(0)):
        assert float(share.double().mean()) == pytest.approx(prob, abs=0.04)
    assert edges[:, 0, 1].ne(0).all()


def test_equations_of_gates_are_those_of_the_mean(rng):
    """A coefficient is the weight times how often its edge acts, and its error that of a regression."""
    del rng
    model, pairs = filter_model(OFTEN > 0), gate_pairs(20_000)
    exists = torch.full(OFTEN.shape, torch.nan)
    found = mean_equations(model, pairs, exists, Dependence())
    assert found is not None
    assert has_linear_mean(model)
    assert (found.exists == 1).all()
    data = LocalModel.of(model, pairs)
    first = 0
    for node in range(len(OFTEN)):
        regression, into = data.moments(node), found.target == node
        plain = torch.linalg.lstsq(regression.design, regression.targets[:, None]).solution[:, 0]
        assert torch.allclose(found.edges[into][:, 0].double(), plain[regression.own.shape[1] :], atol=0.05)
        size = found.own.shape[1] + int(into.sum())
        block = found.covariance[first : first + size**2].view(size, size)
        first += size**2
        assert (torch.linalg.eigvalsh(block) > 0).all()
        assert float(block.diagonal().sqrt().max()) < 0.05
    assert first == len(found.covariance)


def test_edges_that_were_dropped_may_be_in_the_equations_again():
    model, pairs = filter_model(OFTEN > 0), gate_pairs(400)
    exists = torch.where(OFTEN > 0, 1.0, 0.05).fill_diagonal_(0.0)
    exists[0, 1] = 0.01
    found = mean_equations(model, pairs, exists, Dependence())
    assert set(zip(found.target.tolist(), found.source.tolist(), strict=True)) == {
        (target, source) for target, source in (exists >= 0.02).nonzero().tolist()
    }


def test_too_few_rows_have_no_equations():
    assert mean_equations(filter_model(OFTEN > 0), gate_pairs(6), OFTEN, Dependence()) is None


def test_equations_are_stored_as_tensors():
    equations = known(0.5)
    again = MeanEquations.from_tensors(equations.tensors())
    assert all(torch.equal(again.tensors()[name], values) for name, values in equations.tensors().items())
    assert MeanEquations.from_tensors({}) is None
