"""How often an edge acts against how strongly: standard errors against the information by numerical derivatives."""

import math

import pytest
import torch
from torch import Generator

from tacit.assessment.identification import identify
from tacit.assessment.identification.separation import can_separate, separation_errors
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.observation import (
    BernoulliTargets,
    GaussianNoise,
    MixedObservation,
    NegativeBinomialCounts,
    OrderedCategories,
    PoissonCounts,
    TargetValues,
)
from tacit.predictors import GraphFilter
from tacit.training import LatentGraphModel

THETA, PAIRS = 0.7, 2000


def one_edge(observation, weight, bias=0.0, sources=None):
    """Return a model with the edge 1 -> 0, its inputs, and targets drawn from it."""
    rng = Generator().manual_seed(0)
    fixed = torch.tensor([[True, False], [True, True]])
    predictor = GraphFilter(2, 1, 1)
    with torch.no_grad():
        predictor.own.zero_()
        predictor.edge_weights.fill_(weight)
        predictor.bias.fill_(bias)
    graph = BernoulliGraph(torch.tensor([[0.0, THETA], [0.0, 0.0]]), fixed=fixed)
    model = LatentGraphModel(graph, predictor, EnergyScore(), observation=observation)
    inputs = torch.randn(PAIRS, 2, 1, generator=rng) if sources is None else sources
    with torch.no_grad():
        outputs = model.outputs(inputs, PAIRS, generator=rng)  # (pair, graph, node, number)
        own = outputs[torch.arange(PAIRS), torch.arange(PAIRS)][:, None]  # a graph of each pair's own
        drawn = model.observation.draw(own, generator=rng)
    return model, inputs, drawn[:, 0]


def errors_of(model, inputs, targets, **options):
    return separation_errors(model, inputs, targets, generator=Generator().manual_seed(1), **options)


def test_an_impossible_target_gives_no_information():
    model, inputs, targets = one_edge(GaussianNoise(2), 2.0)
    expected = errors_of(model, inputs, targets)
    targets[0] = 1e30  # its density is 0 in single precision under every graph
    torch.testing.assert_close(errors_of(model, inputs, targets), expected, rtol=0.01, atol=0, equal_nan=True)


def test_the_error_is_that_of_the_information_by_finite_differences():
    weight, bias, step = 2.0, 0.3, 1e-4
    model, inputs, targets = one_edge(BernoulliTargets(2), weight, bias)
    own, source, seen = inputs[:, 0, 0].double(), inputs[:, 1, 0].double(), targets[:, 0, 0].double()

    def log_prob(theta, weight, bias, own_weight):
        base = bias + own_weight * own
        yes = (1 - theta) * torch.sigmoid(base) + theta * torch.sigmoid(base + weight * source)
        return torch.where(seen > 0.5, yes, 1 - yes).log()

    at = torch.tensor([THETA, weight, bias, 0.0]).double()
    moves = step * torch.eye(4).double()
    scores = torch.stack([(log_prob(*(at + move)) - log_prob(*(at - move))) / (2 * step) for move in moves])
    wanted = (scores @ scores.mT).inverse()[0, 0].sqrt().item()
    found = errors_of(model, inputs, targets)
    assert found[0, 1].item() == pytest.approx(wanted, rel=0.2)  # 128 graphs are drawn, of 2
    assert found[0, 0].isnan()
    assert found[1].isnan().all()


def test_small_effects_on_yes_or_no_leave_only_the_product():
    small, large = (errors_of(*one_edge(BernoulliTargets(2), weight))[0, 1].item() for weight in (0.3, 4.0))
    assert small > 1.0
    assert large < 0.1


def test_answers_that_answer_answers_are_not_separable():
    """A source with two values shows two probabilities: an intercept and a product."""
    answers = torch.randint(0, 2, (PAIRS, 2, 1), generator=Generator().manual_seed(5)).float()
    answers[:, 0] = 0.0  # without other inputs
    assert math.isinf(errors_of(*one_edge(BernoulliTargets(2), 4.0, sources=answers))[0, 1].item())


def test_dispersion_beside_the_gate_makes_it_less_certain():
    poisson = errors_of(*one_edge(PoissonCounts(2), 1.0, bias=3.0))[0, 1].item()
    model, inputs, targets = one_edge(NegativeBinomialCounts(2), 1.0, bias=3.0)
    assert errors_of(model, inputs, targets)[0, 1].item() > 1.1 * poisson


def test_the_error_falls_with_the_root_of_the_pairs():
    model, inputs, targets = one_edge(BernoulliTargets(2), 2.0)
    few, many = (errors_of(model, inputs, targets, num_pairs=count)[0, 1].item() for count in (1000, 4000))
    assert few == pytest.approx(2 * many, rel=1e-5)


def test_identify_says_it_of_yes_or_no():
    model, inputs, targets = one_edge(BernoulliTargets(2), 0.4)
    found = identify(model, inputs, targets, generator=Generator().manual_seed(2), num_pairs=PAIRS)
    assert found.flag(0, 1) == "yes"  # it acts, but how often?
    assert found.inseparable.tolist() == [[False, True], [False, False]]
    assert any(line.startswith("For yes-or-no targets only the shape") for line in found.sentences())
    (line,) = [line for line in found.sentences() if line.startswith("How often")]
    assert "1 edge acts cannot be separated from how strongly with 2,000 pairs" in line
    assert "node 1 -> node 0" in line


def test_identify_is_silent_where_effects_are_large():
    model, inputs, targets = one_edge(BernoulliTargets(2), 4.0)
    found = identify(model, inputs, targets, generator=Generator().manual_seed(2), num_pairs=PAIRS)
    assert not found.inseparable.any()
    assert not any(line.startswith("How often") for line in found.sentences())


def test_numbers_with_noise_are_not_looked_at():
    model, inputs, targets = one_edge(GaussianNoise(2), 0.3)
    assert not can_separate(model)
    found = identify(model, inputs, targets, generator=Generator().manual_seed(2), num_pairs=PAIRS)
    assert found.errors is None
    assert not found.inseparable.any()


@pytest.mark.parametrize("unit", [1.0, 20.0])
def test_the_effect_of_an_edge_does_not_depend_on_the_units_of_counts(unit):
    """Effects are in deviations of the target: a change of means is measured in the units of the data."""
    values = TargetValues(torch.full((2, 1), 100.0), torch.full((2, 1), unit))
    model, inputs, targets = one_edge(PoissonCounts(2, values=values), 10.0 / unit)
    found = identify(model, inputs, targets, generator=Generator().manual_seed(2))
    spread = unit * targets[:, 0].std()
    assert found.effects[0, 1].item() == pytest.approx(10 / spread.item(), rel=0.15)


def test_the_effect_on_a_logit_is_that_on_the_probability():
    model, inputs, targets = one_edge(BernoulliTargets(2), 0.2)
    found = identify(model, inputs, targets, generator=Generator().manual_seed(2))
    assert found.effects[0, 1].item() == pytest.approx(0.2 / 4 / 0.5, rel=0.25)  # p (1 - p) w over the deviation


def test_scales_of_a_mixed_model_are_those_of_its_parts():
    grades = TargetValues.plain(1, categories=(1.0, 2.0, 3.0))
    parts = [(GaussianNoise(1), [1]), (OrderedCategories(1, values=grades), [0])]
    spread = torch.tensor([[0.8], [1.5]])
    found = MixedObservation(parts).scales(spread)
    assert found[1].tolist() == [1.5, 1.5]
    assert found[0, 0].item() == pytest.approx(OrderedCategories(1, values=grades).scales(spread[:1]).item())


def test_what_was_never_observed_has_no_effect():
    spread = torch.tensor([[math.inf]])
    grades = TargetValues.plain(1, categories=(1.0, 2.0, 3.0))
    for observation in (BernoulliTargets(1), PoissonCounts(1), OrderedCategories(1, values=grades)):
        assert observation.scales(spread).isinf().all()
