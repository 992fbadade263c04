import pytest
import torch

import tacit.randomness
from tacit.randomness import UniformStream, draw_uniforms, generator_for


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_byte_and_every_fraction_maps_to_its_own_cell(monkeypatch, dtype):
    """All 2^23 combinations, in order, give every cell of (0, 1) once: P(u < p) is p to 23 bits, exact at 0 and 1."""
    words = {
        torch.uint8: torch.arange(256).repeat_interleave(2**15).to(torch.uint8),
        torch.int16: torch.arange(-(2**15), 2**15, 2).to(torch.int16),
    }
    monkeypatch.setattr(tacit.randomness, "_random_words", lambda _count, kind, _generator: words[kind])
    u = draw_uniforms(256, 2**15, generator=generator_for(0, "unused"), dtype=dtype).flatten()
    assert u.dtype == dtype
    assert torch.equal(u.double(), (torch.arange(2**23, dtype=torch.float64) + 0.5) / 2**23)
    assert 0 < u.min() < u.max() < 1
    for p in (0.3, 0.75, 2**-20):
        assert (u < p).double().mean().item() == pytest.approx(p, abs=2**-23)


def test_only_the_fraction_is_shared_along_the_first_axis():
    u = draw_uniforms(4, 5, 6, generator=generator_for(0, "test"), dtype=torch.float64) * 256
    assert torch.equal((u - u.floor())[0], (u - u.floor())[3])
    assert len((u - u.floor())[0].unique()) == 30
    assert not torch.equal(u.floor()[0], u.floor()[3])


def test_draws_are_uniform_and_uncorrelated_within_five_standard_errors():
    """Eight numbers share a random word: lags 1 to 8 must not show it. Fixed seed; five errors, ten checks."""
    u = draw_uniforms(1000, 999, generator=generator_for(0, "test"), dtype=torch.float64).flatten()
    n = len(u)
    assert abs(u.mean() - 0.5) < 5 * (1 / 12 / n) ** 0.5
    assert abs(u.var() - 1 / 12) < 5 * (1 / 180 / n) ** 0.5
    z = (u - 0.5) * 12**0.5
    for lag in (1, 2, 3, 4, 5, 6, 7, 8):
        assert abs((z[lag:] * z[:-lag]).mean()) < 5 / n**0.5


def test_purposes_and_seeds_are_independent_streams():
    streams = [draw_uniforms(64, generator=generator_for(s, p)) for s in (0, 1, 10) for p in ("batches", "graphs")]
    assert len({tuple(stream.tolist()) for stream in streams}) == 6
    assert torch.equal(streams[0], draw_uniforms(64, generator=generator_for(0, "batches")))


def test_a_stream_gives_what_single_draws_give():
    stream = UniformStream((4, 5), generator_for(0, "test"), torch.float64)
    alone = generator_for(0, "test")
    for _ in range(3):
        assert torch.equal(stream.draw(), draw_uniforms(4, 5, generator=alone, dtype=torch.float64))


def test_a_stream_drawn_ahead_is_uniform_and_never_repeats():
    stream = UniformStream((4, 50), generator_for(0, "test"), torch.float64)
    stream._ahead = 64  # as on a GPU
    drawn = torch.stack([stream.draw() for _ in range(128)])
    assert drawn.flatten().unique().numel() > 0.99 * drawn.numel()
    counts = torch.histc(drawn.float(), 16, 0, 1)
    assert ((counts - counts.mean()).square().sum() / counts.mean()) < 50  # chi-squared, 15 degrees: p = 1e-5
