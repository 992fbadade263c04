"""What an estimator says of its own trustworthiness: standard errors, identifiability, goodness of fit."""

import copy
import importlib
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from tacit import LatentGraphRegressor
from tacit.data import Pairs
from tacit.data.resampling import usual_block
from tacit.errors import InputError
from tacit.goodness import goodness_of_fit
from tacit.graph import BernoulliGraph
from tacit.losses import EnergyScore
from tacit.randomness import generator_for
from tacit.sklearn import problem
from tacit.sklearn.edge_errors import EdgeErrors
from tacit.sklearn.saved import Stored
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, fit
from tacit.uncertainty import EdgeUncertainty, bootstrap

TINY = {"noise": "none", "replicas": 1, "epochs": 5, "batch_size": 16, "num_graphs": 4, "point_graphs": 8}
TRUTH = np.array([[0.0, 0.8, 0.0], [0.0, 0.0, 0.3], [1.0, 0.0, 0.0]])
PROBS = torch.tensor([[0.0, 0.95, 0.85], [0.4, 0.0, 0.05], [0.9, 0.3, 0.0]])
BAGGED = torch.tensor([[0.0, 0.97, 0.80], [0.5, 0.0, 0.02], [0.9, 0.2, 0.0]])
STD_ERRORS = torch.tensor([[0.0, 0.02, 0.30], [0.1, 0.0, 0.03], [0.1, 0.1, 0.0]])
IDENTIFIABLE = torch.tensor([[False, True, True], [False, False, True], [True, True, False]])
ASKED = ("edge_std_errors_", "edge_low_", "edge_high_", "edge_probs_bagged_", "edge_identifiable_")


def random_pairs(num_pairs, seed=0, noise=0.0):
    """Three nodes; each shows half of itself and what it reads at the moment, times 3, plus 10."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_pairs, 3))
    graphs = rng.random((num_pairs, 3, 3)) < TRUTH
    shown = 0.5 * x + np.einsum("pij,pj->pi", graphs, x) + noise * rng.normal(size=x.shape)
    return x, 10 + 3 * shown


@pytest.fixture(scope="module")
def pairs():
    return random_pairs(60)


@pytest.fixture(scope="module")
def tables(pairs):
    return tuple(pd.DataFrame(part, columns=["a", "b", "c"]) for part in pairs)


@pytest.fixture(scope="module")
def fitted(pairs):
    return LatentGraphRegressor(**TINY, seed=2).fit(*pairs)  # no edge ends nearer to 0 than 0.01


@pytest.fixture
def known(tables):
    """An estimator whose graph and errors are those above; (0, 0) is held fixed with the rest of the diagonal."""
    return with_errors(LatentGraphRegressor(**{**TINY, "epochs": 1}).fit(*tables))


def with_errors(model):
    graph = BernoulliGraph(PROBS, fixed=torch.eye(3, dtype=torch.bool))
    model._fitted.graph, model._fitted.identifiable = graph, IDENTIFIABLE
    model._fitted.errors = EdgeErrors(BAGGED, STD_ERRORS, 9, ["a replica was slow"])
    return model


def seen_by(monkeypatch, model, pairs, **options):
    """Return what ``estimate_std_errors`` passes to the bootstrap, which is not run."""
    seen = []

    def watch(*args, **kwargs):
        seen.append((*args, kwargs))
        raise KeyboardInterrupt

    monkeypatch.setattr(problem, "bootstrap", watch)
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

    monkeypatch.setattr(importlib.import_module("tacit.uncertainty.bootstrap"), "fit", watch)
    copy.deepcopy(fitted).estimate_std_errors(*pairs, num_resamples=8)
    (probs, weights, num_pairs, settings), options = seen  # one program
    assert options["start_at_model"]
    assert fitted.edge_probs_[~np.eye(3, dtype=bool)].min() > 0.01  # nearer to 0 they would be put there
    np.testing.assert_array_equal(probs, fitted.edge_probs_)
    assert all(torch.equal(weights[name], value) for name, value in fitted.predictor_.state_dict().items())
    rows = options["resamples"]
    assert (rows.shape, num_pairs) == ((8, 54), 54)
    assert torch.equal(rows[:2], torch.arange(54).expand(2, -1))  # a quarter shows what is due to training alone
    assert all(20 < len(row.unique()) < 50 for row in rows[2:])  # of 54 drawn out of 54, 34 are expected to differ
    assert len({tuple(row.tolist()) for row in rows}) == 7
    assert settings.epochs == 2  # a third of five


def test_standard_errors_are_those_of_the_bootstrap(pairs):
    x, y = pairs
    model = LatentGraphRegressor(**TINY, shuffle=False, forbidden=[(0, 1)]).fit(x, y)
    probs, predictions = model.edge_probs_.copy(), model.predict(x)
    assert model.estimate_std_errors(x, y, num_resamples=4, block=3) is model
    np.testing.assert_array_equal(model.edge_probs_, probs)
    np.testing.assert_array_equal(model.predict(x), predictions)

    inputs, targets = ((part - part[:54].mean()) / part[:54].std() for part in (x, y))
    scaled = Pairs(*(torch.tensor(part, dtype=torch.float32)[..., None] for part in (inputs, targets)))
    latent = LatentGraphModel(model.graph_, model.predictor_, EnergyScore(scope="node"), num_graphs=4)
    settings = FitSettings(epochs=5, batch_size=16, schedule=CosineDecay(0.05), predictor_rate=0.2)
    found = bootstrap(latent, scaled[:54], scaled[54:], settings, replicas=4, block=3, compile=False)
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
    options = {"replicas": 1, "epochs": 25, "batch_size": 90, "learning_rate": 0.4, "hidden": (), "noise": "none"}
    x, y = random_pairs(400)
    model = LatentGraphRegressor(**options, compile=False).fit(x, y).estimate_std_errors(x, y, num_resamples=8)
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
    [(True, None, 1), (False, None, usual_block(54, 1)), (True, np.int64(5), 5), (False, 1, 1)],
)
def test_blocks_are_for_pairs_of_a_series(pairs, monkeypatch, unchecked, shuffle, block, expected):
    model = LatentGraphRegressor(**{**TINY, "epochs": 1}, shuffle=shuffle).fit(*pairs)
    *_, options = seen_by(monkeypatch, model, pairs, block=block)
    assert options["block"] == expected
    assert options["replicas"] == 32


def test_the_bootstrap_has_the_settings_units_and_epochs_of_the_fit(fitted, pairs, monkeypatch):
    x, y = pairs
    model = copy.deepcopy(fitted)
    model._fitted.history = model._fitted.history[:2]  # stopped by the user
    _, train, validation, settings, _ = seen_by(monkeypatch, model, (1000 + 2 * x, y))
    assert (settings.epochs, settings.batch_size, settings.predictor_rate) == (2, 16, 0.2)
    assert settings.schedule(0, 2) == 0.05
    seen = np.concatenate([train.inputs, validation.inputs])[..., 0]
    expected = fitted._fitted.input_units.scaled(1000 + 2 * x[..., None])[..., 0]
    np.testing.assert_allclose(np.sort(seen, axis=0), np.sort(expected, axis=0), rtol=1e-6)


def test_compiling_waits_for_enough_steps(pairs, monkeypatch):
    model = LatentGraphRegressor(**TINY).fit(*pairs)  # 15 steps
    assert not seen_by(monkeypatch, model, pairs, num_resamples=399)[-1]["compile"]
    assert seen_by(monkeypatch, model, pairs, num_resamples=400)[-1]["compile"]
    assert not seen_by(monkeypatch, model.set_params(compile=False), pairs, num_resamples=400)[-1]["compile"]


def test_nothing_is_there_before_it_was_asked_for_nor_after_another_fit(known, tables):
    assert all(hasattr(known, name) for name in ASKED)
    assert known.notes_ == ["a replica was slow"]
    known.fit(*tables)
    assert known.edges_.columns.tolist() == ["source", "target", "probability"]
    for name in ASKED:
        call = "identify" if name == "edge_identifiable_" else "estimate_std_errors"
        with pytest.raises(AttributeError, match=rf"^{name} is not computed yet; call {call}\(X, y\) first$"):
            getattr(known, name)
        assert not hasattr(known, name)
        assert not hasattr(LatentGraphRegressor(), name)
    for name in ("edge_intervals", "significant_edges"):
        with pytest.raises(AttributeError, match=rf"^what {name} needs is not computed yet; call estimate_std_errors"):
            getattr(known, name)()


def test_tables_and_graphs_carry_what_is_known(known):
    columns = ["source", "target", "probability", "std_error", "low", "high", "bagged", "identifiable"]
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


def test_edges_at_a_false_discovery_rate(known):
    # 0.95, 0.9 and 0.85: a mean of 0.1 is absent; with 0.4 it is 0.225, and 'a -> b' cannot be told
    assert ends(known.edges_at_fdr(0.1)) == [("b", "a"), ("a", "c"), ("c", "a")]
    assert ends(known.edges_at_fdr(0.3))[3:] == [("b", "c")]
    assert ends(known.edges_at_fdr(0.01)) == []
    assert known.edges_at_fdr(0.1).index.tolist() == [0, 1, 2]
    pd.testing.assert_frame_equal(known.edges_at_fdr(0.1), known.edges_.head(3))
    known._fitted.identifiable = None
    assert ends(known.edges_at_fdr(0.3))[3:] == [("a", "b")]


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
    known._fitted.graph.fixed[0, 1], known._fitted.graph.fixed_probs[0, 1] = True, 1.0
    known._fitted.identifiable = None
    assert ends(known.edges_.head(1)) == [("b", "a")]
    assert ends(known.edges_at_fdr(0.1)) == [("a", "c")]  # with it 'c -> a' would be in
    assert ends(known.significant_edges(above=0.6)) == [("a", "c")]


def test_edges_without_direction(tables):
    model = LatentGraphRegressor(**{**TINY, "epochs": 1}, symmetric=True).fit(*tables)
    probs = (PROBS + PROBS.mT) / 2
    model._fitted.graph = BernoulliGraph(probs, fixed=torch.eye(3, dtype=torch.bool), symmetric=True)
    rounding = torch.tensor([[0, 0, 0], [1e-7, 0, 0], [1e-7, 1e-7, 0]])  # means are not summed in one order
    found = EdgeUncertainty(
        probs + rounding,
        probs / 10 + rounding,
        ~model.graph_.fixed,
        True,
        0.5,
        9,
        probs.expand(10, 3, 3),
        {},
        0.0,
        [],
    )
    model._fitted.errors, model._fitted.identifiable = EdgeErrors.of(found, model.graph_), ~model.graph_.fixed
    np.testing.assert_array_equal(model.edge_std_errors_, model.edge_std_errors_.T)
    assert len(model.edges_) == 9
    graph = model.to_networkx()
    assert graph.edges["a", "b"]["std_error"] == pytest.approx(0.0675)
    assert graph.edges["b", "a"]["identifiable"] == "yes"
    assert sorted(map(set, ends(model.significant_edges())), key=sorted) == [{"a", "b"}, {"a", "c"}, {"b", "c"}]
    assert [set(edge) for edge in ends(model.edges_at_fdr(0.2))] == [{"a", "c"}]


def test_it_all_survives_being_stored(known, tmp_path):
    known.save(tmp_path / "model")
    for restored in (pickle.loads(pickle.dumps(known)), LatentGraphRegressor.load(tmp_path / "model")):
        for name in ("edge_probs_", *ASKED):
            np.testing.assert_array_equal(getattr(restored, name), getattr(known, name))
        pd.testing.assert_frame_equal(restored.edges_, known.edges_)
        pd.testing.assert_frame_equal(restored.significant_edges(), known.significant_edges())
        pd.testing.assert_frame_equal(restored.edge_intervals(0.5), known.edge_intervals(0.5))
        assert restored.notes_ == known.notes_


def test_an_older_file_is_read_without_them_and_a_damaged_one_is_not(known, tmp_path):
    stored, path = known._stored(), tmp_path / "model"
    tensors = {n: value for n, value in stored.tensors.items() if not n.startswith(("errors.", "identifiable"))}
    assert len(stored.tensors) - len(tensors) == 3
    path.write_bytes(Stored(stored.text, tensors).to_bytes())
    with pytest.raises(InputError, match=r"model holds a damaged estimator \('bagged'\); fit and save it again"):
        LatentGraphRegressor.load(path)
    del stored.text["fitted"]["errors"]
    for extra, notes in (
        ({}, []),
        (
            {"std_errors": STD_ERRORS},
            ["standard errors of an older kind were left out; call estimate_std_errors(X, y)"],
        ),
    ):
        path.write_bytes(Stored(stored.text, {**tensors, **extra}).to_bytes())
        older = LatentGraphRegressor.load(path)
        np.testing.assert_array_equal(older.edge_probs_, known.edge_probs_)
        assert not any(hasattr(older, name) for name in ASKED)
        assert [note.split(" for those")[0] for note in older.notes_] == notes


def test_what_the_data_cannot_tell(tables):
    x, y = (part.copy() for part in tables)
    x["c"] = x["b"]  # who reads b and who reads c?
    model = LatentGraphRegressor(**TINY, hidden=(), forbidden=[("a", "b")], required=[("b", "c")]).fit(x, y)
    found = model.identify(x, y)
    assert found.twins == [((0, 1), (0, 2))]
    assert found.num_pairs == 54
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


def test_identification_is_by_the_targets_that_are_there_and_the_pairs_that_there_are(fitted, pairs):
    x, y = pairs
    model = copy.deepcopy(fitted)
    found = model.identify(x, y)
    gaps = y.copy()
    gaps[::2, 0] = np.nan
    gone, spread = model.identify(x, gaps), y[1::2, 0].std() / y[:, 0].std()
    np.testing.assert_allclose(gone.effects[0, 1:] * spread, found.effects[0, 1:], rtol=1e-4)
    np.testing.assert_allclose(gone.effects[1, 2], found.effects[1, 2], rtol=1e-4)
    assert not found.too_weak.any()
    assert model.identify(x[:2], y[:2]).too_weak.any()  # one pair to learn from


@pytest.fixture(scope="module")
def noisy():
    """A model of the right kind: what is predicted is Gaussian around what a certain graph says."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 3))
    y = pd.DataFrame(10 + 3 * (x + x[:, [1, 2, 0]] + 0.5 * rng.normal(size=x.shape)), columns=["a", "b", "c"])
    options = {"replicas": 1, "epochs": 20, "batch_size": 135, "learning_rate": 0.2, "predictor_rate": 0.5}
    required = [("b", "a"), ("c", "b"), ("a", "c")]
    model = LatentGraphRegressor(**options, hidden=(), required=required, candidates=required, compile=False)
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
    fitted, gaps = model._fitted, y.to_numpy().copy()
    gaps[:50, 1] = np.nan
    inputs, targets = fitted.input_units.scaled(x[..., None]), fitted.target_units.scaled(gaps[..., None])
    pairs = Pairs.with_missing(*(torch.tensor(part, dtype=torch.float32) for part in (inputs, targets)))
    latent = LatentGraphModel(model.graph_, model.predictor_, EnergyScore())
    direct = goodness_of_fit(latent, pairs, generator=generator_for(0, "goodness of fit"), node_names=["a", "b", "c"])
    assert model.goodness_of_fit(x, gaps) == direct
    assert pickle.loads(pickle.dumps(model)).goodness_of_fit(x, gaps) == direct


def test_a_loss_that_is_not_stored_is_needed_for_training_only(pairs):
    model = LatentGraphRegressor(**TINY, loss=EnergyScore()).fit(*pairs)
    restored = pickle.loads(pickle.dumps(model))
    assert restored.goodness_of_fit(*pairs) == model.goodness_of_fit(*pairs)
    assert torch.equal(restored.identify(*pairs).effects, model.identify(*pairs).effects)
    with pytest.raises(InputError, match="loss was a EnergyScore, which is not stored; pass it with set_params"):
        restored.estimate_std_errors(*pairs)
    restored.set_params(loss=EnergyScore()).estimate_std_errors(*pairs, num_resamples=4)
    errors = model.estimate_std_errors(*pairs, num_resamples=4).edge_std_errors_
    np.testing.assert_allclose(restored.edge_std_errors_, errors, rtol=1e-5)


def test_names_of_the_fit_are_used_for_arrays_too(tables, pairs):
    x, y = pairs
    model = LatentGraphRegressor(**{**TINY, "epochs": 1}, prior={("b", "a"): 0.9}).fit(tables[0], y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert model.goodness_of_fit(x, y).names == ("a", "b", "c")
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.estimate_std_errors(x, y, num_resamples=4)


def test_bad_questions(known, pairs, unchecked):
    x, y = (pd.DataFrame(part, columns=["a", "b", "c"]) for part in pairs)
    two = np.stack([y, y], -1)
    for call, message in (
        (lambda: known.estimate_std_errors(x, y, num_resamples=3), "^num_resamples needs to be a whole number of at"),
        (lambda: known.estimate_std_errors(x, y, num_resamples=8.5), "least 4, got 8.5$"),
        (lambda: known.estimate_std_errors(x, y, block=0), "^block needs to be a whole number of at least 1, got 0$"),
        (lambda: known.estimate_std_errors(x, y, block=20), "5 blocks or more, got 54 training pairs for blocks of 20"),
        (lambda: known.estimate_std_errors(x[:12], y[:12]), "needs 20 training pairs or more, got 11; pass more rows"),
        (lambda: known.identify(x, two), "^y needs 1 channels per node as in fit, got 2; pass the"),
        (lambda: known.score(x, two), "^y needs 1 channels per node as in fit, got 2; pass the same"),
        (lambda: known.goodness_of_fit(x, y[["a", "b"]]), "^y needs a value for each of the 3 nodes of X, got 2"),
        (lambda: known.goodness_of_fit(x, y, stride=0), "^stride needs to be a whole number of at least 1, got 0$"),
        (lambda: known.goodness_of_fit(x, y, level=2), "^level needs to be in .* got 2; pass for example 0.05"),
        (lambda: known.edge_intervals(95), "^level needs a number between 0 and 1, got 95; pass for example 0.95$"),
        (lambda: known.edges_at_fdr(0), "^rate needs a number between 0 and 1, got 0; pass for example 0.1$"),
        (lambda: known.significant_edges(above=-1), "^above needs a probability from 0 to 1, got -1; pass for"),
        (lambda: known.significant_edges(dependence="no"), "^dependence needs 'positive' or 'any', got 'no'; choose"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    for name in ("estimate_std_errors", "identify", "goodness_of_fit"):
        with pytest.raises(ValueError, match="This LatentGraphRegressor instance is not fitted yet; call fit"):
            getattr(LatentGraphRegressor(), name)(x, y)
    np.testing.assert_array_equal(known.edge_std_errors_, STD_ERRORS)  # what was known is still known
