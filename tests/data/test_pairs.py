import pytest
import torch

from tacit.data import Pairs
from tacit.data.pairs import covering_batches, epoch_batches
from tacit.errors import InputError


def test_split_keeps_every_pair_once():
    pairs = Pairs(torch.arange(25.0).view(25, 1, 1), torch.zeros(25, 1, 1))
    split = pairs.split()
    assert [len(split.train), len(split.validation), len(split.test)] == [20, 2, 3]
    together = torch.cat([split.train.inputs, split.validation.inputs, split.test.inputs])
    assert torch.equal(together, pairs.inputs)


def test_batches_of_an_epoch_hold_no_pair_twice(rng):
    batches = epoch_batches(25, 8, rng)
    assert batches.shape == (3, 8)
    assert len(batches.unique()) == 24
    assert not torch.equal(batches, epoch_batches(25, 8, rng))


def test_covering_batches_count_every_pair_once():
    seen = [index[:new] for index, new in covering_batches(25, 8)]
    assert torch.equal(torch.cat(seen), torch.arange(25))
    assert all(len(index) == 8 for index, _ in covering_batches(25, 8))


def test_errors(unchecked):
    good = torch.zeros(4, 3, 2)
    bad = good.clone()
    bad[2, 1, 0] = torch.nan
    with pytest.raises(
        InputError, match=r"targets must have finite numbers, got nan at pair 2, node 1, channel 0 \(1 such"
    ):
        Pairs(good, bad)
    with pytest.raises(InputError, match="inputs must have finite numbers, got inf"):
        Pairs(good + torch.inf, good)
    with pytest.raises(InputError, match=r"same number of pairs and nodes, got \(4, 3\) and \(3, 3\)"):
        Pairs(good, good[:3])
    with pytest.raises(InputError, match=r"inputs must have shape \(pairs, nodes, channels\), got \(3, 2\)"):
        Pairs(good[0], good)
    with pytest.raises(InputError, match=r"inputs must be float32 or float64, got torch.int64; use inputs.float()"):
        Pairs(good.long(), good)
    numpy = r"targets must be a torch tensor, got a NumPy array; pass torch.as_tensor\(targets\)"
    with pytest.raises(InputError, match=numpy):
        Pairs(good, good.numpy())
    with pytest.raises(InputError, match=r"inputs must be float32 or float64, got torch.bfloat16"):
        Pairs(good.bfloat16(), good)
    with pytest.raises(InputError, match=r"must have one type, got torch.float32 and torch.float64"):
        Pairs(good, good.double())
    with pytest.raises(InputError, match="at least one pair in each part"):
        Pairs(good, good).split()
    with pytest.raises(InputError, match="at least one pair, got none"):
        Pairs(good[:0], good[:0])


def test_missing_targets_travel_with_their_pairs(rng):
    targets = torch.randn(20, 2, 1, generator=rng)
    targets[3, 1] = targets[17, 0] = torch.nan
    pairs = Pairs.with_missing(torch.zeros(20, 2, 1), targets)
    assert pairs.observed.sum() == 38
    split = pairs.split().train.to("cpu", torch.float64)
    assert split.observed.dtype == torch.float64
    assert split.observed[3].flatten().tolist() == [1.0, 0.0]
    assert torch.equal(pairs.with_mask().observed, pairs.observed)
    assert Pairs(pairs.inputs, pairs.targets).with_mask().observed.min() == 1


def test_bad_masks(unchecked):
    inputs, targets = torch.zeros(4, 2, 1), torch.zeros(4, 2, 1)
    calls = {
        r"targets must have finite numbers, got nan at pair 0.*remove them, or use Pairs.with_missing": lambda: Pairs(
            inputs, torch.full((4, 2, 1), torch.nan)
        ),
        r"observed must be a tensor of torch.float32 like targets, got torch.bool; use mask.to": lambda: Pairs(
            inputs, targets, torch.ones(4, 2, 1).bool()
        ),
        r"observed must have the shape of targets, \(4, 2, 1\), got \(4, 2\)": lambda: Pairs(
            inputs, targets, torch.ones(4, 2)
        ),
        "observed must be 1 where a target is known and 0 where it is missing": lambda: Pairs(
            inputs, targets, targets + 0.5
        ),
        "targets must be a torch tensor, got list": lambda: Pairs.with_missing([[1.0]], [[1.0]]),
        r"series must be torch.int64 of shape \(4,\), one number per pair, got torch.int64 of shape \(3,\)": lambda: (
            Pairs(inputs, targets, series=torch.arange(3))
        ),
        r"times must be torch.float64 of shape \(4,\), .*, got torch.float32": lambda: Pairs(
            inputs, targets, times=torch.zeros(4)
        ),
        "times must be a torch tensor, got list": lambda: Pairs(inputs, targets, times=[1.0]),
        r"targets must have finite numbers, got inf .*use any number where observed is 0": lambda: Pairs(
            inputs, torch.full((4, 2, 1), torch.inf), torch.ones(4, 2, 1)
        ),
    }
    for message, call in calls.items():
        with pytest.raises(InputError, match=message):
            call()


def test_a_generator_shuffles_the_pairs_before_they_are_split():
    pairs = Pairs(torch.arange(100.0).view(100, 1, 1), torch.zeros(100, 1, 1))
    one, again, other = (pairs.split(generator=torch.Generator().manual_seed(seed)) for seed in (3, 3, 4))
    parts = [part.inputs.flatten() for part in vars(one).values()]
    assert [len(part) for part in parts] == [80, 10, 10]
    assert torch.equal(torch.cat(parts).sort().values, pairs.inputs.flatten())  # every pair once
    assert all(torch.equal(part, part.sort().values) for part in parts)  # in their order
    assert not torch.equal(parts[2], torch.arange(90.0, 100))
    assert torch.equal(one.test.inputs, again.test.inputs)
    assert not torch.equal(one.test.inputs, other.test.inputs)


def test_series_and_times_travel_with_their_pairs():
    series, times = torch.arange(20) // 5, torch.arange(20).double() / 3
    pairs = Pairs(torch.zeros(20, 2, 1), torch.zeros(20, 2, 1), series=series, times=times)
    rows = torch.tensor([3, 19, 7])
    for found, place in (
        (pairs[rows], rows),
        (pairs[4:9], slice(4, 9)),
        (pairs.with_mask(), slice(None)),
        (pairs.to("cpu", torch.float64), slice(None)),
        (pairs.split().validation, slice(16, 18)),
        (Pairs.with_missing(pairs.inputs, pairs.targets, series, times), slice(None)),
    ):
        assert torch.equal(found.series, series[place])
        assert torch.equal(found.times, times[place])
        assert found.times.dtype == torch.float64
    assert pairs.with_mask().observed.min() == 1
    assert pairs.split().num_series == 4
    assert pairs.split().to("cpu").num_series == 4
    assert Pairs(pairs.inputs, pairs.targets).split().num_series == 1
