"""Trust-region steps: maxima of functions that are not concave, rows of their own, bounds and fixed parameters."""

import torch

from tacit.local import maximise

DOUBLE = torch.float64


def banana(numbers, which):
    """Minus Rosenbrock's function, with another steepness for each row."""
    steep = torch.tensor([1.0, 10.0, 100.0], dtype=DOUBLE)[which]
    x, y = numbers.unbind(1)
    away = y - x.square()
    value = -(1 - x).square() - steep * away.square()
    gradient = torch.stack([2 * (1 - x) + 4 * steep * away * x, -2 * steep * away], 1)
    rows = [
        torch.stack([2 - 4 * steep * (away - 2 * x.square()), -4 * steep * x], 1),
        torch.stack([-4 * steep * x, 2 * steep], 1),
    ]
    return value, gradient, torch.stack(rows, 1)


def limits(rows, count=2, bound=torch.inf):
    none = torch.full((rows, count), torch.inf, dtype=DOUBLE)
    return torch.ones(rows, count, dtype=torch.bool), torch.full_like(none, bound), none


def test_each_row_reaches_its_maximum_through_a_curved_valley():
    start = torch.tensor([[-1.2, 1.0], [-1.2, 1.0], [3.0, -2.0]], dtype=DOUBLE)
    found = maximise(banana, start, *limits(3))
    assert torch.allclose(found, torch.ones(3, 2, dtype=DOUBLE), atol=1e-3)


def test_a_row_does_not_depend_on_the_others():
    start = torch.tensor([[-1.2, 1.0], [-1.2, 1.0], [3.0, -2.0]], dtype=DOUBLE)
    together = maximise(banana, start, *limits(3))
    alone = maximise(lambda numbers, which: banana(numbers, which + 1), start[1:2], *limits(1))
    assert torch.allclose(together[1], alone[0], rtol=0, atol=1e-12)


def test_fixed_parameters_stay_and_bounded_ones_end_at_the_bound():
    start = torch.tensor([[0.5, 0.2]], dtype=DOUBLE)
    free, bound, reach = limits(1)
    free[0, 1] = False
    found = maximise(banana, start, free, bound, reach)
    assert found[0, 1] == 0.2
    x = torch.linspace(-2, 2, 400001, dtype=DOUBLE)
    best = banana(torch.stack([x, torch.full_like(x, 0.2)], 1), torch.zeros(len(x), dtype=torch.long))[0].argmax()
    assert torch.isclose(found[0, 0], x[best], atol=1e-4)
    bounded = maximise(banana, start, *limits(1, bound=0.6))
    assert torch.allclose(bounded, torch.tensor([[0.6, 0.36]], dtype=DOUBLE), atol=1e-3)


def test_a_start_at_a_minimum_in_one_direction_is_left():
    def double_well(numbers, which):
        x, y = numbers.unbind(1)
        curvature = torch.diag_embed(torch.stack([3 * x.square() - 1, torch.ones_like(y)], 1))
        return x.square() / 2 - x**4 / 4 - y.square() / 2, torch.stack([x - x**3, -y], 1), curvature

    found = maximise(double_well, torch.tensor([[0.05, 2.0], [-0.4, 0.0]], dtype=DOUBLE), *limits(2))
    assert torch.allclose(found, torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=DOUBLE), atol=1e-3)


def test_values_that_are_not_finite_are_avoided():
    def logarithm(numbers, which):
        x = numbers[:, 0]
        return x.log() - x, (1 / x - 1)[:, None], (1 / x.square())[:, None, None]

    found = maximise(logarithm, torch.tensor([[0.01], [5.0]], dtype=DOUBLE), *limits(2, 1))
    assert torch.allclose(found, torch.ones(2, 1, dtype=DOUBLE), atol=1e-3)


def test_the_last_step_is_as_exact_as_a_further_one_and_is_not_evaluated():
    """The maximum of minus cosh(x - 1): a step from .01 beside it is the last, and cubes the distance."""
    asked = []

    def valley(numbers, which):
        asked.append(len(numbers))
        x = numbers[:, 0] - 1
        return -x.cosh(), -x.sinh()[:, None], x.cosh()[:, None, None]

    found = maximise(valley, torch.tensor([[1.01]], dtype=DOUBLE), *limits(1, count=1))
    assert asked == [1]
    assert abs(float(found[0, 0]) - 1) < 1e-6


def test_a_failure_of_the_eigenvalue_routine_is_repeated_with_another_matrix(monkeypatch):
    """The routine may fail for repeated eigenvalues: here its first call does, and the maxima are the same."""
    usual, calls = torch.linalg.eigh, []

    def failing(matrices):
        calls.append(len(matrices))
        if len(calls) == 1:
            raise torch.linalg.LinAlgError("the algorithm failed to converge")
        return usual(matrices)

    monkeypatch.setattr(torch.linalg, "eigh", failing)
    start = torch.tensor([[-1.2, 1.0], [-1.2, 1.0], [3.0, -2.0]], dtype=DOUBLE)
    found = maximise(banana, start, *limits(3))
    assert len(calls) > 1
    assert torch.allclose(found, torch.ones(3, 2, dtype=DOUBLE), atol=1e-3)
