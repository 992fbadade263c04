import pytest
import torch

from tacit.randomness import RESOLUTION, draw_uniforms, generator_for, uniforms_from_bits


def test_every_16_bit_number_maps_to_its_own_cell():
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    cells = uniforms_from_bits(bits, torch.float64) * RESOLUTION
    assert torch.equal(cells, torch.arange(RESOLUTION, dtype=torch.float64) + 0.5)
    assert torch.equal(uniforms_from_bits(bits).double() * RESOLUTION, cells)  # float32 holds them exactly
    for p in (0.0, 0.3, 0.75, 1.0):
        assert (cells / RESOLUTION < p).double().mean().item() == pytest.approx(p, abs=2**-17)
    assert (cells / RESOLUTION < 1.0).all()
    assert not (cells / RESOLUTION < 0.0).any()


def test_draws_are_uniform_and_uncorrelated_within_five_standard_errors():
    """Four numbers share a random word: lags 1 to 4 must not show it. Fixed seed; five errors, nine checks."""
    u = draw_uniforms(1000, 999, generator=generator_for(0, "test"), dtype=torch.float64).flatten()
    n = len(u)
    assert abs(u.mean() - 0.5) < 5 * (1 / 12 / n) ** 0.5
    assert abs(u.var() - 1 / 12) < 5 * (1 / 180 / n) ** 0.5
    z = (u - 0.5) * 12**0.5
    for lag in (1, 2, 3, 4):
        assert abs((z[lag:] * z[:-lag]).mean()) < 5 / n**0.5


def test_purposes_and_seeds_are_independent_streams():
    streams = [draw_uniforms(64, generator=generator_for(s, p)) for s in (0, 1, 10) for p in ("batches", "graphs")]
    assert len({tuple(stream.tolist()) for stream in streams}) == 6
    assert torch.equal(streams[0], draw_uniforms(64, generator=generator_for(0, "batches")))
