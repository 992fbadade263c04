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
        InputError, match=r"targets needs finite numbers, got nan at pair 2, node 1, channel 0 \(1 such"
    ):
        Pairs(good, bad)
    with pytest.raises(InputError, match="inputs needs finite numbers, got inf"):
        Pairs(good + torch.inf, good)
    with pytest.raises(InputError, match=r"same number of pairs and nodes, got \(4, 3\) and \(3, 3\)"):
        Pairs(good, good[:3])
    with pytest.raises(InputError, match=r"inputs needs shape \(pairs, nodes, channels\), got \(3, 2\)"):
        Pairs(good[0], good)
    with pytest.raises(InputError, match=r"inputs needs a tensor of floats .*, got torch.int64; use torch.as_tensor"):
        Pairs(good.long(), good)
    with pytest.raises(InputError, match=r"targets needs a tensor of floats .*, got float64; use torch.as_tensor"):
        Pairs(good, good.double().numpy())
    with pytest.raises(InputError, match=r"inputs needs a tensor of floats .*, got torch.bfloat16"):
        Pairs(good.bfloat16(), good)
    with pytest.raises(InputError, match=r"need one type, got torch.float32 and torch.float64"):
        Pairs(good, good.double())
    with pytest.raises(InputError, match="at least one pair in each part"):
        Pairs(good, good).split()
    with pytest.raises(InputError, match="at least one pair, got none"):
        Pairs(good[:0], good[:0])
