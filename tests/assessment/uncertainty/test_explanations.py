"""Gates, growing noise and curves: which of them the shape of the noise supports."""

import pytest
import torch

from tacit.assessment.uncertainty import acting_words
from tacit.assessment.uncertainty.explanations import (
    HALF_LIVES,
    explained_gates,
    explained_regressions,
    noise_sizes,
    usual_rows,
)
from tacit.edges import ACTS
from tacit.local import GatedRegression
from tacit.observation import GaussianNoise

DOUBLE = torch.float64


def regression(rng, kind, rows=1000, sources=1):
    """A node that reads its sources through gates of .5 and 1, or always with noise that grows, or by a curve."""
    sent, own, noise = (torch.randn(*shape, generator=rng).double() for shape in ((sources, rows), (rows,), (rows,)))
    acts = torch.rand(rows, generator=rng).double() < 0.5
    first = sent[0]
    effect, size = {
        "gate": (acts * first, 0.5),
        "growing": (first, (0.5 + 0.15 * first.square()).sqrt()),
        "both": (acts * first, 0.3 * (1 + first.square()).sqrt()),
        "curve": (1.5 * torch.tanh(1.5 * first), 0.5),
        "positive": (1.5 * acts * first.abs(), 0.5),
        "skewed": (first, 0.5),
    }[kind]
    if kind == "positive":  # measured from its mean, as the inputs of a fit are
        sent[0] = first.abs() - first.abs().mean()
    if kind == "skewed":
        noise = -torch.rand(rows, generator=rng).double().log() - 1
    targets = 0.4 * own + effect + sent[1:].sum(0) + size * noise
    columns = torch.stack([own, torch.ones(rows, dtype=DOUBLE)], 1)
    sizes = noise_sizes(noise[:, None], [0])[:, 0]
    zeros = torch.zeros(rows, dtype=DOUBLE)
    return GatedRegression(
        columns, sent[..., None], zeros, targets, torch.ones_like(zeros), GaussianNoise(1).double(), spread=sizes
    )


def explained(data, mask=None):
    mask = torch.ones(len(data.sent), dtype=torch.bool) if mask is None else mask
    return explained_gates(explained_regressions([data], [mask]), [mask])[0]


def test_a_gate_is_found_beside_growing_noise(rng):
    found = explained(regression(rng, "gate", sources=2))
    assert found.edge_probs[0] == pytest.approx(0.5, abs=0.08)
    assert found.low[0] < 0.5 < found.high[0] < 0.7
    assert found.p_values[0] < 1e-6
    assert found.nats[0] > 15
    assert (found.edge_probs[1], found.high[1]) == (1, 1)
    assert found.p_values[1] > 0.05


def test_noise_that_grows_is_no_gate(rng):
    found = explained(regression(rng, "growing"))
    assert (found.edge_probs[0], found.high[0]) == (1, 1)
    assert found.p_values[0] > 0.05
    assert found.nats[0] < 0


def test_a_source_that_is_never_negative_acts_from_zero(rng):
    """While the gate is closed, the source has no effect, and not that of its mean."""
    found = explained(regression(rng, "positive"))
    assert found.low[0] < 0.5 < found.high[0] < 0.65
    assert found.nats[0] > 15


def test_skewed_noise_is_no_gate_with_a_far_origin(rng):
    assert explained(regression(rng, "skewed")).high[0] == 1


def test_a_gate_whose_noise_grows_as_well_is_a_gate(rng):
    found = explained(regression(rng, "both"))
    assert found.low[0] < 0.5 < found.high[0] < 1


def test_an_effect_that_saturates_is_no_gate(rng):
    found = explained(regression(rng, "curve"))
    assert found.high[0] == 1


def test_only_edges_that_are_asked_about_are_judged(rng):
    found = explained(regression(rng, "gate", sources=2), torch.tensor([True, False]))
    assert found.high[0] < 1
    assert (found.edge_probs[1], found.low[1], found.high[1], found.p_values[1]) == (1, 1, 1, 1)
    assert found.nats[1].isnan()
    assert explained_gates([], []) == []


def test_units_do_not_matter(rng):
    data = regression(rng, "gate")
    scaled = GatedRegression(
        data.own, 1e-3 * data.sent, data.offset, 100 * data.targets, data.weights, data.observation, spread=data.spread
    )
    for one, other in zip(explained(data)[:3], explained(scaled)[:3], strict=True):
        assert torch.allclose(one, other, rtol=0, atol=0.01)


def test_sizes_of_residuals_leave_out_the_row_itself_and_missing_ones():
    residuals = torch.randn(40, 3, generator=torch.Generator().manual_seed(1)).double()
    residuals[5, 1] = torch.nan
    sizes = noise_sizes(residuals, [1])
    assert sizes.shape == (40, 1, 2 * len(HALF_LIVES))
    changed = residuals.clone()
    changed[20, 1] *= 10
    own, others = (sizes - noise_sizes(changed, [1]))[:, 0].split(len(HALF_LIVES), 1)
    assert own[20].abs().max() < 1e-12
    assert own[19].abs().min() > 0
    assert torch.allclose(others, torch.zeros_like(others), atol=1e-12)
    changed = residuals.clone()
    changed[20, 0] *= 10
    assert (sizes - noise_sizes(changed, [1]))[20, 0, -len(HALF_LIVES) :].abs().min() > 0  # of other nodes it counts


def test_words_follow_interval_and_false_discovery_rate():
    """Nine edges always act; p-values of .04 are not significant among ten edges, but one of 1e-4 is."""
    low, high = torch.full((2, 5), 0.95), torch.ones(2, 5)
    low[0, 0], high[0, 0] = 0.4, 0.6
    low[0, 1] = 0.2
    high[0, 2] = 0.99
    p_values = torch.full((2, 5), 0.5)
    p_values[0, :3] = torch.tensor([1e-4, 0.04, 0.04])
    learned = torch.ones(2, 5, dtype=torch.bool)
    learned[1, 4] = False
    codes = acting_words(low, high, p_values, learned)
    words = [[ACTS[code] for code in row] for row in codes.tolist()]
    assert words == [["at times", "undecided", "always", "always", "always"], ["always"] * 4 + [""]]
    p_values[0, 0] = torch.nan  # not tested
    assert ACTS[acting_words(low, high, p_values, learned)[0, 0]] == "undecided"


def test_spikes_of_a_source_are_unusual(rng):
    own, sent = torch.randn(500, 2, generator=rng), torch.randn(2, 500, 1, generator=rng)
    assert usual_rows(own, sent).all()
    own[:, 1], sent[0, 7, 0], own[9, 0] = 1.0, 9.0, -8.0  # a constant is no reason to leave out a row
    assert (~usual_rows(own, sent)).nonzero()[:, 0].tolist() == [7, 9]


def test_rare_values_of_a_source_that_is_mostly_0_are_usual(rng):
    rare = (torch.rand(500, generator=rng) < 0.02).float()
    assert usual_rows(torch.ones(500, 1), rare[None, :, None]).all()


def test_a_tenth_of_the_rows_is_left_out_at_most(rng):
    heavy = torch.randn(1000, generator=rng) / torch.rand(1000, generator=rng) ** 3
    assert usual_rows(heavy[:, None], heavy[None, :, None][:0]).sum() == 900
