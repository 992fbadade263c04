"""How often edges act: always and at times told apart, the model that holds the answer, and resamples that choose."""

from importlib import import_module

import pytest
import torch

from gates import OFTEN, WEIGHTS, filter_model, gate_pairs
from tacit.assessment.uncertainty import acting, adopt
from tacit.assessment.uncertainty.boundary import NOTHING_KNOWN
from tacit.data import Pairs
from tacit.graph import BernoulliGraph, EdgePrior
from tacit.local import LocalModel, has_moment_estimate

PRESENT = OFTEN > 0
MOMENTS = {"intervals": False, "switching": True}  # without the likelihood, which takes nearly all of the time
module = import_module("tacit.assessment.uncertainty.acting")  # the function has the name of its file


@pytest.fixture(scope="module")
def pairs():
    return gate_pairs(1500)


@pytest.fixture(scope="module")
def found(pairs):
    return acting(filter_model(PRESENT), pairs)


def test_a_gate_and_a_fixed_edge_are_told_apart(found):
    assert torch.equal(found.always, OFTEN == 1)
    assert torch.equal(found.edge_probs == 1, OFTEN == 1)
    at_times = PRESENT & (OFTEN < 1)
    assert ((found.edge_probs - OFTEN).abs() < 0.1)[at_times].all()
    around = found.intervals()
    assert ((around.low <= OFTEN) & (around.high >= OFTEN))[PRESENT].all()
    assert (around.high == 1)[OFTEN == 1].all()
    assert (around.high < 1)[at_times].all()
    assert ((around.low <= found.edge_probs) & (found.edge_probs <= around.high)).all()
    assert (found.std_errors[PRESENT] > 0).all()
    assert not found.std_errors[~PRESENT].any()
    assert torch.equal(found.learned, PRESENT)
    narrow = found.intervals(0.5)
    assert (narrow.low >= around.low).all()
    assert found.warnings == []


def test_a_curved_mean_is_not_taken_for_a_gate():
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(2000, 3, 1, generator=generator, dtype=torch.float64)
    bent = torch.tanh(1.5 * inputs[:, 1] - inputs[:, 2])
    noise = 0.2 * torch.randn(2000, 3, 1, generator=generator, dtype=torch.float64)
    targets = torch.stack([0.4 * inputs[:, 0] + bent, inputs[:, 1], inputs[:, 2]], 1) + noise
    present = torch.tensor([[False, True, True], [False, False, False], [False, False, False]])
    found = acting(filter_model(present), Pairs(inputs, targets), replicas=0, intervals=False)
    assert torch.equal(found.always, present)


def test_the_model_holds_the_answer_and_its_mean_is_that_of_the_regressions(pairs, found):
    model = filter_model(PRESENT)
    assert adopt(model, found.parameters, pairs[:300])
    assert torch.equal(model.graph.edge_probs.detach(), found.edge_probs)
    weights = model.predictor.edge_weights.detach()[..., 0, 0]
    assert torch.allclose(weights[PRESENT], WEIGHTS[PRESENT], atol=0.12)
    sigmas = model.observation.log_sigma.detach().exp()
    assert torch.allclose(sigmas, torch.full_like(sigmas, 0.4), atol=0.05)
    expected = model.predictor(pairs.inputs, found.edge_probs[None, None])[
        :, 0
    ].detach()  # linear: the mean over graphs
    mean = 0.5 * pairs.inputs[..., 0] + pairs.inputs[..., 0] @ (OFTEN * WEIGHTS).mT
    assert float((expected[..., 0] - mean).square().mean().sqrt()) < 0.08


def test_edges_that_always_act_leave_the_variance_to_the_noise():
    """New pairs have squared errors as large as the variance says: 20 estimates, each with an error of .08.

    The errors of the weights add .02. The ratio of each of four sources may be above 0 by chance, and is set to 0:
    the noise must take its part.
    """
    often = 1 - torch.eye(5, dtype=torch.float64)
    choices, sizes = {"often": often, "weights": 0.5 * often}, []
    new = gate_pairs(5000, seed=99, **choices)
    for seed in range(4):
        model = filter_model(often > 0)
        found = acting(model, gate_pairs(300, seed=seed, **choices), replicas=0, intervals=False)
        model.load_state_dict(found.parameters, strict=False)
        described = model.describe(new.inputs, found.edge_probs[None, None])
        variance = model.observation.variance(described)[:, 0]
        sent = model.predictor.edge_weights[..., 0, 0] * new.inputs[:, None, :, 0]  # (pair, target, source)
        variance = variance[..., 0] + (found.edge_probs * (1 - found.edge_probs) * sent.square()).sum(2)
        error = new.targets - model.observation.mean(described)[:, 0]
        sizes.append((error[..., 0].square() / variance).mean(0).detach())
    assert float(torch.stack(sizes).mean()) == pytest.approx(1.02, abs=3 * 0.018)


def test_an_answer_that_forecasts_worse_is_not_taken(pairs, found):
    model = filter_model(PRESENT)
    assert adopt(model, found.parameters, pairs[:300])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    bad = {"predictor.own": torch.zeros_like(model.predictor.own)}
    assert not adopt(model, bad, pairs[:300], worse=3, tolerance=0.01)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert adopt(model, bad, pairs[:300], tolerance=10)


def test_resamples_that_do_not_keep_an_edge_have_it_at_0_and_do_not_count(pairs, refused):
    def keeps_less(rows):
        masks = PRESENT.repeat(len(rows), 1, 1)
        masks[:, 0, 2] = rows[:, 0] % 2 == 1
        masks[:, 2, 0] = False
        return masks

    model = filter_model(PRESENT)
    found = acting(model, pairs, replicas=12, kept=keeps_less, **MOMENTS)
    dropped = found.kept[:, 0, 2] == 0
    assert 0 < int(dropped.sum()) < 12
    assert not found.resampled[dropped][:, 0, 2].any()
    assert (found.resampled[~dropped][:, 0, 2] > 0.4).all()
    assert found.bagged[0, 2] == pytest.approx(float(found.resampled[~dropped][:, 0, 2].mean()))
    assert found.wide[2, 0]
    assert found.std_errors[2, 0] == NOTHING_KNOWN
    around = found.intervals()
    assert (float(around.low[2, 0]), float(around.high[2, 0])) == (0, 1)
    assert found.warnings == ["fewer than 4 of 12 resamples keep 1 of the edges: their errors are wide"]
    every = acting(model, pairs, replicas=0, **MOMENTS)
    assert found.edge_probs[0, 2] == every.edge_probs[0, 2]  # the answer is that of the data as it is
    refused(acting, model, pairs, kept=lambda _: torch.ones(2, 2, dtype=torch.bool))


def test_without_resamples_and_from_another_state(pairs, found):
    """No start, no training: only which edges are learned counts. Resamples change the errors by one factor only."""
    model = filter_model(PRESENT)
    model.predictor.edge_weights.data.normal_(generator=torch.Generator().manual_seed(1))
    alone = acting(model, pairs, replicas=0)
    assert torch.equal(alone.edge_probs, found.edge_probs)
    assert torch.equal(alone.ratios.std_errors(), found.ratios.std_errors())
    for name in ("low", "high", "p_values", "nats"):
        assert torch.allclose(getattr(alone.gates, name), getattr(found.gates, name), rtol=0, atol=0, equal_nan=True)
    assert torch.equal(alone.bagged, alone.edge_probs)
    assert alone.inflation.eq(1).all()
    assert not alone.wide.any()


def test_targets_that_are_missing_do_not_count(pairs):
    observed = torch.ones_like(pairs.targets)
    observed[::3, 0] = 0
    targets = torch.where(observed > 0, pairs.targets, 99.0)
    some = acting(filter_model(PRESENT), Pairs(pairs.inputs, targets, observed), replicas=0, **MOMENTS)
    rows = torch.arange(1500) % 3 > 0
    fewer = acting(filter_model(PRESENT), pairs[rows], replicas=0, **MOMENTS)
    assert torch.allclose(some.ratios.ratios[:2], fewer.ratios.ratios[:2])  # of the first node
    assert torch.allclose(some.ratios.std_errors()[:2], fewer.ratios.std_errors()[:2])


def test_too_few_pairs_say_nothing():
    found = acting(filter_model(PRESENT), gate_pairs(13), replicas=0)
    assert torch.equal(found.wide[0], PRESENT[0])  # 4 coefficients of the mean and 4 of the variance
    assert not found.wide[1].any()
    assert found.warnings == ["13 training pairs are too few to estimate how often edges into 1 of the nodes act"]


def test_a_node_with_many_columns_keeps_its_parameters(pairs, monkeypatch):
    monkeypatch.setattr(module, "MOST_COLUMNS", 7)  # one own column and two sources have 8, with one source 6
    model = filter_model(PRESENT)
    model.predictor.edge_weights.data.fill_(3.0)
    found = acting(model, pairs, replicas=4, **MOMENTS)
    many = PRESENT.sum(1) == 2
    assert many.any()
    assert not many.all()
    assert torch.equal(found.wide, PRESENT & many[:, None])
    assert (found.std_errors[found.wide] == NOTHING_KNOWN).all()
    assert torch.equal(found.edge_probs[many], model.graph.edge_probs.detach()[many])
    assert torch.equal((found.parameters["predictor.edge_weights"] == 3).all(dim=(1, 2, 3)), many)
    assert found.warnings == [
        f"how often edges into {int(many.sum())} of the nodes act was not computed: regressions have up to 8 columns, "
        "more than 7; use a shorter window, for example --window 24"
    ]


def test_edges_that_are_required_are_read_but_not_judged(pairs):
    graph = BernoulliGraph(torch.where(OFTEN == 1, 1.0, torch.where(PRESENT, 0.3, 0.0)).float(), fixed=OFTEN % 1 == 0)
    model = filter_model(PRESENT)
    model.graph = graph.double()
    found = acting(model, pairs, replicas=0, intervals=False)
    assert torch.equal(found.learned, OFTEN % 1 > 0)
    assert not found.always.any()
    assert ((found.edge_probs - OFTEN).abs() < 0.1).all()


def test_models_that_it_is_not_for(pairs, refused):
    assert has_moment_estimate(filter_model(PRESENT))
    symmetric = filter_model(PRESENT | PRESENT.mT, symmetric=True)
    loops = filter_model(PRESENT | torch.eye(3, dtype=torch.bool))
    prior = filter_model(PRESENT)
    prior.prior = EdgePrior(0.1, weight=1.0)
    bent = filter_model(PRESENT)
    bent.predictor.activation = "tanh"
    for model in (symmetric, loops, prior, bent):
        assert not has_moment_estimate(model)
    refused(acting, bent, pairs)


def test_noise_that_follows_the_own_input_has_terms_for_it(pairs):
    data = LocalModel.of(filter_model(PRESENT), pairs)
    assert data.moments(0).spread.shape == (1500, 2)
    assert [data.sources(node).tolist() for node in range(3)] == [[1, 2], [2], [0]]
