"""Targets in batches against one target at a time; few nodes against all of them."""

from dataclasses import replace

import pytest
import torch

from slow_evidence import slow_effects, slow_gains, slow_matrix, slow_sampler
from tacit.assessment.evidence import Candidates, ColumnForm, products
from tacit.assessment.evidence import batched_regressions as regressions
from tacit.assessment.evidence import candidates as candidates_module
from tacit.assessment.evidence.averaging import MarginalLikelihood, Tableau, inclusion_probs
from tacit.assessment.evidence.batched_regressions import Regressions
from tacit.assessment.evidence.candidates import ScaledValues, build_columns
from tacit.data import Pairs
from tacit.graph import EdgeRules
from tacit.predictors.series import SeriesLayout

ROWS, NODES, LAYOUT = 90, 12, SeriesLayout(2, 2, 1)
NAMES = tuple("abcdefghijkl")
RULES = EdgeRules(NAMES, forbidden={("a", "b"), ("c", "b")}, required={("d", "c"), ("e", "c"), ("f", "a")})
CANDIDATES = Candidates.from_rules(RULES)
FORMS = (ColumnForm(), ColumnForm(2, squares=True, offsets=True), ColumnForm(2, decay=0.5, squares=True))
EXACT = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture
def pairs(rng):
    """Missing targets, three series, a constant node, and two nodes that are nearly the same."""
    inputs = torch.randn(ROWS, NODES, 4, generator=rng).double()
    inputs[:, 4] = 1.0
    inputs[:, 6] = inputs[:, 5] + 1e-5 * inputs[:, 6]
    targets = inputs[:, :, 2:3] + inputs.roll(1, 1)[:, :, 2:3] + torch.randn(ROWS, NODES, 1, generator=rng)
    observed = (torch.rand(ROWS, NODES, 1, generator=rng) > 0.1).double()
    return Pairs(inputs, targets, observed, torch.arange(ROWS) // 30)


@pytest.fixture(params=[1e3, 4e6], ids=["single", "batched"])
def at_once(request, monkeypatch):
    monkeypatch.setattr(candidates_module, "BYTES_AT_ONCE", request.param)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("form", FORMS)
def test_matrices_and_gains_equal_one_target_at_a_time(pairs, rng, form):
    columns = build_columns(pairs, LAYOUT, form)
    weights = torch.randint(0, 4, (ROWS,), generator=rng).double()
    weights[:30] = 0  # a series that is not in the resample
    found, gains = CANDIDATES.matrices(columns, weights[None])[0], CANDIDATES.single_gains(columns)
    for row in range(NODES):
        used = CANDIDATES.used[row]
        there = torch.cat([used.repeat_interleave(columns.group_size), torch.tensor([True])])
        slow = slow_matrix(CANDIDATES, columns, weights, row)
        torch.testing.assert_close(found[row][there][:, there], slow[there][:, there], **EXACT)
        assert torch.equal(found[row][~there], torch.eye(len(there), dtype=torch.float64)[~there])
        torch.testing.assert_close(gains[row][used], slow_gains(CANDIDATES, columns, row)[used], rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("layout", [SeriesLayout(2, 1), SeriesLayout(1, 2)], ids=["series", "pairs"])
def test_matrices_of_products_equal_one_target_at_a_time(pairs, layout):
    form, weights = ColumnForm(layout.window, products=True), torch.ones(ROWS).double()
    columns = build_columns(Pairs(pairs.inputs[..., ::2].contiguous(), pairs.targets), layout, form)
    few = CANDIDATES.picked(torch.arange(3).expand(NODES, -1))
    found = products.product_matrices(columns, few, weights[None])[0]
    for row in range(NODES):
        parents = products.design(columns, row, few.sources[row])
        torch.testing.assert_close(found[row], slow_matrix(few, columns, weights, row, parents), **EXACT)


@pytest.mark.parametrize("form", FORMS)
def test_effects_equal_one_target_at_a_time(pairs, rng, form, monkeypatch):
    monkeypatch.setattr(regressions, "NODES_AT_ONCE", 5)
    columns, weights = build_columns(pairs, LAYOUT, form), torch.ones(1, ROWS).double()
    believed = (torch.rand(CANDIDATES.used.shape, generator=rng) > 0.7) & CANDIDATES.used
    found = Regressions(columns, CANDIDATES, 1, rng).on(weights).effects(believed)
    for row in range(NODES):
        slow = slow_effects(CANDIDATES, columns, weights[0], believed[row], row)
        slow = slow.masked_fill(~CANDIDATES.used[row], 0.0)
        torch.testing.assert_close(found[row], slow, rtol=1e-6, atol=1e-9)  # near copies have large coefficients


@pytest.mark.parametrize("size", [1, 2])
def test_the_sampler_equals_the_formulas_step_by_step(rng, size, monkeypatch):
    monkeypatch.setattr("tacit.assessment.evidence.averaging.MOST_ENUMERATED", 9)
    chains, groups, rows = 3, 12, 40
    values = torch.randn(chains, groups * size + 1, rows, generator=rng).double()
    values[:, -1] += values[:, 0] + values[:, size]
    matrices, prior = values @ values.mT, torch.full((chains, groups), -1.0).double()
    counts = torch.full((chains,), float(rows)).double()
    likelihood = MarginalLikelihood(counts, torch.ones_like(counts), matrices[:, -1:, -1])
    found = [
        run(Tableau.start(matrices.clone(), groups, size), likelihood, prior, torch.Generator().manual_seed(0), 60)
        for run in (inclusion_probs, slow_sampler)
    ]
    torch.testing.assert_close(*found, **EXACT)


@pytest.mark.parametrize("kept", [0.0, 1e9])
def test_another_prior_sees_the_same_regressions(pairs, kept, monkeypatch):
    monkeypatch.setattr(regressions, "MOST_KEPT", kept)
    columns, weights = build_columns(pairs, LAYOUT, ColumnForm()), torch.ones(1, ROWS).double()
    once = Regressions(columns, CANDIDATES, 1, torch.Generator().manual_seed(0)).on(weights, keep=True)
    found = [once.probs(density) for density in (0.1, 0.3)]
    generator = torch.Generator().manual_seed(0)
    for density, one in zip((0.1, 0.3), found, strict=True):
        anew = Regressions(columns, CANDIDATES, 1, generator).on(weights).probs(density)
        torch.testing.assert_close(one, anew, rtol=0, atol=0)


def test_columns_of_the_needed_nodes_are_those_of_all(pairs):
    few = CANDIDATES.chosen(torch.tensor([2, 7])).picked(torch.tensor([[0, 3], [1, 2]]))
    nodes, compact = few.compact()
    assert len(nodes) < NODES
    every = few.single_gains(build_columns(pairs, LAYOUT, FORMS[1]))
    some = compact.single_gains(ScaledValues.of(pairs, LAYOUT, 2, nodes).columns(FORMS[1]))
    torch.testing.assert_close(some, every, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("form", FORMS)
def test_gains_of_rows_of_equal_weight_equal_one_target_at_a_time(pairs, form, monkeypatch):
    columns = build_columns(replace(pairs, observed=None), LAYOUT, form)
    monkeypatch.setattr(Candidates, "_single_gains", None)  # the path of other rows
    gains = CANDIDATES.single_gains(columns)
    for row in range(NODES):
        used, slow = CANDIDATES.used[row], slow_gains(CANDIDATES, columns, row)
        torch.testing.assert_close(gains[row][used], slow[used], rtol=1e-6, atol=1e-9)


def test_equal_gains_keep_the_first_candidates():
    gains = torch.full((NODES, CANDIDATES.width), 0.5).double()
    gains[:, 3] += 1e-14
    assert CANDIDATES.best(gains, 2).tolist() == [[0, 1]] * NODES
