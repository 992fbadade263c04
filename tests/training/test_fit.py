import itertools

import pytest
import torch

from tacit.data import Pairs
from tacit.errors import TrainingError
from tacit.estimators import Concrete, DisARM, StraightThrough
from tacit.graph import BernoulliGraph, EdgePrior, SineSquared
from tacit.losses import ELBO, MMD, EnergyScore, ExpectedError, NodewiseExpectedError, PointMSE, RationalQuadratic
from tacit.predictors import HopPredictor
from tacit.randomness import generator_for
from tacit.systems import CommunitySystem
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, StepDecay, Trace, fit
from tacit.training.gradient import LiftedGradient
from tacit.training.state import initial_stacks
from tacit.training.step import Update

# Whole trainings: shapes are checked where single steps and shorter ones are tested.
pytestmark = pytest.mark.usefixtures("unchecked")
SEEDS = (3, 7, 20)


@pytest.fixture(scope="module")
def system():
    probs = torch.tensor([[0.7, 0.3, 0.0, 0.0], [0.0, 0.6, 0.4, 0.0], [0.0, 0.0, 0.5, 0.9], [0.8, 0.0, 0.0, 0.5]])
    return CommunitySystem(probs)


@pytest.fixture(scope="module")
def pairs(system):
    return system.generate(400, 0).to("cpu", torch.float64).split()


def make(system, *, known=False, loss=None, link=None, **choices):
    rng = torch.Generator().manual_seed(0)
    predictor = system.true_predictor() if known else HopPredictor.random(2, 4, generator=rng)
    choices = {"num_graphs": 4} | choices
    return LatentGraphModel(
        BernoulliGraph.uniform(4, generator=rng, link=link), predictor, loss or EnergyScore(), **choices
    )


def run(system, pairs, seeds, lift, settings, **choices):
    return fit(make(system, **choices), pairs.train, pairs.validation, settings, seeds=seeds, lift=lift, compile=False)


@pytest.mark.parametrize("epochs", [2, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("lift", ["loop", "vmap"])
@pytest.mark.parametrize(
    "choices",
    [
        {"known": True},
        {},
        {"loss": MMD(RationalQuadratic(), scope="joint", baseline="paper"), "share_graphs": True},
        {"loss": NodewiseExpectedError("mae")},
        {"estimator": Concrete(1.0, 0.2)},
        {"estimator": DisARM()},
    ],
    ids=["psi-known", "psi-trained", "joint-shared", "moving-average", "temperature", "antithetic"],
)
def test_replicas_together_equal_each_alone(system, pairs, lift, choices, epochs):
    """Float64, 40 or 200 steps, initial values, batches and graphs from each replica's own seed: equal to 1e-8."""
    settings = FitSettings(epochs=epochs, batch_size=16, average_fraction=0.3)
    together = run(system, pairs, SEEDS, lift, settings, **choices)
    assert together.steps == 20 * epochs
    assert together.warnings == []  # what is asked for is what ran
    for replica, seed in enumerate(SEEDS):
        alone = run(system, pairs, (seed,), "loop", settings, **choices)
        for name, value in together.parameters.items():
            assert (value[replica] - alone.parameters[name][0]).abs().max() < 1e-8
        assert together.replicas[replica].validation_loss == pytest.approx(alone.replicas[0].validation_loss, abs=1e-9)
    spread = together.parameters["graph.edge_logits"].std(0).max()
    assert spread > 1e-2, "replicas would all be the same"


class NotLiftable(HopPredictor):
    def forward(self, inputs, graphs):
        return super().forward(inputs, graphs) * (1.0 if inputs.amax().item() > -1e9 else 0.0)


def test_a_predictor_that_cannot_be_lifted_is_looped_with_the_same_result(system, pairs):
    settings = FitSettings(epochs=1, batch_size=64)
    results = {}
    for lift in ("vmap", "loop"):
        model = make(system, known=True)
        model.predictor = NotLiftable(system.hop_weights)
        results[lift] = fit(model, pairs.train, pairs.validation, settings, seeds=SEEDS, lift=lift, compile=False)
    assert results["vmap"].warnings[0].startswith("the predictor does not support vmap, so replicas are trained")
    assert results["loop"].warnings == []
    for name, value in results["vmap"].parameters.items():
        assert torch.equal(value, results["loop"].parameters[name])


def test_vmap_is_taken_when_asked_for(system, pairs, monkeypatch):
    import tacit.training.gradient

    lifted = []
    monkeypatch.setattr(tacit.training.gradient, "vmap", lambda f: lifted.append(f) or torch.func.vmap(f))
    run(system, pairs, SEEDS, "vmap", FitSettings(epochs=1, batch_size=64))
    assert lifted


@pytest.mark.parametrize("lift", ["loop", "vmap"])
def test_dropping_bad_replicas_does_not_change_the_good_ones(system, pairs, lift):
    settings = FitSettings(epochs=3, batch_size=32, halve_after=(1, 2))
    seeds = (1, 2, 3, 4)
    dropped = run(system, pairs, seeds, lift, settings)
    kept = run(system, pairs, seeds, "loop", FitSettings(epochs=3, batch_size=32))
    last = [replica.dropped_after for replica in dropped.replicas]
    assert sorted(last, key=str) == [1, 1, 2, None]
    best = dropped.best
    assert last[best] is None
    losses = [kept.history[0].validation_loss[r] for r in range(4)]
    assert {r for r in range(4) if last[r] == 1} == set(sorted(range(4), key=lambda r: losses[r])[2:])
    for name, value in dropped.parameters.items():
        assert torch.allclose(value[best], kept.parameters[name][best], atol=1e-10)
    assert sum(value is not None for value in dropped.history[2].train_loss) == 1


def test_selection_keeps_the_lowest_validation_loss(system, pairs):
    result = run(system, pairs, SEEDS, "loop", FitSettings(epochs=1, batch_size=64))
    losses = [replica.validation_loss for replica in result.replicas]
    assert result.best == losses.index(min(losses))
    kept = result.parameters["graph.edge_logits"][result.best]
    assert torch.equal(result.model.graph.edge_logits.detach(), kept)


def test_training_finds_a_small_graph(system, pairs):
    result = run(system, pairs, (0,), "loop", FitSettings(epochs=30, batch_size=32), known=True, num_graphs=8)
    error = (result.model.graph.edge_probs - system.true_edge_probs.double()).abs()
    assert error.mean() < 0.05  # 320 pairs: an oracle that sees the graphs would stand at 0.011
    before, after = result.history[0].validation_loss[0], result.history[-1].validation_loss[0]
    assert after < before


def test_average_is_the_mean_of_the_last_iterates(system, pairs, monkeypatch):
    """The mean over all steps of the probabilities, noted on the way; with a fraction of 0 the last step is kept."""
    steps = []
    moving = FitSettings(epochs=1, batch_size=64, average_fraction=1.0)
    averaged = run(system, pairs, (0,), "loop", moving)

    original = Update.__call__

    def spy(self, *args):
        losses = original(self, *args)
        steps.append(torch.sigmoid(self.state.parameters["graph.edge_logits"]))
        return losses

    with monkeypatch.context() as patched:
        patched.setattr(Update, "__call__", spy)
        run(system, pairs, (0,), "loop", moving)
    expected = torch.stack(steps).mean(0)
    assert torch.allclose(torch.sigmoid(averaged.parameters["graph.edge_logits"]), expected, atol=1e-12)
    last = run(system, pairs, (0,), "loop", FitSettings(epochs=1, batch_size=64, average_fraction=0.0))
    assert torch.allclose(torch.sigmoid(last.parameters["graph.edge_logits"]), steps[-1], atol=1e-12)


def test_fixed_entries_and_known_psi_stay(system, pairs):
    model = make(system, known=True)
    fixed = torch.eye(4, dtype=torch.bool)
    model.graph = BernoulliGraph(torch.full((4, 4), 0.05).fill_diagonal_(0.25), fixed)
    fit(model, pairs.train, pairs.validation, FitSettings(epochs=1, batch_size=32), compile=False)
    probs = model.graph.edge_probs.detach()
    assert torch.equal(probs.diagonal(), torch.full((4,), 0.25, dtype=probs.dtype))
    assert (probs[~fixed] != 0.05).all()
    assert torch.equal(model.predictor.hop_weights.float(), system.hop_weights)


def test_start_at_model(system, pairs):
    model = make(system)
    start = model.graph.edge_probs.detach().clone().double()
    settings = FitSettings(
        epochs=1, batch_size=64, schedule=StepDecay(1e-9, 1e-9), average_fraction=0, min_draws_per_edge=0
    )
    result = fit(model, pairs.train, pairs.validation, settings, seeds=(5,), compile=False, start_at_model=True)
    assert torch.allclose(result.model.graph.edge_probs.detach(), start, atol=1e-6)


class Exploding(HopPredictor):
    def forward(self, inputs, graphs):
        samples = super().forward(inputs, graphs)
        return samples / (inputs.amax() < 4).to(samples.dtype) * 1.0


def test_a_loss_that_becomes_nan_stops_the_run_and_says_where(system, pairs):
    model = make(system, known=True)
    model.predictor = Exploding(system.hop_weights)
    inputs = pairs.train.inputs.clone()
    inputs[5, 0, 0] = 50.0  # the pair that breaks it: somewhere inside the first epoch
    train = Pairs(inputs, pairs.train.targets)
    calm = Pairs(inputs[6:].clamp(-3.9, 3.9), pairs.train.targets[6:])
    with pytest.raises(
        TrainingError, match=r"the loss became \S+ at epoch 1, step \d+ \(replica 0, seed 0\); lower the"
    ):
        fit(model, train, calm, FitSettings(epochs=2, batch_size=32), compile=False)


class TurnsNaN(HopPredictor):
    """Its weights become NaN after the first step: the square root of a negative number, with no error."""

    def forward(self, inputs, graphs):
        return super().forward(inputs, graphs) + (0.5 - self.hop_weights.abs().max()).sqrt() * 0


def test_weights_that_become_nan_stop_the_run_too(system, pairs):
    model = make(system)
    model.predictor = TurnsNaN(torch.full((2, 4, 1), 0.4999))
    with pytest.raises(TrainingError, match="became nan"):
        fit(
            model,
            pairs.train,
            pairs.validation,
            FitSettings(epochs=1, batch_size=16),
            compile=False,
            start_at_model=True,
        )


def test_adam_and_the_predictor_s_own_rate(system, pairs):
    """One step of Adam moves every entry by its rate, whatever the gradient: lr for theta, a tenth for psi."""
    settings = FitSettings(
        epochs=1, batch_size=320, schedule=StepDecay(0.01, 0.01), average_fraction=0, predictor_learning_rate=0.001
    )
    model = make(system)
    start = {name: value.detach().double().clone() for name, value in model.named_parameters()}
    result = fit(model, pairs.train, pairs.validation, settings, compile=False, start_at_model=True)
    assert result.steps == 1
    for name, rate in (("graph.edge_logits", 0.01), ("predictor.hop_weights", 0.001)):
        moved = (result.parameters[name][0] - start[name]).abs()
        assert torch.allclose(moved, torch.full_like(moved, rate), rtol=1e-3)
    assert FitSettings().adam_betas == (0.9, 0.99)


@pytest.mark.parametrize("stop_at", [1, 25])
def test_ctrl_c_keeps_what_was_learned(system, pairs, stop_at):
    def interrupt(progress):
        if progress.step == stop_at:
            raise KeyboardInterrupt

    model = make(system, known=True)
    start = torch.sigmoid(model.graph.edge_logits.detach().clone())
    settings = FitSettings(epochs=3, batch_size=16)
    result = fit(model, pairs.train, pairs.validation, settings, compile=False, on_progress=interrupt)
    assert result.interrupted
    assert result.steps == stop_at
    assert result.warnings == [f"stopped by the user after {stop_at} of 60 steps"]
    assert (result.model.graph.edge_probs - start).abs().max() > 1e-4
    assert len(result.history) == stop_at // 20


def test_ctrl_c_before_the_first_step_is_passed_on(system, pairs):
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(make(system), pairs.train, pairs.validation, compile=False, on_progress=interrupt)


def test_schedules():
    paper, cosine = StepDecay(), CosineDecay(0.1, 0.02)
    assert [paper(e, 10) for e in (0, 4.99, 5, 9)] == [0.05, 0.05, 0.01, 0.01]
    assert [round(cosine(e, 4), 6) for e in (0, 2, 4)] == [0.1, 0.06, 0.02]


def test_errors(system, pairs, unchecked, refused):
    other = Pairs(pairs.train.inputs[:, :3], pairs.train.targets[:, :3])
    refused(fit, make(system), other, other, compile=False)
    refused(fit, make(system), pairs.train, other, compile=False)
    refused(fit, make(system), pairs.train, pairs.validation, seeds=())
    refused(make, system, num_graphs=2)
    refused(fit, make(system), pairs.train, pairs.validation, FitSettings(epochs=2, halve_after=(3,)))
    for bad in (
        {"epochs": 0},
        {"batch_size": 0},
        {"average_fraction": 1.5},
        {"predictor_learning_rate": 0.0},
        {"adam_betas": (0.9, 1.0)},
        {"halve_after": (0,)},
    ):
        refused(FitSettings, **bad)
    refused(StepDecay, first=-1)
    refused(CosineDecay, 0.1, 0.2)
    model = make(system)
    model.predictor = torch.nn.Flatten()
    model.predictor.forward = lambda inputs, _: inputs
    refused(fit, model, pairs.train, pairs.validation, compile=False)


def test_moving_average_is_handed_from_step_to_step(system, pairs):
    """Two steps by hand: the second starts from the average that the first left, per replica and node."""
    model = make(system, loss=NodewiseExpectedError("mse")).double()
    parameters, constants = initial_stacks(model, SEEDS)
    gradient = LiftedGradient(model, compile=False)
    generator = torch.Generator().manual_seed(1)
    average = torch.zeros(len(SEEDS), 4, dtype=torch.float64)
    for _ in range(2):
        uniforms = torch.rand(model.uniforms_shape(8), generator=generator, dtype=torch.float64)
        batches = [(pairs.train.inputs[:8], pairs.train.targets[:8], uniforms)] * len(SEEDS)
        _, losses, _, carried = gradient(parameters, constants, batches, range(len(SEEDS)))
        constants |= carried
        by_node = []
        for replica in range(len(SEEDS)):
            model.load_state_dict({name: value[replica] for name, value in parameters.items()}, strict=False)
            samples = model.predictor(pairs.train.inputs[:8], model.graph.sample_from(uniforms))
            by_node.append((samples - pairs.train.targets[:8, None]).square().mean((0, 1, 3)).detach())
        average = 0.95 * average + 0.05 * torch.stack(by_node)
        assert torch.allclose(carried["average_cost"], average, atol=1e-12)
        assert torch.allclose(losses.mean(1), torch.stack(by_node).mean(1), atol=1e-12)


def masked(pairs, filler, generator):
    """The same pairs with a third of the targets missing and ``filler`` in their place."""
    observed = (torch.rand(pairs.targets.shape, generator=generator) < 0.67).to(pairs.targets)
    return Pairs(pairs.inputs, torch.where(observed > 0, pairs.targets, filler), observed)


@pytest.mark.parametrize("loss", [EnergyScore(), EnergyScore(scope="joint"), NodewiseExpectedError("mse")])
def test_what_is_missing_does_not_matter(system, pairs, loss):
    settings, results = FitSettings(epochs=2, batch_size=32), []
    for filler in (0.0, 50.0):
        parts = [masked(part, filler, torch.Generator().manual_seed(5)) for part in (pairs.train, pairs.validation)]
        results.append(fit(make(system, loss=loss), *parts, settings, seeds=SEEDS, compile=False))
    for name, value in results[0].parameters.items():
        assert torch.allclose(value, results[1].parameters[name], atol=1e-10)
    plain = fit(make(system, loss=loss), pairs.train, pairs.validation, settings, seeds=SEEDS, compile=False)
    assert not torch.allclose(plain.parameters["graph.edge_logits"], results[0].parameters["graph.edge_logits"])


def test_a_mask_of_all_ones_on_one_side_is_as_none(system, pairs):
    settings = FitSettings(epochs=2, batch_size=32)
    whole = Pairs(pairs.train.inputs, pairs.train.targets, torch.ones_like(pairs.train.targets))
    results = [fit(make(system), train, pairs.validation, settings, compile=False) for train in (whole, pairs.train)]
    for name, value in results[0].parameters.items():
        assert torch.allclose(value, results[1].parameters[name], atol=1e-9)


CHOICES = {
    "energy": {},
    "sine squared": {"link": SineSquared()},
    "disarm": {"estimator": DisARM()},
    "disarm, sine squared": {"estimator": DisARM(), "link": SineSquared()},
    "point_mse": {"loss": PointMSE()},
    "weak prior": {"prior": EdgePrior(0.5, weight=1e-4)},
}


QUICK_CHOICES = ("energy", "disarm, sine squared", "point_mse")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK_CHOICES else pytest.mark.slow) for name in CHOICES]
)
def test_learns_the_probabilities_of_a_small_system(system, name):
    """psi known, 4 nodes, 4,000 pairs: every way that should calibrate comes within 0.03 on average."""
    pairs = system.generate(4000, 1).split()
    model = make(system, known=True, **{"num_graphs": 8} | CHOICES[name])
    result = fit(model, pairs.train, pairs.validation, FitSettings(epochs=8, batch_size=64), compile=False)
    assert (result.model.graph.edge_probs - system.true_edge_probs).abs().mean() < 0.03


def test_losses_with_the_expectation_outside_decide_for_one_graph(system):
    pairs = system.generate(4000, 1).split()
    for loss in (ExpectedError("mse"), NodewiseExpectedError("mse")):
        model = make(system, known=True, loss=loss, num_graphs=8)
        result = fit(model, pairs.train, pairs.validation, FitSettings(epochs=8, batch_size=64), compile=False)
        probs = result.model.graph.edge_probs
        assert ((probs < 0.1) | (probs > 0.9)).float().mean() > 0.85
        assert (probs - system.true_edge_probs).abs().mean() > 0.08


def test_a_strong_prior_wins_and_its_penalty_is_part_of_the_loss(system, pairs):
    settings = FitSettings(epochs=4, batch_size=16)
    model = make(system, known=True, prior=EdgePrior(0.3, weight=100.0))
    result = fit(model, pairs.train, pairs.validation, settings, compile=False)
    assert (result.model.graph.edge_probs - 0.3).abs().max() < 0.05
    bare = make(system, known=True)
    inputs, targets = pairs.validation.inputs, pairs.validation.targets
    uniforms = torch.rand(model.uniforms_shape(len(inputs)), generator=torch.Generator().manual_seed(0)).double()
    bare.graph.load_state_dict(model.graph.state_dict())
    _, (with_prior, *_) = model(inputs, targets, uniforms)
    _, (without, *_) = bare.double()(inputs, targets, uniforms)
    assert torch.allclose(with_prior - without, model.prior.penalty(model.graph), atol=1e-9)


def test_elbo_takes_its_prior_into_the_model(system, pairs):
    model = make(system, known=True, loss=ELBO(0.5, EdgePrior(0.3)))
    assert (model.prior.probs.item(), model.prior.weight) == (pytest.approx(0.3), 1.0)
    assert model.prior is not model.loss.prior  # one model must not move the prior of another
    likelihood = make(system, known=True, loss=ELBO(0.5, EdgePrior(0.3, weight=1e-9)))
    settings, losses = FitSettings(epochs=1, batch_size=40, average_fraction=0.0), []
    for one in (model, likelihood):
        one.graph.load_state_dict(BernoulliGraph(torch.full((4, 4), 0.6)).state_dict())
        losses.append(fit(one, pairs.train, pairs.validation, settings, start_at_model=True, compile=False))
    first, second = (result.history[0].train_loss[0] for result in losses)
    assert first - second > 0.5  # sixteen edges at 0.6 against 0.3: a divergence of 3 at the start


def test_what_a_step_hands_on_reaches_the_next(system, pairs, monkeypatch):
    """The moving average of each replica, and the progress that sets a temperature."""
    seen = []
    original = LiftedGradient.__call__

    def spy(self, parameters, constants, batches, running):
        before = {name: value.clone() for name, value in constants.items()}
        result = original(self, parameters, constants, batches, running)
        seen.append((before.get("average_cost"), result.carried.get("average_cost"), before["progress"]))
        return result

    monkeypatch.setattr(LiftedGradient, "__call__", spy)
    settings = FitSettings(epochs=1, batch_size=64)
    steps = len(pairs.train) // 64
    fit(
        make(system, loss=NodewiseExpectedError("mae")),
        pairs.train,
        pairs.validation,
        settings,
        seeds=SEEDS,
        compile=False,
    )
    for (_, left, _), (found, _, _) in itertools.pairwise(seen[:steps]):
        assert torch.equal(left, found)
        assert (left > 0).all()
    seen.clear()
    fit(make(system, estimator=Concrete()), pairs.train, pairs.validation, settings, seeds=SEEDS, compile=False)
    assert [float(progress[0]) for _, _, progress in seen[:steps]] == [pytest.approx(k / steps) for k in range(steps)]


def test_validation_loss_is_that_of_what_was_observed(system, pairs):
    """Pairs that observe nothing, scattered or in a row, do not change it."""
    part = pairs.validation
    observed = torch.ones_like(part.targets)
    observed[5:30] = 0
    keep = observed[:, 0, 0] > 0
    whole = Pairs(part.inputs, part.targets, observed)
    found = []
    for data in (whole, Pairs(part.inputs[keep], part.targets[keep])):
        model = make(system, known=True, num_graphs=400)  # so many graphs that their noise is small
        model.graph.load_state_dict(BernoulliGraph(torch.full((4, 4), 0.5)).state_dict())
        settings = FitSettings(epochs=1, batch_size=15, schedule=CosineDecay(1e-9), average_fraction=0.0)
        result = fit(model, pairs.train[:15], data, settings, start_at_model=True, compile=False)
        found.append(result.replicas[0].validation_loss)
    assert found[0] == pytest.approx(found[1], rel=0.03)


def test_nothing_observed_is_refused(system, pairs, refused):
    blank = Pairs(pairs.validation.inputs, pairs.validation.targets, torch.zeros_like(pairs.validation.targets))
    refused(fit, make(system), pairs.train, blank, compile=False)


def test_replicas_with_constants_of_their_own(system, pairs, refused):
    stack = torch.stack([system.hop_weights, 0.5 * system.hop_weights])
    settings = FitSettings(epochs=2, batch_size=32)
    constants = {"predictor.hop_weights": stack}
    parts = pairs.train, pairs.validation, settings
    together = fit(make(system, known=True), *parts, seeds=(1, 2), constants=constants, compile=False)
    assert torch.equal(together.model.predictor.hop_weights, stack[together.best].double())
    for replica, seed in enumerate((1, 2)):
        model = make(system, known=True)
        model.predictor.load_state_dict({"hop_weights": stack[replica]})
        alone = fit(model, *parts, seeds=(seed,), compile=False)
        name = "graph.edge_logits"
        assert torch.allclose(together.parameters[name][replica], alone.parameters[name][0], atol=1e-9)
    refused(fit, make(system, known=True), *parts, seeds=(1, 2), constants={"predictor.hop_weights": stack[:1]})
    refused(fit, make(system, known=True), *parts, constants={"hop_weights": stack})


def test_trace_looks_every_so_many_steps(system, pairs, refused):
    refused(Trace, 0, lambda *_: {})
    trace = Trace(3, lambda edge_probs, _: {"mean": edge_probs.mean((1, 2)).tolist()})
    settings = FitSettings(epochs=2, batch_size=32)
    result = fit(make(system), pairs.train, pairs.validation, settings, seeds=SEEDS, trace=trace, compile=False)
    assert [line["step"] for line in result.trace] == list(range(3, result.steps + 1, 3))
    assert all(len(line["mean"]) == len(SEEDS) for line in result.trace)


@pytest.mark.parametrize("estimator", [StraightThrough(), Concrete()])
def test_gradients_through_the_graph_lower_the_loss(system, pairs, estimator):
    model = make(system, known=True, estimator=estimator)
    result = fit(model, pairs.train, pairs.validation, FitSettings(epochs=5, batch_size=16), compile=False)
    assert result.history[-1].validation_loss[0] < 0.9 * result.history[0].validation_loss[0]


def resampled(system, pairs, rows, seeds=SEEDS, lift="loop", train=None, **choices):
    settings = FitSettings(epochs=2, batch_size=32, average_fraction=0.3)
    train = pairs.train if train is None else train
    model = make(system, **choices)
    return fit(model, train, pairs.validation, settings, seeds=seeds, lift=lift, compile=False, resamples=rows)


def drawn_rows(count, num_pairs):
    return torch.randint(num_pairs, (count, num_pairs), generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("lift", ["loop", "vmap"])
def test_a_resample_of_every_pair_once_changes_nothing(system, pairs, lift):
    rows = torch.arange(len(pairs.train)).expand(3, -1)
    with_rows, without = (resampled(system, pairs, some, lift=lift) for some in (rows, None))
    assert with_rows.history[-1].train_loss == without.history[-1].train_loss
    for name, value in with_rows.parameters.items():
        assert torch.equal(value, without.parameters[name])


@pytest.mark.parametrize("lift", ["loop", "vmap"])
def test_resampled_replicas_together_equal_each_alone(system, pairs, lift):
    rows = drawn_rows(3, len(pairs.train))
    together = resampled(system, pairs, rows, lift=lift)
    swapped = resampled(system, pairs, rows[[1, 0, 2]], lift=lift)
    for replica, seed in enumerate(SEEDS):
        alone = resampled(system, pairs, rows[replica : replica + 1], (seed,))
        for name, value in together.parameters.items():
            assert (value[replica] - alone.parameters[name][0]).abs().max() < 1e-10
            assert ((value[replica] - swapped.parameters[name][replica]).abs().max() > 1e-4) == (replica < 2)


@pytest.mark.parametrize("missing", [False, True])
def test_a_resample_is_a_fit_of_the_resampled_pairs(system, pairs, missing):
    """Bit for bit the same as pairs chosen beforehand; a replica that repeats one pair sees that one only."""
    train, count = pairs.train, len(pairs.train)
    if missing:
        observed = torch.ones_like(train.targets)
        observed[::3, 1] = 0
        train = Pairs(train.inputs, train.targets, observed)
    for row in (drawn_rows(1, count)[0], torch.full((count,), 9)):
        found, chosen = resampled(system, pairs, row[None], (4,), train=train), train[row]
        expected = resampled(system, pairs, None, (4,), train=chosen)
        assert [epoch.train_loss for epoch in found.history] == [epoch.train_loss for epoch in expected.history]
        for name, value in found.parameters.items():
            assert torch.equal(value, expected.parameters[name])
        assert not torch.equal(chosen.targets, train.targets)


def test_resampled_replicas_can_be_dropped(system, pairs):
    """A loop leaves out the dropped replicas; the others keep their own rows."""
    rows = drawn_rows(4, len(pairs.train))
    settings = FitSettings(epochs=3, batch_size=32, halve_after=(1,))
    results = [
        fit(
            make(system),
            pairs.train,
            pairs.validation,
            chosen,
            seeds=range(4),
            lift="loop",
            compile=False,
            resamples=rows,
        )
        for chosen in (settings, FitSettings(epochs=3, batch_size=32))
    ]
    kept = [r for r, replica in enumerate(results[0].replicas) if replica.dropped_after is None]
    assert kept != [0, 1], "the check would be empty"
    for name, value in results[0].parameters.items():
        assert torch.allclose(value[kept], results[1].parameters[name][kept], atol=1e-10)


def test_wrong_resamples_are_refused(system, pairs, unchecked, refused):
    good = torch.arange(320).expand(3, -1)
    assert len(pairs.train) == 320
    for bad in (
        good[:2],
        good[:, :319],
        good[0],
        good.int(),
        good.double(),
        good > 5,
        good.tolist(),
        good + 1,
        good - 1,
    ):
        refused(resampled, system, pairs, bad)


def test_every_replica_can_have_a_start_of_its_own(system, pairs):
    """With starts equal to what the seeds draw, the fit is the same to the bit; exchanged, so are the replicas."""
    drawn = [make(system).double().initial_parameters(generator_for(seed, "initial")) for seed in (3, 7)]
    stacks = {name: torch.stack([start[name] for start in drawn]) for name in drawn[0]}
    settings, results = FitSettings(epochs=1, batch_size=16), []
    for starts in (None, stacks, {name: values.flip(0) for name, values in stacks.items()}):
        given = pairs.train, pairs.validation, settings
        results.append(fit(make(system), *given, seeds=(3, 7), compile=False, starts=starts).parameters)
    for name, values in results[0].items():
        assert torch.equal(values, results[1][name])
        assert not torch.equal(values, results[2][name])


@pytest.mark.parametrize(
    "starts", [{"graph.edge_logit": torch.zeros(2, 4, 4)}, {"graph.edge_logits": torch.zeros(4, 4)}]
)
def test_starts_that_do_not_fit_are_refused(starts, system, pairs, refused):
    refused(fit, make(system), pairs.train, pairs.validation, seeds=(0, 1), compile=False, starts=starts)
