"""Effects within a step: scores against brute force, the shape of noise, directions, and what is refused."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from tacit.assessment.evidence import (
    LAGGED_PARENTS,
    LEARNED,
    RULE,
    Candidates,
    ColumnForm,
    SimultaneousEvidence,
    parent_evidence,
    simultaneous_evidence,
)
from tacit.assessment.evidence.averaging import MarginalLikelihood, Tableau, inclusion_probs, lost_chains
from tacit.assessment.evidence.candidates import Columns, build_columns
from tacit.assessment.evidence.simultaneous import gaussian_noise
from tacit.assessment.evidence.within_scores import target_scores
from tacit.assessment.evidence.within_step import BINS, WIDEST, shape_evidence
from tacit.data import Pairs
from tacit.edges import OPEN
from tacit.graph import EdgeRules
from tacit.predictors import SeriesLayout

WINDOW = 2
LAYOUT = SeriesLayout(WINDOW, 1, 1)


def simulated(within: Tensor, lagged: Tensor, rows: int, *, laplace: bool = False, seed: int = 0) -> Pairs:
    """Return the windows of a structural VAR in units of its deviations."""
    generator, nodes = torch.Generator().manual_seed(seed), len(within)
    noise = torch.randn(rows + 50, nodes, generator=generator, dtype=torch.float64)
    if laplace:
        uniforms = torch.rand(noise.shape, generator=generator, dtype=torch.float64) - 0.5
        noise = -uniforms.sign() * torch.log1p(-2 * uniforms.abs())
    mixing, values = torch.linalg.inv(torch.eye(nodes, dtype=torch.float64) - within), noise.clone()
    for now in range(1, len(values)):
        values[now] = mixing @ (lagged @ values[now - 1] + noise[now])
    return windows((values[50:] - values[50:].mean(0)) / values[50:].std(0))


def windows(values: Tensor) -> Pairs:
    inputs = torch.stack([values[lag : len(values) - WINDOW + lag] for lag in range(WINDOW)], 2)
    return Pairs(inputs.float(), values[WINDOW:, :, None].float())


def matrix(nodes: int, **weights: float) -> Tensor:
    """Return a matrix with ``a_b=.5`` for the edge from a to b; rows receive."""
    found = torch.zeros(nodes, nodes, dtype=torch.float64)
    for ends, weight in weights.items():
        source, target = ("abcdef".index(name) for name in ends.split("_"))
        found[target, source] = weight
    return found


def found_in(
    pairs: Pairs, may_act: Tensor | None = None, required: Tensor | None = None, prior: Tensor | None = None
) -> SimultaneousEvidence:
    nodes = tuple("abcdefghijkl"[: pairs.num_nodes])
    first = parent_evidence(pairs, LAYOUT, Candidates.from_rules(EdgeRules(nodes)), resamples=0)
    allowed = ~torch.eye(len(nodes), dtype=torch.bool) if may_act is None else may_act
    return simultaneous_evidence(pairs, LAYOUT, first, allowed, required, prior=prior, names=nodes)


def brute_force(columns: Columns, target: int, now: tuple[int, ...], density: float) -> tuple[float, tuple[int, ...]]:
    """Return the best score over all sets of lagged parents, by least squares, and that set."""
    others = [node for node in range(columns.targets.shape[1]) if node != target]
    always = torch.cat([columns.own[:, target], columns.shared], 1)
    values, rows = columns.targets[:, target], len(columns.targets)

    def squares(parts: list[Tensor]) -> float:
        design = torch.cat([always, *parts], 1)
        left = values - design @ torch.linalg.lstsq(design, values).solution
        return float(left.square().sum())

    none, free = squares([]), rows - int(columns.num_always[target])
    best = (-math.inf, ())
    for size in range(len(others) + 1):
        for later in itertools.combinations(others, size):
            parts = [columns.targets[:, node] for node in now] + [columns.sources[:, node] for node in later]
            score = -free / 2 * math.log(squares(parts) / none)
            score -= (len(now) + columns.group_size * size) / 2 * math.log1p(rows)
            best = max(best, (score + size * math.log(density / (1 - density)), later))
    return best


def test_scores_equal_brute_force() -> None:
    pairs = simulated(matrix(4, a_b=0.6, b_c=-0.5), 0.3 * torch.eye(4) + matrix(4, d_a=0.4, a_c=0.3), 300)
    columns = build_columns(pairs, LAYOUT, ColumnForm(1))
    candidates = Candidates.from_rules(EdgeRules(tuple("abcd")))
    density = 0.2
    for target in range(4):
        now = torch.tensor([node for node in range(4) if node != target])
        found = target_scores(columns, candidates, target, now, density)
        for number in range(8):
            inside = tuple(int(node) for place, node in enumerate(now) if number >> place & 1)
            score, later = brute_force(columns, target, inside, density)
            believed = {
                int(s) for s, p in zip(candidates.sources[target], found.lagged[number], strict=True) if p > 0.5
            }
            assert believed == set(later)
            rest = float(found.scores[number]) - score
            assert 0 <= rest <= 3 * math.log(2)  # what the other sets add
            odds = torch.logit(found.lagged[number].double())
            assert rest == pytest.approx(float(torch.nn.functional.softplus(-odds.abs()).sum()), abs=1e-4)


def test_graphs_with_the_same_independences_have_the_same_score() -> None:
    pairs = simulated(matrix(3, a_b=0.6, b_c=-0.5), torch.zeros(3, 3, dtype=torch.float64), 400)
    columns = build_columns(pairs, LAYOUT, ColumnForm(1))
    columns = Columns(columns.sources, columns.own[..., :0], columns.shared, columns.targets, columns.observed)
    nowhere = torch.zeros(0, dtype=torch.long)
    candidates = Candidates.from_edges(nowhere, nowhere, 3)
    scores = {}
    for target in range(3):
        now = torch.tensor([node for node in range(3) if node != target])
        table = target_scores(columns, candidates, target, now, 0.1).scores
        for number in range(4):
            inside = frozenset(int(node) for place, node in enumerate(now) if number >> place & 1)
            scores[target, inside] = float(table[number])

    def total(*parents: str) -> float:
        return sum(scores[node, frozenset("abc".index(one) for one in names)] for node, names in enumerate(parents))

    forward, backward, fork, collider = (
        total("", "a", "b"),
        total("b", "c", ""),
        total("b", "", "b"),
        total("", "ac", ""),
    )
    assert forward == pytest.approx(backward, abs=1e-5)
    assert forward == pytest.approx(fork, abs=1e-5)
    assert abs(forward - collider) > 5
    assert total("", "a", "ab") == pytest.approx(total("bc", "c", ""), abs=1e-5)  # all edges, two orders


def test_shapes_are_densities_and_recognise_noise() -> None:
    from tacit.assessment.evidence.within_step import _log_ratios

    middles = torch.linspace(-WIDEST, WIDEST, BINS + 1, dtype=torch.float64)
    middles = (middles[1:] + middles[:-1]) / 2
    gaussian = torch.exp(-middles.square() / 2) / math.sqrt(2 * math.pi) * (2 * WIDEST / BINS)
    masses = (gaussian[:, None] * _log_ratios().exp()).sum(0)
    torch.testing.assert_close(masses, torch.ones_like(masses), atol=0.03, rtol=0)
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(6, 500, generator=generator, dtype=torch.float64)
    peaked = (
        torch.randn(6, 500, generator=generator, dtype=torch.float64)
        * torch.empty(6, 500).exponential_(generator=generator).sqrt()
    )
    skewed = torch.empty(6, 500, dtype=torch.float64).exponential_(generator=generator) - 1
    ones = torch.ones(500, dtype=torch.float64)
    assert float(shape_evidence(normal, ones).max()) < 0
    assert float(shape_evidence(peaked, ones).min()) > 5
    assert float(shape_evidence(skewed, ones).min()) > 80
    twice = shape_evidence(peaked, 2 * ones) + math.log(2)
    assert (
        float((twice - 2 * (shape_evidence(peaked, ones) + math.log(2))).abs().max()) < 20
    )  # rows count as they weigh


def test_laplace_noise_gives_the_direction_and_gaussian_noise_leaves_it_open() -> None:
    within, lagged = matrix(3, a_b=0.6), torch.zeros(3, 3, dtype=torch.float64)
    gaussian = found_in(simulated(within, lagged, 600))
    assert gaussian.within.gaussian > 0.01
    assert int(gaussian.within.directions[0, 1]) == OPEN
    assert float(gaussian.within.either[0, 1]) > 0.99
    assert 0.1 < float(gaussian.exists[1, 0]) < 0.9
    assert gaussian.within.undirected.nonzero().tolist() == [[0, 1]]
    assert int(gaussian.within.acyclic.sum()) == 1
    laplace = found_in(simulated(within, lagged, 600, laplace=True))
    assert laplace.within.gaussian < 0.01
    assert int(laplace.within.directions[1, 0]) == LEARNED
    assert float(laplace.within.probs[1, 0]) > 0.95
    assert float(laplace.effect[1, 0]) == pytest.approx(0.51, abs=0.08)
    assert not laplace.within.undirected.any()


def test_lagged_parents_give_the_direction() -> None:
    found = found_in(simulated(matrix(3, a_b=0.6), matrix(3, c_a=0.6) + 0.4 * torch.eye(3), 800))
    assert int(found.within.directions[1, 0]) == LAGGED_PARENTS
    assert float(found.within.probs[1, 0]) > 0.9
    assert float(found.exists[0, 2]) > 0.9  # c -> a, after the step
    assert float(found.within.probs[0, 2]) < 0.1


def test_no_edge_within_the_step_where_there_is_none_or_none_may_be() -> None:
    lagged = matrix(4, a_b=0.5, c_d=-0.4) + 0.4 * torch.eye(4)
    found = found_in(simulated(torch.zeros(4, 4, dtype=torch.float64), lagged, 600))
    assert float(found.within.probs.max()) < 0.3
    assert float(found.exists[1, 0]) > 0.9
    assert not found.within.acyclic.any()
    pairs = simulated(matrix(3, a_b=0.6), torch.zeros(3, 3, dtype=torch.float64), 400)
    only_back = torch.zeros(3, 3, dtype=torch.bool)
    only_back[0, 1] = True  # b -> a
    found = found_in(pairs, only_back)
    assert float(found.within.probs[0, 1]) > 0.9
    assert float(found.within.probs[1, 0]) == 0
    assert int(found.within.directions[0, 1]) == RULE


def test_equivalent_graphs_leave_directions_open_even_if_most_agree() -> None:
    edges = matrix(6, b_a=0.6, a_c=0.6, a_d=0.6, a_e=0.6, a_f=0.6)  # 6 roots are possible, 5 of them give a -> b
    found = found_in(simulated(edges, torch.zeros(6, 6, dtype=torch.float64), 500, seed=1))
    assert int(found.within.directions[0, 1]) == int(found.within.directions[1, 0]) == OPEN


def test_missing_values_take_rows_from_all_connected_nodes(refused) -> None:
    edges = matrix(6, b_a=0.6, a_c=0.6, a_d=0.6, a_e=0.6, a_f=0.6)
    pairs = simulated(edges, torch.zeros(6, 6, dtype=torch.float64), 500, seed=2)
    known = (torch.rand(pairs.targets.shape, generator=torch.Generator().manual_seed(0)) > 0.1).float()
    found = found_in(Pairs(pairs.inputs, pairs.targets * known, known))
    assert int(found.within.directions[0, 1]) == OPEN
    assert float(found.within.either[0, 1]) > 0.9
    known = (torch.rand(pairs.targets.shape, generator=torch.Generator().manual_seed(0)) > 0.6).float()
    refused(found_in, Pairs(pairs.inputs, pairs.targets * known, known))


def test_a_hub_with_many_neighbours_keeps_all_its_pairs() -> None:
    weights = torch.zeros(12, 12, dtype=torch.float64)
    weights[1:, 0] = 0.6
    found = found_in(simulated(weights, torch.zeros(12, 12, dtype=torch.float64), 600))
    assert float(found.within.either[0, 1:].min()) > 0.9
    assert bool((found.within.directions[0, 1:] == OPEN).all())
    assert "are left open" in found.within.notes[0]


def test_priors_count_and_forbidden_pairs_have_nothing() -> None:
    pairs = simulated(matrix(3, a_b=0.6), torch.zeros(3, 3, dtype=torch.float64), 400)
    prior = torch.full((3, 3), torch.nan, dtype=torch.float64)
    prior[0, 1], prior[1, 0] = 0.999, 0.001  # b -> a
    assert float(found_in(pairs, prior=prior).within.probs[0, 1]) > 0.95
    neither = ~torch.eye(3, dtype=torch.bool)
    neither[0, 1] = neither[1, 0] = False
    found = found_in(pairs, neither)
    assert float(found.within.probs[0, 1] + found.within.probs[1, 0]) == 0
    assert float(found.within.either[0, 1]) < 0.2


def test_required_edges_are_in_every_graph() -> None:
    pairs = simulated(matrix(3, a_b=0.6), torch.zeros(3, 3, dtype=torch.float64), 400, laplace=True)
    required = torch.zeros(3, 3, dtype=torch.bool)
    required[0, 1] = required[1, 2] = True  # b -> a and c -> b, against the data
    found = found_in(pairs, required=required)
    assert torch.equal(found.within.probs[required], torch.ones(2, dtype=torch.float64))
    assert float(found.within.probs[1, 0]) == 0
    assert bool((found.within.acyclic & required)[required].all())
    assert int(found.within.directions[1, 2]) == RULE


def test_gaussian_noise_passes_the_test_and_skewed_noise_does_not() -> None:
    generator = torch.Generator().manual_seed(1)
    known = torch.ones(500, 8, dtype=torch.float64)
    normal = torch.randn(500, 8, generator=generator, dtype=torch.float64)
    assert gaussian_noise(normal, known) > 0.05
    normal[:, 3] = torch.empty(500, dtype=torch.float64).exponential_(generator=generator)
    assert gaussian_noise(normal, known) < 1e-6


def test_copies_combinations_and_few_rows_are_refused(refused) -> None:
    pairs = simulated(matrix(3, a_b=0.6), torch.zeros(3, 3, dtype=torch.float64), 100)
    values = torch.cat([pairs.inputs[:WINDOW, :, 0], pairs.targets[..., 0]]).double()
    refused(found_in, windows(torch.cat([values, -2 * values[:, :1]], 1)))
    refused(found_in, windows(torch.cat([values, values.sum(1, keepdim=True)], 1)))
    refused(found_in, windows(values[:10]))


def test_a_chain_that_rounding_has_spoilt_starts_again() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(13, 200, generator=generator, dtype=torch.float64)
    products = (values @ values.mT)[None]
    spoilt = products.clone()
    spoilt[0, -1, -1] = -1e9
    likelihood = MarginalLikelihood(
        torch.tensor([200.0]).double(), torch.tensor([1.0]).double(), products[:, -1:, -1].clone()
    )
    tableau = Tableau.start(products.clone(), 12, 1)
    tableau.flip(torch.tensor([0]))
    tableau.matrices[0, -1, -1] = -1e9
    assert lost_chains(tableau, likelihood).tolist() == [True]
    probs = inclusion_probs(
        Tableau.start(products.clone(), 12, 1), likelihood, torch.full((1, 12), -2.0).double(), generator
    )
    assert bool(torch.isfinite(probs).all())
