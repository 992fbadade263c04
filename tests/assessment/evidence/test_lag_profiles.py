"""The effect of each lag is that of a plain regression; the dominant lag of a known system is found."""

import numpy as np
import torch

from tacit.assessment.evidence import Candidates, ColumnForm, lag_profiles
from tacit.data import Pairs
from tacit.graph import EdgeRules
from tacit.predictors import SeriesLayout

NODES, WINDOW = 3, 4
LAYOUT = SeriesLayout(WINDOW, 1)
CANDIDATES = Candidates.from_rules(EdgeRules(("a", "b", "c")))


def system(rows: int = 400, own: float = 0.5, seed: int = 0) -> np.ndarray:
    """Return values of a, b and c: b reads a three steps before, c reads b one step before."""
    rng = np.random.default_rng(seed)
    values = np.zeros((rows, NODES))
    for step in range(3, rows):
        values[step] = own * values[step - 1] + rng.normal(size=NODES)
        values[step, 1] += 0.6 * values[step - 3, 0]
        values[step, 2] -= 0.6 * values[step - 1, 1]
    return values


def pairs_of(values: np.ndarray, horizon: int = 1) -> Pairs:
    """Return the windows of a series, the oldest lag first."""
    count = len(values) - WINDOW - horizon + 1
    inputs = np.stack([values[lag : lag + count] for lag in range(WINDOW)], 2)
    return Pairs(torch.tensor(inputs), torch.tensor(values[WINDOW + horizon - 1 :][:count, :, None]))


def standardized(columns: np.ndarray) -> np.ndarray:
    return (columns - columns.mean(0)) / columns.std(0)


def plain_profile(pairs: Pairs, target: int, source: int, others: list[int], lags: int) -> np.ndarray:
    """Return the coefficients of least squares on own lags, believed parents and the source; the newest lag first."""
    inputs = pairs.inputs.numpy()[:, :, WINDOW - lags :]
    columns = np.concatenate([inputs[:, node] for node in (source, target, *others)], 1)
    design = np.concatenate([standardized(columns), np.ones((len(columns), 1))], 1)
    return np.linalg.lstsq(design, standardized(pairs.targets.numpy()[:, target, 0]), rcond=None)[0][:lags][::-1]


def believed_edges(*edges: tuple[int, int]) -> torch.Tensor:
    """Return the mask of some edges (source, target) over the candidates."""
    found = torch.zeros_like(CANDIDATES.used)
    for source, target in edges:
        found[target] |= CANDIDATES.sources[target] == source
    return found


def test_a_profile_is_that_of_least_squares_on_the_believed_parents() -> None:
    pairs, believed = pairs_of(system()), believed_edges((0, 1), (1, 2))
    found = lag_profiles(pairs, LAYOUT, CANDIDATES, believed, ColumnForm(WINDOW), block=5)
    for target in range(NODES):
        parents = CANDIDATES.sources[target][believed[target]].tolist()
        for place, source in enumerate(CANDIDATES.sources[target].tolist()):
            others = [node for node in parents if node != source]
            wanted = plain_profile(pairs, target, source, others, WINDOW)
            np.testing.assert_allclose(found.effects[target, place], wanted, atol=1e-6)


def test_the_dominant_lag_is_found_beyond_the_form_and_in_every_resample() -> None:
    """The form reads one value, and the edge acts three steps before: further lags are read where rows allow it."""
    believed = believed_edges((0, 1), (1, 2))
    for form in (ColumnForm(1), ColumnForm(4, decay=0.5), ColumnForm(2, products=True)):
        found = lag_profiles(pairs_of(system()), LAYOUT, CANDIDATES, believed, form, block=5)
        assert found.effects.shape[2] == WINDOW
        assert found.effects[1, 0].abs().argmax() == 2  # a -> b at lag 3
        assert found.shares[1, 0].tolist() == [0, 0, 1, 0]
        assert found.effects[2, 1].abs().argmax() == 0  # b -> c at lag 1
        assert found.effects[2, 1, 0] < 0


def test_shares_add_up_to_one_and_are_low_where_lags_are_alike() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(300, NODES)).cumsum(0) * 0.01  # nearly the same value at all lags
    values[:, 1] = rng.normal(size=300)
    values[1:, 1] += 5 * values[:-1, 0]
    found = lag_profiles(pairs_of(values), LAYOUT, CANDIDATES, believed_edges((0, 1)), ColumnForm(WINDOW), block=5)
    shares = found.shares[1, 0]
    assert torch.isclose(shares.sum(), torch.tensor(1.0).double())
    assert shares.max() < 0.95


def test_few_rows_leave_lags_beyond_the_form_or_all_of_them_open() -> None:
    believed = believed_edges((0, 1), (1, 2))
    some = lag_profiles(pairs_of(system(60)), LAYOUT, CANDIDATES, believed, ColumnForm(1), block=5)
    assert not some.effects[1, 0, 0].isnan()
    assert some.effects[1, 0, 2:].isnan().all()
    none = lag_profiles(pairs_of(system(40)), LAYOUT, CANDIDATES, believed, ColumnForm(4, decay=0.5), block=5)
    assert none.effects.isnan().all()


def test_several_targets_of_a_node_have_the_profile_of_the_largest_effect() -> None:
    pairs = pairs_of(system())
    twice = Pairs(pairs.inputs, torch.cat([torch.zeros_like(pairs.targets), pairs.targets], 2))
    layout, believed = SeriesLayout(WINDOW, 1, 2), believed_edges((0, 1), (1, 2))
    found = lag_profiles(twice, layout, CANDIDATES, believed, ColumnForm(WINDOW), block=5)
    alone = lag_profiles(pairs, LAYOUT, CANDIDATES, believed, ColumnForm(WINDOW), block=5)
    torch.testing.assert_close(found.effects, alone.effects)
