"""Resamples: as many places as there are pairs, in runs of neighbours that go around the end."""

import math

import pytest
import torch

from tacit.data import FEWEST_BLOCKS, bootstrap_rows, require_resamplable, resamplable, resampling_words, usual_block
from tacit.data.resampling import FEWEST_PAIRS
from tacit.errors import InputError


@pytest.mark.parametrize(("num_pairs", "block"), [(20, 1), (24, 4), (50, 7), (23, 4)])
def test_blocks_are_runs_of_neighbours(num_pairs, block, rng):
    rows = bootstrap_rows(num_pairs, generator=rng, block=block)
    assert rows.dtype == torch.int64
    assert rows.shape == (num_pairs,)
    assert ((rows >= 0) & (rows < num_pairs)).all()
    for part in rows.split(block):
        assert torch.equal(part, (part[0] + torch.arange(len(part))) % num_pairs)


@pytest.mark.parametrize("block", [1, 3])
def test_every_pair_is_drawn_as_often(block, unchecked):
    """Blocks start anywhere and go around the end, so that the first and last pairs are not drawn less often.

    60 places, 600 resamples: 600 expected for each place, with a deviation of sqrt(600 * block) at most; 5 of them are
    a false alarm in 30,000 runs.
    """
    rng = torch.Generator().manual_seed(0)
    rows = torch.stack([bootstrap_rows(60, generator=rng, block=block) for _ in range(600)])
    counts = torch.bincount(rows.flatten(), minlength=60)
    assert counts.sum() == 36_000
    assert ((counts - 600).abs() < 5 * math.sqrt(600 * block)).all()
    # n draws with replacement miss a pair with chance (1 - b/n)^(n/b), 0.364 and 0.358 here
    seen = sum(len(one.unique()) for one in rows) / rows.numel()
    assert seen == pytest.approx(1 - (1 - block / 60) ** (60 / block), abs=0.01)


def test_the_generator_decides():
    first, again = (bootstrap_rows(30, generator=torch.Generator().manual_seed(3), block=2) for _ in range(2))
    rng = torch.Generator().manual_seed(3)
    assert torch.equal(first, again)
    assert torch.equal(first, bootstrap_rows(30, generator=rng, block=2))
    assert not torch.equal(first, bootstrap_rows(30, generator=rng, block=2))


@pytest.mark.parametrize(
    ("num_pairs", "reach", "expected"), [(1000, 3, 10), (1001, 3, 11), (999, 1, 10), (27, 1, 3), (28, 1, 4), (8, 9, 9)]
)
def test_usual_block_is_the_cube_root_or_what_a_pair_reaches(num_pairs, reach, expected):
    assert usual_block(num_pairs, reach) == expected


def test_usual_block_of_every_cube():
    assert [usual_block(k**3, 1) for k in range(1, 200)] == list(range(1, 200))


@pytest.mark.parametrize(("num_pairs", "block"), [(19, 1), (20, 1), (20, 4), (24, 5), (25, 5), (49, 10), (50, 10)])
def test_resamplable_says_whether_it_would_be_refused(num_pairs, block):
    try:
        require_resamplable(num_pairs, block)
    except InputError:
        assert not resamplable(num_pairs, block)
    else:
        assert resamplable(num_pairs, block)


def test_what_is_too_little_is_refused(rng, refused):
    assert (FEWEST_PAIRS, FEWEST_BLOCKS) == (20, 5)
    require_resamplable(20)
    require_resamplable(50, 10)
    for num_pairs, block in ((19, 1), (49, 10), (30, 0)):
        line = refused(require_resamplable, num_pairs, block)
        assert refused(bootstrap_rows, num_pairs, generator=rng, block=block) == line
    refused(usual_block, 100, 0)


@pytest.mark.parametrize("lengths", [[4] * 5, [3, 9, 1, 6, 2, 5], [30, 2, 2, 2, 2, 2, 1]])
def test_whole_series_are_drawn_where_there_are_enough(lengths, rng):
    series = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    members = [(series == one).nonzero().flatten().tolist() for one in range(len(lengths))]
    for _ in range(30):
        rows = bootstrap_rows(len(series), generator=rng, block=7, series=series)
        assert rows.dtype == torch.int64
        assert rows.shape == series.shape
        left = rows.tolist()
        while left:
            whole = members[int(series[left[0]])]
            assert left[: len(whole)] == whole[: len(left)]  # only the last one may be cut
            left = left[len(whole) :]


def test_every_series_is_drawn_as_often(unchecked):
    """10 series of 3 pairs, 600 resamples: 600 draws of each expected, with a deviation of sqrt(540)."""
    rng, series = torch.Generator().manual_seed(0), torch.arange(10).repeat_interleave(3)
    rows = torch.stack([bootstrap_rows(30, generator=rng, series=series) for _ in range(600)])
    counts = torch.bincount(series[rows[:, ::3]].flatten(), minlength=10)
    assert ((counts - 600).abs() < 5 * math.sqrt(540)).all()


@pytest.mark.parametrize(("lengths", "block"), [([9, 4, 12], 5), ([25], 4), ([20, 1, 3, 2], 4), ([10, 15], 1)])
def test_blocks_of_few_series_stay_within_them(lengths, block, rng):
    series = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    starts = torch.tensor([0, *lengths]).cumsum(0)
    for _ in range(30):
        rows = bootstrap_rows(len(series), generator=rng, block=block, series=series)
        assert rows.shape == series.shape
        place = 0
        while place < len(rows):
            own = int(series[rows[place]])
            size = min(block, lengths[own], len(rows) - place)
            expected = starts[own] + (rows[place] - starts[own] + torch.arange(size)) % lengths[own]
            assert torch.equal(rows[place : place + size], expected)  # neighbours, around the end of their own series
            place += size


def test_pairs_of_a_series_need_not_be_neighbours(rng):
    series = torch.arange(25) % 5
    rows = bootstrap_rows(25, generator=rng, series=series)
    for part in rows.split(5):
        assert part.tolist() == list(range(int(part[0]), 25, 5))


def test_one_series_is_resampled_as_without_a_number():
    rows = [
        bootstrap_rows(30, generator=torch.Generator().manual_seed(1), block=3, series=series)
        for series in (None, torch.zeros(30, dtype=torch.int64))
    ]
    assert torch.equal(*rows)


def test_enough_series_need_no_blocks(rng, refused):
    series = torch.arange(40) // 8
    require_resamplable(40, 20, series)
    assert resamplable(40, 20, series)
    assert not resamplable(40, 20, series // 2)
    refused(bootstrap_rows, 40, generator=rng, block=20, series=series // 2)
    refused(bootstrap_rows, 40, generator=rng, series=series[1:])


@pytest.mark.parametrize(
    ("lengths", "block", "words"),
    [
        ([9] * 7, 1, "7 whole series"),
        ([9] * 7, 40, "7 whole series"),  # the block has no effect
        ([4, 5, 6, 4, 8], 3, "5 whole series"),
        ([25, 30, 28, 12], 12, "blocks of 12 neighbouring pairs within 4 series"),
        ([25, 30, 28, 11], 12, "blocks of up to 12 neighbouring pairs within 4 series"),
        ([10, 12], 1, "single pairs within 2 series"),
        ([40], 8, "blocks of 8 neighbouring pairs"),
        ([40], 1, "single pairs"),
    ],
)
def test_words_say_what_is_drawn(lengths, block, words):
    series = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    count = len(series)
    assert resampling_words(count, block, series) == words
    if len(lengths) == 1:
        assert resampling_words(count, block, None) == words


def test_words_refuse_what_cannot_be_drawn(refused):
    refused(resampling_words, 19)
    refused(resampling_words, 40, series=torch.zeros(39, dtype=torch.int64))
