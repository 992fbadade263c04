"""What an estimator says of its own trustworthiness: standard errors, identifiability, goodness of fit."""

import copy
import importlib
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from tacit import LatentGraphRegressor
from tacit.assessment.fit_tests import goodness_of_fit
from tacit.assessment.uncertainty import bootstrap
from tacit.data import Pairs, usual_block
from tacit.edges import FLAGS, EdgeTable
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.pipeline import std_errors
from tacit.randomness import generator_for
from tacit.registry import PREDICTORS
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, fit
from tacit.words import FindingKind, find
from tiny_fits import LINEAR, TRUTH, parts_of, random_pairs, regressor

FIVE = {"training": {"epochs": 5}}
RATE = PREDICTORS["convolution"].learning_rate
PROBS = torch.tensor([[0.0, 0.95, 0.85], [0.4, 0.0, 0.05], [0.9, 0.3, 0.0]])
BAGGED = torch.tensor([[0.0, 0.97, 0.80], [0.5, 0.0, 0.02], [0.9, 0.2, 0.0]])
STD_ERRORS = torch.tensor([[0.0, 0.02, 0.30], [0.1, 0.0, 0.03], [0.1, 0.1, 0.0]])
IDENTIFIABLE = torch.tensor([[False, True, True], [False, False, True], [True, True, False]])
ASKED = ("edge_std_errors_", "edge_low_", "edge_high_", "edge_probs_bagged_", "edge_identifiable_")


@pytest.fixture(scope="module")
def pairs():
    return random_pairs(60)


@pytest.fixture(scope="module")
def tables(pairs):
    return tuple(pd.DataFrame(part, columns=["a", "b", "c"]) for part in pairs)


@pytest.fixture(scope="module")
def fitted(pairs):
    return regressor(**FIVE, random_state=2).fit(*pairs)  # no edge ends nearer to 0 than 0.01


@pytest.fixture
def long_enough(monkeypatch):
    """Five epochs are too few; here they count as enough."""
    monkeypatch.setattr("tacit.training.result.STILL_FALLING", np.inf)


@pytest.fixture
def known(tables):
    """An estimator whose graph and errors are those above; (0, 0) is held fixed with the rest of the diagonal."""
    return with_errors(regressor().fit(*tables))


def with_errors(model):
    """Put the numbers above in the place of those that were learned."""
    fitted = model._fitted
    fitted.model.graph = BernoulliGraph(PROBS, fixed=torch.eye(3, dtype=torch.bool))
    flags = [["" if i == j else "yes" if IDENTIFIABLE[i, j] else "no" for j in range(3)] for i in range(3)]
    reach = stats.t.ppf(0.975, 9) * STD_ERRORS
    numbers = {"std_error": STD_ERRORS, "bagged": BAGGED, "low": BAGGED - reach, "high": BAGGED + reach}
    numbers = {name: values.clamp(0, 1).tolist() for name, values in numbers.items()}
    fitted.edges = EdgeTable.of_matrices("abc", **numbers, identifiable=flags)
    fitted.record = fitted.record.model_copy(
        update={
            "uncertainty": {"degrees": 9.0},
            "findings": [find(FindingKind.FIT_WARNING, warning="a replica was slow")],
        }
    )
    return model


def without_flags(model):
    model._fitted.edges = model._fitted.edges.updated(identifiable=None)


def seen_by(monkeypatch, model, pairs, **options):
    """Return what ``estimate_std_errors`` passes to the bootstrap, which is not run."""
    seen = []

    def watch(*args, **kwargs):
        seen.append((*args, kwargs))
        raise KeyboardInterrupt

    monkeypatch.setattr(std_errors, "bootstrap", watch)
    with pytest.raises(KeyboardInterrupt):
        model.estimate_std_errors(*pairs, **options)
    return seen[0]


def test_resamples_are_drawn_with_replacement_and_start_at_the_fitted_model_together(fitted, pairs, monkeypatch):
    seen = []

    def watch(model, train, validation, settings, **options):
        seen.append(
            (model.graph.edge_probs.detach().numpy(), copy.deepcopy(model.predictor.state_dict()), len(train), settings)
        )
        seen.append(options)
        return fit(model, train, validation, settings, **options)

    monkeypatch.setattr(importlib.import_module("tacit.assessment.uncertainty.bootstrap"), "fit", watch)
    copy.deepcopy(fitted).estimate_std_errors(*pairs, num_resamples=8)
    (probs, weights, num_pairs, settings), options = seen  # one program
    assert options["start_at_model"]
    assert fitted.edge_probs_[~np.eye(3, dtype=bool)].min() > 0.01  # nearer to 0 they would be put there
    np.testing.assert_array_equal(probs, fitted.edge_probs_)
    assert all(torch.equal(weights[name], value) for name, value in fitted.predictor_.state_dict().items())
    rows = options["resamples"]
    assert (rows.shape, num_pairs) == ((8, 42), 42)
    assert torch.equal(rows[:2], torch.arange(42).expand(2, -1))  # a quarter shows what is due to training alone
    assert all(15 < len(row.unique()) < 39 for row in rows[2:])  # of 42 drawn out of 42, 27 are expected to differ
    assert len({tuple(row.tolist()) for row in rows}) == 7
    assert settings.epochs == 2  # a third of five


@pytest.mark.usefixtures("long_enough")
def test_standard_errors_are_those_of_the_bootstrap(pairs):
    x, y = pairs
    options = {**FIVE, "data": {"shuffle": False}, "graph": {"forbidden": [(0, 1)]}}
    model = regressor(**options).fit(x, y)
    probs = model.edge_probs_.copy()
    before = copy.deepcopy(model)
    assert model.estimate_std_errors(x, y, num_resamples=4, block=3) is model
    adopted = bool(model.record_.uncertainty["adopted"])  # the mean over the replicas, where it predicts as well
    np.testing.assert_allclose(model.edge_probs_, model.edge_probs_bagged_ if adopted else probs, rtol=1e-5)
    said = "the estimate is the mean over them" if adopted else "the estimate is the fit"
    assert any(said in finding for finding in model.findings_)

    inputs, targets = ((part - part[:42].mean()) / part[:42].std() for part in (x, y))
    scaled = Pairs(*(torch.tensor(part, dtype=torch.float32)[..., None] for part in (inputs, targets)))
    latent = LatentGraphModel(before.graph_, before.predictor_, EnergyScore(scope="node"), num_graphs=4)
    settings = FitSettings(epochs=5, batch_size=16, schedule=CosineDecay(0.05), predictor_learning_rate=RATE)
    found = bootstrap(latent, scaled[:42], scaled[42:48], settings, replicas=4, block=3, compile=False)
    np.testing.assert_allclose(model.edge_std_errors_, found.std_errors, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(model.edge_probs_bagged_, found.edge_probs, rtol=1e-4)
    np.testing.assert_allclose(model.edge_low_, found.intervals().low, atol=1e-4)
    np.testing.assert_allclose(model.edge_high_, found.intervals().high, atol=1e-4)
    held = np.eye(3, dtype=bool)
    held[1, 0] = True
    assert (model.edge_std_errors_[held] == 0).all()
    assert (model.edge_std_errors_[~held] > 0).all()
    assert (model.edge_probs_bagged_[held] == 0).all()


def test_standard_errors_are_of_the_size_that_the_data_allow():
    training = {"epochs": 25, "batch_size": 90, "learning_rate": 0.4, "predictor_learning_rate": 0.08}
    x, y = random_pairs(514)
    model = regressor(training=training, predictor=LINEAR, model={"num_graphs": 16}).fit(x, y)
    model.estimate_std_errors(x, y, num_resamples=8)
    edges = ~np.eye(3, dtype=bool)
    # 360 training pairs: an oracle that saw every graph would have errors of 0.021 and 0.024; 5 degrees of freedom
    for place in ((0, 1), (1, 2)):
        assert 0.005 < model.edge_std_errors_[place] < 0.08
    table = model.edge_intervals(0.99, simultaneous=True)
    low, high = (table.pivot(index="target", columns="source", values=end).to_numpy() for end in ("low", "high"))
    assert ((low <= TRUTH) & (high >= TRUTH))[edges].all()
    assert set(model.significant_edges()[["source", "target"]].itertuples(index=False, name=None)) == {
        ("1", "0"),
        ("2", "1"),
        ("0", "2"),
    }


@pytest.mark.parametrize(
    ("shuffle", "block", "expected"),
    [(True, None, 1), (False, None, usual_block(42, 1)), (True, np.int64(5), 5), (False, 1, 1)],
)
def test_blocks_are_for_pairs_of_a_series(pairs, monkeypatch, unchecked, shuffle, block, expected):
    model = regressor(data={"shuffle": shuffle}).fit(*pairs)
    *_, options = seen_by(monkeypatch, model, pairs, block=block)
    assert options["block"] == expected
    assert options["replicas"] == 32


def test_the_bootstrap_has_the_settings_units_and_epochs_of_the_fit(fitted, pairs, monkeypatch, refused):
    x, y = pairs
    model = copy.deepcopy(fitted)
    model._fitted.history = model._fitted.history[:2]  # stopped by the user
    _, train, validation, settings, options = seen_by(monkeypatch, model, pairs)
    assert (settings.epochs, settings.batch_size, settings.predictor_learning_rate) == (2, 16, pytest.approx(RATE))
    assert settings.schedule(0, 2) == 0.05
    assert not options["compile"]
    expected = fitted._fitted.preparation.input_units.scaled(x[..., None])[..., 0]
    rows = parts_of(60, seed=2)
    for part, places in zip((train, validation), rows, strict=False):
        np.testing.assert_allclose(part.inputs[..., 0], expected[places], rtol=1e-5)
    refused(model.estimate_std_errors, 1000 + 2 * x, y)
    monkeypatch.undo()
    model.estimate_std_errors(x.astype("f4"), y.astype("f4"), num_resamples=4)  # the same up to rounding


def test_nothing_is_there_before_it_was_asked_for_nor_after_another_fit(known, tables):
    assert all(hasattr(known, name) for name in ASKED)
    assert known.findings_ == ["A replica was slow."]
    known.fit(*tables)
    assert known.edges_.columns.tolist() == ["source", "target", "probability"]
    for name in ASKED:
        with pytest.raises(AttributeError, match=r"was not computed; call (identify|estimate_std_errors), or "):
            getattr(known, name)
        assert not hasattr(known, name)
        assert not hasattr(LatentGraphRegressor(), name)
    for name in ("edge_intervals", "significant_edges"):
        with pytest.raises(AttributeError, match=r"of the edges was not computed; call estimate_std_errors"):
            getattr(known, name)()


def test_tables_and_graphs_carry_what_is_known(known):
    columns = ["source", "target", "probability", "std_error", "low", "high", "identifiable", "bagged"]
    assert known.edges_.columns.tolist() == columns
    reach = stats.t.ppf(0.975, 9) * STD_ERRORS.numpy()
    low, high = np.clip(BAGGED.numpy() - reach, 0, 1), np.clip(BAGGED.numpy() + reach, 0, 1)
    np.testing.assert_allclose(known.edge_low_, low, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(known.edge_high_, high, rtol=1e-5)
    graph = known.to_networkx()
    for edge in known.edges_.itertuples():
        i, j = "abc".index(edge.target), "abc".index(edge.source)
        assert edge.probability == known.edge_probs_[i, j]
        assert (edge.std_error, edge.bagged) == (known.edge_std_errors_[i, j], known.edge_probs_bagged_[i, j])
        assert (edge.low, edge.high) == (known.edge_low_[i, j], known.edge_high_[i, j])
        assert edge.identifiable == ("" if i == j else "yes" if IDENTIFIABLE[i, j] else "no")
        if i != j:
            assert graph.edges[edge.source, edge.target] == {name: getattr(edge, name) for name in columns[2:]}


def test_intervals_of_other_levels(known):
    one, every = known.edge_intervals(0.8), known.edge_intervals(0.8, simultaneous=True)
    assert one.columns.tolist() == ["source", "target", "probability", "bagged", "low", "high"]
    assert len(one) == 9
    for table, quantile in ((one, 0.9), (every, (1 + 0.8 ** (1 / 6)) / 2)):  # six edges are learned
        row = table[(table["source"] == "b") & (table["target"] == "c")].iloc[0]
        reach = stats.t.ppf(quantile, 9) * 0.1
        assert (row.low, row.high) == pytest.approx((max(0, 0.2 - reach), 0.2 + reach))


def ends(table):
    return [*table[["source", "target"]].itertuples(index=False, name=None)]


def test_without_evidence_probabilities_decide_the_list(known):
    # 0.95, 0.9 and 0.85: a mean of 0.1 is absent; all others are below one half
    assert ends(known.listed_edges()) == ends(known.listed_edges(0.1)) == [("b", "a"), ("a", "c"), ("c", "a")]
    assert len(known.listed_edges(0.9)) == 3
    assert ends(known.listed_edges(0.01)) == []
    assert known.listed_edges().index.tolist() == [0, 1, 2]
    pd.testing.assert_frame_equal(known.listed_edges(), known.edges_.head(3))
    known._fitted.edges["identifiable"][6] = FLAGS.index("no")  # a -> c
    assert ends(known.listed_edges()) == [("b", "a"), ("c", "a")]
    assert known.to_networkx().number_of_edges() == 6
    for name in ("exists_", "edge_effects_"):
        with pytest.raises(AttributeError, match=r"of the edges was not computed; leave evidence in GraphOptions at"):
            getattr(known, name)


EXISTS = torch.tensor([[0.0, 0.99, 0.7], [0.98, 0.0, 0.02], [0.04, 0.6, 0.0]])
EFFECT = torch.tensor([[0.0, 0.5, 0.2], [-0.4, 0.0, 0.01], [0.02, 0.1, 0.0]])


def with_evidence(model):
    """Say which edges exist, and the effect of each."""
    fitted = model._fitted
    fitted.edges = fitted.edges.updated(exists=EXISTS.flatten().numpy().copy(), effect=EFFECT.flatten().numpy())
    evidence = {"method": "regression", "keep": 0.1, "fdr": 0.1}
    fitted.record = fitted.record.model_copy(update={"evidence": evidence, "answer": ["A graph was found."]})
    return model


def test_with_evidence_exists_decides_and_probability_describes(known):
    with_evidence(known)
    table = known.edges_
    columns = "source target exists probability std_error low high effect identifiable bagged"
    assert table.columns.tolist() == columns.split()
    assert ends(table)[:5] == [("b", "a"), ("a", "b"), ("c", "a"), ("b", "c"), ("a", "c")]
    acting = table[["probability", "std_error", "low", "high", "bagged"]]
    assert acting.isna().to_numpy().tolist() == [[exists < 0.1] * 5 for exists in table["exists"]]
    assert ends(known.listed_edges()) == [("b", "a"), ("a", "b")]  # with 0.7 a share of 0.11 is expected to be false
    assert ends(known.listed_edges(np.float64(0.15))) == [("b", "a"), ("a", "b"), ("c", "a")]
    np.testing.assert_array_equal(known.exists_, EXISTS)
    np.testing.assert_array_equal(known.edge_effects_, EFFECT)
    assert known.answer_ == ["A graph was found."]
    graph = known.to_networkx()
    assert set(graph.edges) == {("b", "a"), ("a", "b")}
    assert graph.edges["a", "b"]["effect"] == pytest.approx(-0.4)
    assert graph.edges["a", "b"]["probability"] == pytest.approx(0.4)
    assert set(known.to_networkx(0.65).edges) == {("b", "a"), ("a", "b"), ("c", "a")}
    assert known.to_networkx(0.01).edges["a", "c"]["probability"] == 0  # it is not kept
    known.graph_.fixed[2, 0], known.graph_.fixed_probs[2, 0] = True, 1.0
    assert set(known.to_networkx().edges) == {("b", "a"), ("a", "b"), ("a", "c")}  # a required edge is drawn


def test_significant_edges(known):
    found = known.significant_edges(above=0.6)
    # the tests are of the bagged probabilities, (p - 0.6) / error = 18.5, 3, 0.67; 'a -> b' cannot be told
    assert ends(found) == [("b", "a"), ("a", "c")]
    assert found.columns.tolist() == [*known.edges_.columns, "p_value"]
    np.testing.assert_allclose(found["p_value"], stats.t.sf([18.5, 3.0], 9), rtol=1e-4)
    assert ends(known.significant_edges(above=0.6, rate=0.001)) == [("b", "a")]
    cautious = known.significant_edges(above=0.6, rate=0.02, dependence="any")  # 5 tests: 0.0075 > 2 / 5 * 0.02 / 2.28
    assert ends(cautious) == [("b", "a")]
    assert len(known.significant_edges(above=0.6, rate=0.02)) == 2


def test_an_edge_that_is_held_fixed_is_neither_chosen_nor_counted(known):
    known.graph_.fixed[0, 1], known.graph_.fixed_probs[0, 1] = True, 1.0
    without_flags(known)
    assert ends(known.edges_.head(1)) == [("b", "a")]
    assert ends(known.listed_edges(0.1)) == [("a", "c")]  # with it 'c -> a' would be in
    assert ends(known.significant_edges(above=0.6)) == [("a", "c")]


def test_edges_without_direction(tables):
    model = regressor(graph={"symmetric": True}).fit(*tables)
    probs = (PROBS + PROBS.mT) / 2
    graph = BernoulliGraph(probs, fixed=torch.eye(3, dtype=torch.bool), symmetric=True)
    model._fitted.model.graph = graph
    numbers = {"std_error": probs / 10, "bagged": probs, "low": 0.9 * probs, "high": probs}
    flags = [["" if i == j else "yes" for j in range(3)] for i in range(3)]
    numbers = {name: values.tolist() for name, values in numbers.items()}
    model._fitted.edges = EdgeTable.of_matrices("abc", symmetric=True, **numbers, identifiable=flags)
    model._fitted.record = model.record_.model_copy(update={"uncertainty": {"degrees": 9.0}})
    assert len(model.edges_) == 9
    graph = model.to_networkx()
    assert graph.edges["a", "b"]["std_error"] == pytest.approx(0.0675)
    assert graph.edges["b", "a"]["identifiable"] == "yes"
    assert sorted(map(set, ends(model.significant_edges())), key=sorted) == [{"a", "b"}, {"a", "c"}, {"b", "c"}]
    assert [set(edge) for edge in ends(model.listed_edges(0.2))] == [{"a", "c"}]
    errors = regressor(graph={"symmetric": True}).fit(*tables).estimate_std_errors(*tables, num_resamples=4)
    np.testing.assert_array_equal(errors.edge_std_errors_, errors.edge_std_errors_.T)


@pytest.mark.parametrize("evidence", [False, True])
def test_it_all_survives_being_stored(evidence, known, tmp_path):
    if evidence:
        with_evidence(known)._fitted.edges["exists"][0] = np.nan  # nothing is known of a loop
    known.save(tmp_path / "model")
    for restored in (pickle.loads(pickle.dumps(known)), LatentGraphRegressor.load(tmp_path / "model")):
        for name in ("edge_probs_", *ASKED, *(("exists_",) if evidence else ())):
            np.testing.assert_array_equal(getattr(restored, name), getattr(known, name))
        pd.testing.assert_frame_equal(restored.edges_, known.edges_)
        pd.testing.assert_frame_equal(restored.significant_edges(), known.significant_edges())
        pd.testing.assert_frame_equal(restored.edge_intervals(0.5), known.edge_intervals(0.5))
        assert restored._fitted.edges.to_dict() == known._fitted.edges.to_dict()
        assert restored.notes_ == known.notes_
        assert restored.record_ == known.record_


def test_what_the_data_cannot_tell(tables):
    x, y = (part.copy() for part in tables)
    x["c"] = x["b"]  # who reads b and who reads c?
    model = regressor(**FIVE, predictor=LINEAR, graph={"forbidden": [("a", "b")], "required": [("b", "c")]}).fit(x, y)
    found = model.identify(x, y)
    assert found.twins == [((0, 1), (0, 2))]
    assert found.num_pairs == 42
    np.testing.assert_array_equal(model.edge_identifiable_, found.identifiable)
    flags = {(edge.source, edge.target): edge.identifiable for edge in model.edges_.itertuples()}
    learned = {("b", "a"): "no", ("c", "a"): "no", ("c", "b"): "yes", ("a", "c"): "yes"}
    assert flags == dict.fromkeys(flags, "") | learned
    assert "'b -> a' and 'c -> a'" in " ".join(found.sentences())
    assert model.to_networkx().edges["b", "c"]["identifiable"] == ""
    assert model.identify(x, y, injectivity=False).injectivity is None
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.edge_identifiable_, model.edge_identifiable_)
    assert again.identify(x, y).sentences() == found.sentences()


def test_identification_is_by_the_targets_that_are_there_and_the_pairs_that_there_are(fitted, pairs, refused):
    x, y = pairs
    model = copy.deepcopy(fitted)
    found = model.identify(x, y)
    assert found.num_pairs == 42
    few = regressor(**FIVE, random_state=2).fit(x[:10], y[:10]).identify(x[:10], y[:10])
    assert few.num_pairs == 7
    assert few.too_weak.sum() > found.too_weak.sum()
    refused(model.identify, x[:20], y[:20])
    gaps = y.copy()
    gaps[::2, 0] = np.nan
    again = regressor(**FIVE, random_state=2).fit(x, gaps)
    assert again.identify(x, gaps).num_pairs == 42


@pytest.fixture(scope="module")
def noisy():
    """A model of the right kind: what is predicted is Gaussian around what a certain graph says."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 3))
    y = pd.DataFrame(10 + 3 * (x + x[:, [1, 2, 0]] + 0.5 * rng.normal(size=x.shape)), columns=["a", "b", "c"])
    training = {"epochs": 100, "patience": 100, "batch_size": 105, "learning_rate": 0.2, "predictor_learning_rate": 0.1}
    required = [("b", "a"), ("c", "b"), ("a", "c")]
    model = regressor(
        training=training,
        predictor=LINEAR,
        observation="auto",
        graph={"required": required, "candidates": required},
        model={"num_graphs": 4},
    )
    return model.fit(x[:600], y[:600]), x[600:], y[600:]


def test_goodness_of_fit(noisy):
    model, x, y = noisy
    good = model.goodness_of_fit(x, y)
    assert good.fits
    assert good.names == ("a", "b", "c")
    assert (good.num_pairs, good.num_samples, good.stride, good.noise) == (300, 199, 1, "node")
    wrong = y.copy()
    wrong["b"] += 3
    bad = model.goodness_of_fit(x, wrong, num_samples=99, stride=2, level=0.1)
    assert bad.fits is False
    assert (bad.num_pairs, bad.num_samples, bad.stride, bad.level) == (150, 99, 2, 0.1)
    assert "ranks at node b are slanted: predictions are too low" in " ".join(bad.sentences())


def test_goodness_is_that_of_the_model_in_the_units_of_training(noisy):
    model, x, y = noisy
    fitted, gaps = model._fitted.preparation, y.to_numpy().copy()
    gaps[:50, 1] = np.nan
    inputs, targets = fitted.input_units.scaled(x[..., None]), fitted.target_units.scaled(gaps[..., None])
    pairs = Pairs.with_missing(*(torch.tensor(part, dtype=torch.float32) for part in (inputs, targets)))
    latent = LatentGraphModel(
        model.graph_, model.predictor_, EnergyScore(), observation=model._fitted.model.observation
    )
    direct = goodness_of_fit(latent, pairs, generator=generator_for(0, "goodness"), node_names=["a", "b", "c"])
    found = model.goodness_of_fit(x, gaps)
    assert found.sentences() == direct.sentences()
    assert found.kernel.skce == pytest.approx(direct.kernel.skce, rel=1e-5)
    assert pickle.loads(pickle.dumps(model)).goodness_of_fit(x, gaps) == found


@pytest.mark.usefixtures("long_enough")
def test_a_loss_that_is_not_stored_is_needed_for_training_only(pairs, tmp_path, refused):
    model = regressor(**FIVE, loss=EnergyScore(), density=0.3).fit(*pairs)
    model.save(tmp_path / "model")
    restored = LatentGraphRegressor.load(tmp_path / "model")
    assert restored.goodness_of_fit(*pairs) == model.goodness_of_fit(*pairs)
    assert torch.equal(restored.identify(*pairs).effects, model.identify(*pairs).effects)
    refused(restored.estimate_std_errors, *pairs)
    restored.set_params(loss=EnergyScore()).estimate_std_errors(*pairs, num_resamples=4)
    errors = model.estimate_std_errors(*pairs, num_resamples=4).edge_std_errors_
    np.testing.assert_allclose(restored.edge_std_errors_, errors, rtol=1e-5)
    unpickled = pickle.loads(pickle.dumps(regressor(**FIVE, loss=EnergyScore(), density=0.3).fit(*pairs)))
    np.testing.assert_allclose(
        unpickled.estimate_std_errors(*pairs, num_resamples=4).edge_std_errors_, errors, rtol=1e-5
    )


def test_names_of_the_fit_are_used_for_arrays_too(tables, pairs):
    x, y = pairs
    model = regressor(graph={"priors": [("b", "a", 0.9)]}).fit(tables[0], y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert model.goodness_of_fit(x, y).names == ("a", "b", "c")
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.estimate_std_errors(x, y, num_resamples=4)


def test_bad_questions(known, pairs, unchecked, refused):
    x, y = (pd.DataFrame(part, columns=["a", "b", "c"]) for part in pairs)
    two = np.stack([y, y], -1)
    small = regressor().fit(x[:20], y[:20])
    refused(known.estimate_std_errors, x, y, num_resamples=3)
    refused(known.estimate_std_errors, x, y, num_resamples=8.5)
    refused(known.estimate_std_errors, x, y, block=0)
    refused(known.estimate_std_errors, x, y, block=20)
    refused(small.estimate_std_errors, x[:20], y[:20])
    refused(known.identify, x, two)
    refused(known.score, x, two)
    refused(known.goodness_of_fit, x, y[["a", "b"]])
    refused(known.goodness_of_fit, x, y, stride=0)
    refused(known.goodness_of_fit, x, y, level=2)
    refused(known.edge_intervals, 95)
    refused(known.listed_edges, 0)
    refused(known.significant_edges, above=-1)
    refused(known.significant_edges, dependence="no")
    np.testing.assert_array_equal(known.edge_std_errors_, STD_ERRORS)  # what was known is still known


# ---------------------------------------------------------------- a fit that stopped too early


@pytest.fixture(scope="module")
def early():
    options = {"graph": {"evidence": "model"}, "assessment": {"enabled": True, "bootstrap_replicas": 4}}
    model = regressor(training={"epochs": 5}, **options)
    with pytest.warns(ConvergenceWarning, match="Training stopped too early: in its last part the validation loss"):
        return model.fit(*random_pairs(60))


def test_the_answer_says_so_first(early):
    assert not early.record_.converged
    assert early.answer_[0].startswith("Training stopped too early")
    assert any("Whether edges exist was not computed: training stopped too early." in line for line in early.answer_)


def test_nothing_says_how_sure_the_edges_are(early, refused):
    assert (
        "Not computed, standard errors: training stopped too early, so replicas would stop too early as well."
        in early.findings_
    )
    for ask in (early.significant_edges, early.edge_intervals, lambda: early.edge_std_errors_, lambda: early.exists_):
        with pytest.raises(AttributeError, match="was not computed"):
            ask()
    refused(early.estimate_std_errors, *random_pairs(60))
