"""The bootstrap: its arithmetic by hand, its errors where counting gives them, and that it leaves the model alone."""

import math
from dataclasses import replace
from functools import partial
from importlib import import_module

import pytest
import torch
from scipy import stats

from tacit.assessment.uncertainty import adopt, bootstrap, short
from tacit.assessment.uncertainty.resamples import data_share
from tacit.data import Pairs, bootstrap_rows
from tacit.graph import BernoulliGraph, SineSquared
from tacit.losses import EnergyScore
from tacit.randomness import generator_for
from tacit.training import CosineDecay, FitResult, FitSettings, LatentGraphModel, StepDecay
from toys import LinearHop, visible

module = import_module("tacit.assessment.uncertainty.bootstrap")  # the function has the name of its file
LOOPS = torch.diag(torch.linspace(0.3, 0.7, 4))
QUICK = FitSettings(epochs=4, batch_size=20, schedule=CosineDecay(0.2))


@pytest.fixture
def together(monkeypatch):
    """Train all replicas in one program, as on a GPU: faster, with the same result."""
    monkeypatch.setattr(module, "fit", partial(module.fit, lift="vmap"))


@pytest.fixture
def asked(monkeypatch, together):
    """What the bootstrap asks of a fit, which then runs."""
    calls, run = [], module.fit

    def spy(*arguments, **choices):
        calls.append((arguments, choices))
        return run(*arguments, **choices)

    monkeypatch.setattr(module, "fit", spy)
    return calls


def run(model, pairs, settings=QUICK, **choices):
    return bootstrap(model, pairs, pairs[:25], settings, **{"replicas": 6, "compile": False} | choices)


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same_state(model, before):
    return all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


PROBS = torch.tensor(  # replica, edge: two on the data as it is, three on resamples
    [[0.50, 0.2, 0.001], [0.52, 0.2, 0.001], [0.40, 0.3, 0.001], [0.60, 0.5, 0.001], [0.50, 0.1, 0.001]]
)


def result_of(probs, link=None, *, symmetric=False, weights=None):
    """A fit of 2 nodes whose replicas ended at these probabilities of the edges 00, 01 and 11; 10 is held at 0.4."""
    stack = torch.full((len(probs), 2, 2), 0.4)
    stack[:, 0, 0], stack[:, 0, 1], stack[:, 1, 1] = probs.unbind(1)
    if symmetric:
        stack[:, 1, 0] = stack[:, 0, 1]
    fixed = torch.tensor([[False, False], [not symmetric, False]])
    graph = BernoulliGraph(stack.mean(0), fixed, link=link, symmetric=symmetric)
    model = LatentGraphModel(graph, LinearHop(torch.ones(1, 1, 1)), EnergyScore(), num_graphs=4)
    parameters = {f"graph.{graph.link.parameter}": graph.link.raw(stack)}
    if weights is not None:
        parameters["predictor.hop_weights"] = weights.view(-1, 1, 1, 1)
    return FitResult(model, 0, [], [], parameters, 7, 1.5, 0.5, False, ["a note"])


@pytest.mark.parametrize("link", [None, SineSquared()])
def test_summary_by_hand(link):
    result = result_of(PROBS, link, weights=torch.arange(5.0))
    found = module._summary(result, 2, result.model.graph, 100)
    same = 0.02**2 / 2  # of two numbers .02 apart
    resampled = (0.01, 0.04)  # of (.4, .6, .5) and (.3, .5, .1)
    rho = same / sum(resampled)
    assert found.rho == pytest.approx(rho, rel=1e-4)
    errors = [math.sqrt((1 - rho) * v * (1 + 3 / 25) + rho * v / 5) for v in resampled]
    assert found.edge_probs.flatten().tolist() == pytest.approx([0.504, 0.26, 0.4, 0.001], abs=1e-6)
    # the last edge is at the boundary, where replicas are all alike: the lower median of the other two
    expected = [*errors, 0.0, min(errors)]
    assert found.std_errors.flatten().tolist() == pytest.approx(expected, rel=1e-4)
    assert found.degrees == 2
    assert torch.allclose(found.resampled, result.model.graph.probs_from(next(iter(result.parameters.values())))[2:])
    assert found.parameters["predictor.hop_weights"].item() == 2.0
    graph = result.model.graph
    assert torch.allclose(graph.probs_from(found.parameters[f"graph.{graph.link.parameter}"]), found.edge_probs)
    assert (found.train_seconds, found.warnings, found.symmetric) == (1.5, ["a note"], False)


def test_the_share_of_training_is_at_most_nine_tenths():
    probs = PROBS.clone()
    probs[0, 1] = 0.9
    result = result_of(probs)
    found = module._summary(result, 2, result.model.graph, 100)
    assert found.rho == 0.9
    variance = 0.01 * (0.1 * (1 + 3 / 25) + 0.9 / 5)
    assert found.std_errors[0, 0].item() == pytest.approx(math.sqrt(variance), rel=1e-4)


@pytest.mark.parametrize(("moved", "warned"), [(2.9, False), (3.1, True)])
def test_a_fit_that_had_not_settled_adds_how_far_it_is_away(moved, warned):
    """Replicas that all move away from the fit by so many errors, root mean square over the three learned edges."""
    result = result_of(PROBS)
    settled = module._summary(result, 2, result.model.graph, 100)
    shares = torch.tensor([[1.4, 1.0], [0.0, 0.2]])  # 1.4^2 + 1 + .2^2 = 3, the number of edges
    away = moved * shares * settled.std_errors
    fitted = BernoulliGraph(settled.edge_probs + away, result.model.graph.fixed)
    found = module._summary(result, 2, fitted, 100)
    expected = torch.hypot(settled.std_errors, away) if warned else settled.std_errors
    assert torch.allclose(found.std_errors, expected, rtol=1e-4)
    assert torch.equal(found.edge_probs, settled.edge_probs)
    assert len(found.warnings) == 1 + warned
    assert found.warnings[-1] == "a note"
    if warned:
        assert f"moves edge probabilities by {moved:.1f} standard errors" in found.warnings[0]


def test_intervals_are_those_of_the_resampled_replicas():
    result = result_of(PROBS)
    found = module._summary(result, 2, result.model.graph, 100)
    for simultaneous, level in ((False, 0.9), (True, 0.9 ** (1 / 3))):
        quantile = stats.t.ppf((1 + level) / 2, 2)
        intervals = found.intervals(0.9, simultaneous=simultaneous)
        reach = quantile * found.std_errors
        assert torch.allclose(intervals.low, (found.edge_probs - reach).clamp_min(0))
        assert torch.allclose(intervals.high, (found.edge_probs + reach).clamp_max(1))
        assert intervals.low[1, 0] == intervals.high[1, 0] == found.edge_probs[1, 0]  # held


def test_symmetric_pairs_have_one_error_and_count_once():
    result = result_of(PROBS, symmetric=True)
    found = module._summary(result, 2, result.model.graph, 100)
    assert found.symmetric
    assert torch.equal(found.std_errors, found.std_errors.mT)
    assert found.std_errors[0, 1] > 0
    rho = (0.02**2 / 2) / (0.01 + 2 * 0.04)
    assert found.rho == pytest.approx(rho, rel=1e-4)
    quantile = stats.t.ppf((1 + 0.5 ** (1 / 3)) / 2, 2)  # three coins, not four entries
    expected = 0.504 - quantile * float(found.std_errors[0, 0])
    assert expected > 0.1
    assert found.intervals(0.5, simultaneous=True).low[0, 0].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("replicas", [4, 6, 9])
def test_first_replicas_train_on_the_data_as_it_is_and_the_others_on_resamples(asked, replicas):
    model, pairs = visible(LOOPS, 60, EnergyScore())
    found = run(model, pairs, replicas=replicas, seed=3)
    ((arguments, choices),) = asked
    rows, same = choices["resamples"], {4: 2, 6: 2, 9: 2}[replicas]
    assert choices["seeds"] == [3000 + r for r in range(replicas)]
    assert choices["start_at_model"]
    assert torch.equal(rows[:same], torch.arange(60).expand(same, -1))
    for seed, row in zip(choices["seeds"][same:], rows[same:], strict=True):
        assert torch.equal(row, bootstrap_rows(60, generator=generator_for(seed, "resample")))
    assert arguments[3] == short(QUICK)
    assert found.degrees == replicas - same - 1
    assert found.resampled.shape == (replicas - same, 4, 4)


def test_pairs_of_several_series_are_resampled_by_whole_series(asked):
    model, pairs = visible(LOOPS[:1, :1], 60, EnergyScore())
    series = torch.arange(60) // 10
    run(model, replace(pairs, series=series), FitSettings(epochs=1, batch_size=40), replicas=4)
    choices = asked[0][1]
    for row in choices["resamples"][2:]:
        assert all(len(set(series[part].tolist())) == 1 for part in row.split(10))


def test_a_quarter_of_many_replicas_train_on_the_data_as_it_is(asked):
    model, pairs = visible(LOOPS[:1, :1], 40, EnergyScore())
    assert run(model, pairs, FitSettings(epochs=1, batch_size=40), replicas=16).degrees == 11
    rows = asked[0][1]["resamples"]
    assert [torch.equal(row, torch.arange(40)) for row in rows] == [True] * 4 + [False] * 12


def test_pairs_of_a_series_are_drawn_in_blocks(asked):
    model, pairs = visible(LOOPS, 60, EnergyScore())
    run(model, pairs, block=7)
    for row in asked[0][1]["resamples"][2:]:
        for part in row.split(7):
            assert torch.equal(part, (part[0] + torch.arange(len(part))) % 60)


def test_same_seed_same_answer_and_the_model_stays(together):
    model, pairs = visible(LOOPS, 60, EnergyScore())
    model.predictor.requires_grad_(True)
    before = state(model)
    first, again, other = (run(model, pairs, seed=seed) for seed in (0, 0, 1))
    assert same_state(model, before)
    for name in ("edge_probs", "std_errors", "resampled"):
        assert torch.equal(getattr(first, name), getattr(again, name))
        assert not torch.equal(getattr(first, name), getattr(other, name))
    assert first.rho == again.rho != other.rho
    assert not torch.equal(first.parameters["predictor.hop_weights"], before["predictor.hop_weights"])


def test_what_is_held_has_no_error_and_its_interval_is_its_probability(together):
    held = torch.zeros(4, 4, dtype=torch.bool)
    held[1, 1] = True
    model, pairs = visible(LOOPS, 60, EnergyScore(), held=held)
    found = run(model, pairs)
    assert torch.equal(found.learned, ~model.graph.fixed)
    assert (found.std_errors[found.learned] > 0).all()
    assert not found.std_errors[~found.learned].any()
    intervals, fixed = found.intervals(), model.graph.fixed
    assert torch.equal(intervals.low[fixed], model.graph.edge_probs[fixed])
    assert torch.equal(intervals.high[fixed], model.graph.edge_probs[fixed])
    assert found.edge_probs[1, 1] == model.graph.edge_probs[1, 1] > 0


def test_a_symmetric_graph(together):
    probs = torch.tensor([[0.0, 0.4, 0.0], [0.4, 0.0, 0.0], [0.0, 0.0, 0.6]])
    model, pairs = visible(probs, 60, EnergyScore(), symmetric=True)
    found = run(model, pairs)
    assert torch.equal(found.edge_probs, found.edge_probs.mT)
    assert torch.equal(found.std_errors, found.std_errors.mT)
    assert found.std_errors[0, 1] > 0
    assert found.symmetric
    found.intervals(simultaneous=True)


def test_edges_nearly_at_0_are_held_there_but_have_the_usual_error(together):
    probs = torch.diag(torch.tensor([0.5, 0.4, 0.6, 0.004]))
    model, pairs = visible(probs, 250, EnergyScore())
    pairs = Pairs(pairs.inputs, pairs.targets * torch.tensor([[1.0], [1.0], [1.0], [0.0]]))
    found = run(model, pairs)
    assert found.edge_probs[3, 3] == 0
    assert not found.resampled[:, 3, 3].any()
    assert found.learned[3, 3]
    assert found.std_errors[3, 3] == found.std_errors.diagonal()[:3].median() > 0
    assert model.graph.edge_probs[3, 3] > 0


@pytest.mark.parametrize("probability", [0.004, 0.5])
def test_with_every_edge_held(together, probability):
    """Held by the model, or by the bootstrap at 0."""
    model, pairs = visible(torch.diag(torch.full((3,), probability)), 250, EnergyScore(), held=probability == 0.5)
    model.predictor.requires_grad_(True)
    found = run(model, Pairs(pairs.inputs, pairs.targets if probability == 0.5 else 0 * pairs.targets))
    assert found.rho == 0
    error = 0 if probability == 0.5 else math.sqrt(0.03 * 0.97 / 250)  # as if it were seen, at the boundary
    assert found.std_errors.diagonal().tolist() == pytest.approx([error] * 3)
    assert found.edge_probs.diagonal().tolist() == [probability if probability == 0.5 else 0.0] * 3
    assert torch.equal(found.intervals().low, found.edge_probs)
    assert found.warnings == []
    assert found.learned.any() == (probability == 0.004)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_missing_targets(together, dtype):
    """The edge of a node that nobody looked at does not move, and says nothing about whether the others settled."""
    model, pairs = visible(LOOPS, 60, EnergyScore())
    model, observed = model.to(dtype), torch.ones_like(pairs.targets)
    observed[::2, 1], observed[:, 2] = 0, 0
    found = run(model, Pairs(pairs.inputs, pairs.targets, observed).to("cpu", dtype))
    assert (found.std_errors.diagonal()[[0, 1, 3]] > 0).all()
    assert float(found.edge_probs[2, 2]) == pytest.approx(float(model.graph.edge_probs[2, 2].detach()), abs=1e-6)
    assert found.warnings == []


def test_edges_that_a_resample_does_not_keep_are_exactly_0_in_its_replica_and_do_not_count(asked):
    model, pairs = visible(LOOPS, 60, EnergyScore())
    masks = torch.ones(7, 4, 4, dtype=torch.bool)
    masks[:3, 0, 0], masks[:5, 1, 1] = False, False
    found = run(model, pairs, replicas=9, kept=lambda _: masks)
    start = asked[0][1]["starts"]["graph.edge_logits"]
    assert torch.equal((start[2:] == -torch.inf).diagonal(dim1=1, dim2=2), ~masks.diagonal(dim1=1, dim2=2))
    assert start[:2].diagonal(dim1=1, dim2=2).isfinite().all()  # the data as it is keeps all
    assert not found.resampled[~masks].any()
    diagonal = found.resampled.diagonal(dim1=1, dim2=2)
    assert (diagonal[:, 2:] > 0.05).all()
    assert (diagonal[3:, 0] > 0.05).all()
    assert found.edge_probs[0, 0] > diagonal[3:, 0].min() > 0.05
    assert found.std_errors[1, 1] == 0.5  # two of seven keep it
    assert found.std_errors[0, 0] < 0.4
    assert found.warnings == ["fewer than 4 of 7 resamples keep 1 of the edges: their errors are wide"]


def test_an_error_is_that_of_the_replicas_that_keep_the_edge():
    probs = torch.cat([PROBS, torch.tensor([[0.0, 0.2, 0.001], [0.42, 0.4, 0.001]])])
    result, masks = result_of(probs), torch.ones(7, 2, 2, dtype=torch.bool)
    masks[5, 0, 0] = False
    found = module._summary(result, 2, result.model.graph, 100, masks=masks)
    keeping = torch.tensor([0.4, 0.6, 0.5, 0.42])
    others = torch.tensor([0.3, 0.5, 0.1, 0.2, 0.4])
    rho = 0.02**2 / 2 / float(keeping.var() + others.var())
    assert found.rho == pytest.approx(rho, rel=1e-4)
    error = float(keeping.var()) * ((1 - rho) * (1 + 4 / 36) + rho / 6)
    assert float(found.std_errors[0, 0]) == pytest.approx(math.sqrt(error), rel=1e-4)
    assert float(found.edge_probs[0, 0]) == pytest.approx(float(keeping.sum() + 1.02) / 6, abs=1e-6)


def test_other_starts_that_predict_as_well_widen_the_errors(asked):
    model, pairs = visible(LOOPS, 60, EnergyScore())
    plain = run(model, pairs)
    assert len(asked) == 1
    found = run(model, pairs, starts=2, untrained=model)
    (arguments, choices) = asked[2]
    assert choices["seeds"] == [500, 501]
    assert "resamples" not in choices
    assert arguments[3] == QUICK  # the whole training
    assert torch.equal(found.edge_probs, plain.edge_probs)
    assert (found.std_errors >= plain.std_errors).all()


def test_the_data_s_share_is_the_sandwich_s_unless_they_are_far_apart():
    both = torch.full((3, 3), 0.04).double()
    seen = torch.ones(3, 3, dtype=torch.bool)
    typical = (1 - 2 / 90) ** 3
    for error, expected in ((0.1, 0.25 * typical), (0.16, 0.64 * typical), (0.3, 2.25 * typical), (0.05, 0.5)):
        share = data_share(0.5 * both, both, seen, torch.full((3, 3), error), 10)
        assert share == pytest.approx(expected, rel=1e-5)
    assert data_share(0.5 * both, both, seen, None, 10) == pytest.approx(0.5)
    few = torch.where(torch.arange(9).view(3, 3) < 4, 0.1, 0.0)
    assert data_share(0.5 * both, both, seen, few, 10) == pytest.approx(0.5)


def test_settings_of_the_replicas():
    settings = FitSettings(
        epochs=12,
        batch_size=7,
        schedule=StepDecay(0.4, 0.1),
        predictor_learning_rate=0.3,
        average_fraction=0.1,
        halve_after=(1,),
        patience=2,
        adam_betas=(0.8, 0.9),
    )
    expected = FitSettings(
        epochs=4,  # 3.6
        batch_size=7,
        schedule=CosineDecay(0.2 * 0.4),
        predictor_learning_rate=0.2 * 0.3,
        average_fraction=0.5,
        adam_betas=(0.8, 0.9),
    )
    assert short(settings) == expected
    assert short(FitSettings(epochs=1)).epochs == 1


def test_refusals(refused):
    model, pairs = visible(LOOPS, 40, EnergyScore())
    for some, choices in ((pairs[:19], {}), (pairs, {"block": 9}), (pairs, {"block": 0}), (pairs, {"replicas": 3})):
        refused(bootstrap, model, some, pairs, QUICK, **choices)


@pytest.mark.parametrize("stop_at", [0, 2])
def test_ctrl_c_leaves_the_model_as_it_is(together, stop_at):
    model, pairs = visible(LOOPS, 60, EnergyScore())
    before, seen = state(model), []

    def interrupt(progress):
        seen.append(progress.step)
        if progress.step == stop_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(model, pairs, on_progress=interrupt)
    assert seen == list(range(stop_at + 1))
    assert same_state(model, before)


def test_an_edge_that_is_seen_has_the_error_of_counting(together):
    """16 edges and 3 times 18 resampled replicas: the variance comes out within sqrt(2 / 16 / 51) = 5%; 4 of these."""
    probs = torch.diag(torch.linspace(0.3, 0.7, 16))
    model, pairs = visible(probs, 100, EnergyScore(), num_graphs=5)
    settings = FitSettings(epochs=40, batch_size=25, schedule=CosineDecay(0.5))
    theta = model.graph.edge_probs.detach().diagonal()
    ratios = []
    for seed in range(3):
        found = run(model, pairs, settings, replicas=24, seed=seed)
        # the mean of all replicas adds to the error of one fit what their own resamples and training leave in it
        one = found.rho * found.resampled.var(0).diagonal() / 24
        data = (found.std_errors.diagonal().square() - one) / (1 + 18 / 24**2)
        ratios.append((data / (theta * (1 - theta) / 100)).mean())
        assert 0.02 < found.rho < 0.3
        # the mean over resamples is near the fit, by its own error
        away = (found.edge_probs.diagonal() - theta) / (theta * (1 - theta) / 100 / 18).sqrt()
        assert float(away.abs().max()) < 5
    assert float(sum(ratios) / 3) == pytest.approx(1, abs=0.2)


# ---------------------------------------------------------------- the bagged estimate takes the place of the fit, unles


def test_a_better_mean_is_adopted_and_a_worse_one_is_not():
    model, pairs = visible(LOOPS, 200, EnergyScore())
    right = model.graph.edge_probs.detach().clone()
    settings = FitSettings(epochs=4, batch_size=20, schedule=CosineDecay(0.2))
    found = bootstrap(model, pairs, pairs[:50], settings, replicas=6, compile=False)
    name = f"graph.{model.graph.link.parameter}"

    wrong = torch.where(model.graph.fixed, right, (right + 0.25).clamp_max(0.99))
    found.parameters[name] = torch.logit(wrong)
    assert not adopt(model, found.parameters, pairs)
    assert torch.equal(model.graph.edge_probs, right)

    model.graph.start_around(wrong)
    found.parameters[name] = torch.logit(right)
    assert adopt(model, found.parameters, pairs)
    assert torch.allclose(model.graph.edge_probs, right, atol=1e-6)


def test_edges_that_nothing_moves_are_not_known_exactly():
    """Of a node that was never observed the replicas keep what the fit had: the error is that of knowing nothing."""
    model, pairs = visible(LOOPS, 200, EnergyScore())
    observed = torch.ones_like(pairs.targets)
    observed[:, 2] = 0
    blind = type(pairs)(pairs.inputs, pairs.targets, observed)
    settings = FitSettings(epochs=4, batch_size=20, schedule=CosineDecay(0.2))
    found = bootstrap(model, blind, blind[:50], settings, replicas=6, compile=False)
    assert found.std_errors[2, 2] == 0.5
    assert 0 < found.std_errors[1, 1] < 0.2
