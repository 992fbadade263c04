"""The job itself: every predictor and noise, constraints kept exactly, references, records."""

import csv
import json
import math
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from own_files import NODES, learn, plan_of, quick, series
from tacit.data import ridge_regression
from tacit.graph import density_prior
from tacit.pipeline import Fitted, OwnParts
from tacit.pipeline.building import build_model
from tacit.pipeline.comparisons import references
from tacit.pipeline.state import fit_settings
from tacit.records import read_run
from tacit.registry import PREDICTORS
from tacit.words.choices import REASONS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG's own deprecations
    pytest.importorskip("torch_geometric.nn")

CPU = torch.device("cpu")
KINDS = tuple(PREDICTORS)
OBSERVED = ("none", "gaussian", "gaussian_input")


def narrow(kind):
    return {"hidden": 3} if "hidden" in PREDICTORS[kind].uses else {}


@pytest.mark.parametrize(
    ("kind", "observation"),
    [
        pytest.param(kind, name, marks=() if name == OBSERVED[place % 3] or kind == "filter" else pytest.mark.slow)
        for place, kind in enumerate(KINDS)
        for name in OBSERVED
    ],
)
def test_every_predictor_with_every_observation_model(kind, observation, folder, tmp_path):
    """It trains, is stored, and what is read back predicts the same to the last bit."""
    made, result = learn(
        folder / "wide.csv",
        tmp_path / "run",
        predictor={"kind": kind, **narrow(kind)},
        observation={"kind": observation},
        data={"scale": None},
    )
    stored = Fitted.read(made.directory, CPU)
    inputs = plan_of(folder / "wide.csv").dataset.split.test.inputs
    outputs = [
        model.outputs(inputs, 8, generator=torch.Generator().manual_seed(0)) for model in (result.model, stored.model)
    ]
    assert torch.equal(*outputs)
    assert outputs[0].shape[-1] == (1 if observation == "none" else 2)
    metrics = made.run.record.metrics
    assert all(math.isfinite(value) for value in metrics.values())
    assert {"point_mae", "point_mse", "crps", "coverage_0.8", "energy_score", "distribution_loss"} <= set(metrics)
    assert not {name for name in metrics if name.startswith("edge_prob")}, "they need a truth, which is not known"


@pytest.mark.parametrize(
    "kind", ["filter", "recurrent", *(pytest.param(k, marks=pytest.mark.slow) for k in ("convolution", "gcn"))]
)
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("holes.csv", {}),
        ("two.csv", {"separator": ":", "covariates": "hour"}),
        ("two.csv", {"separator": ":", "covariates": "hour", "targets": "a", "horizon": 2}),
        ("pairs.npz", {}),
        ("pairs_with_holes.npz", {}),
    ],
)
def test_every_kind_of_data(name, data, kind, folder, tmp_path):
    made, _ = learn(folder / name, tmp_path / "run", data=data, predictor={"kind": kind, **narrow(kind)})
    assert made.complete
    stored = Fitted.read(made.directory, CPU)
    assert stored.preparation.sizes == plan_of(folder / name, data=data).dataset.preparation.sizes


@pytest.mark.parametrize("loss", ["mmd", "point_mse", "literature_1_mae", "literature_2_mse"])
def test_losses_choose_a_noise_that_they_can_learn(loss, folder, tmp_path):
    made, _ = learn(folder / "holes.csv", tmp_path / "run", model={"loss": loss})
    assert made.run.record.config["observation"]["kind"] == ("gaussian" if loss == "mmd" else "none")
    assert Fitted.read(made.directory, CPU).model.observation.random == (loss == "mmd")


@pytest.mark.parametrize("kernel", ["gaussian", "rational_quadratic"])
def test_a_kernel_scaled_by_the_data_is_read_back_without_it(kernel, folder, tmp_path):
    model = {"loss": "mmd", "kernel": kernel, "kernel_scale": "median"}
    made, _ = learn(folder / "wide.csv", tmp_path / "run", model=model)
    assert Fitted.read(made.directory, CPU).config.model.kernel == kernel


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("kind", ["filter", "recurrent"])
def test_rules_hold_exactly_everywhere(kind, symmetric, folder, tmp_path):
    rules = tmp_path / "rules.csv"
    rules.write_text(
        "source,target,kind,probability\nnorth,south,forbidden,\nnorth,east,required,\neast,west,prior,0.9\n"
    )
    graph = {"edges": str(rules), "symmetric": symmetric}
    predictor = {"kind": kind, **narrow(kind)}
    made, result = learn(folder / "wide.csv", tmp_path / "run", graph=graph, predictor=predictor)
    with (made.directory / "edges.csv").open() as file:
        probability = {(row["source"], row["target"]): row["probability"] for row in csv.DictReader(file)}
    both = {("north", "south"), ("south", "north")} if symmetric else {("north", "south")}
    certain = {("north", "east"), ("east", "north")} if symmetric else {("north", "east")}
    for edge, value in probability.items():
        if edge in both or edge[0] == edge[1]:
            assert value == "0"
        elif edge in certain:
            assert value == "1"
        else:
            assert 0 < float(value) < 1
        if symmetric:
            assert value == probability[edge[::-1]]
    assert made.run.edges.matrix("probability")[2][0] == 0.0
    graphs = Fitted.read(made.directory, CPU).model.graph.sample(500, generator=torch.Generator().manual_seed(0))
    assert graphs[..., 2, 0].max() == 0
    assert graphs[..., 1, 0].min() == 1
    assert result.model.graph.edge_probs[2, 0] == 0
    if symmetric:
        assert torch.equal(graphs, graphs.mT)


def test_the_record_says_what_was_chosen_and_keeps_what_was_given(plain):
    record = plain[0].run.record
    config = record.config
    assert config["training"]["epochs"] == 1
    assert not [value for section in ("predictor", "training") for value in config[section].values() if value is None]
    assert "auto" not in (config["predictor"]["kind"], config["observation"]["kind"])
    chosen = {choice.option for choice in record.choices}
    assert {"predictor", "residual", "observation", "warm_start", "batch_size"} <= chosen
    assert not chosen & {"epochs", "compile", "replicas"}
    assert all(choice.reason in REASONS for choice in record.choices)
    assert record.title == "wide.csv, value, 1 step ahead"
    assert record.node_names == list(NODES)
    assert record.warnings == []  # no edge is listed, so that nothing is said about random graphs


def test_metrics_are_in_the_units_of_the_data(folder, tmp_path, plain):
    """The same series in units a thousand times as small: errors a thousand times as large, probabilities the same."""
    import pandas as pd

    table = pd.read_csv(folder / "wide.csv")
    table[list(NODES)] *= 1000
    table.to_csv(tmp_path / "large.csv", index=False)
    made, _ = learn(tmp_path / "large.csv", tmp_path / "run")
    small, large = plain[0].run.record, made.run.record
    for key, power in (("point_mae", 1), ("crps", 1), ("point_mse", 2), ("coverage_0.8", 0), ("distribution_loss", 0)):
        assert large.metrics[key] == pytest.approx(small.metrics[key] * 1000**power, rel=1e-3), key
    for name, scores in small.references.items():
        assert large.references[name]["crps"] == pytest.approx(1000 * scores["crps"], rel=1e-3)
    assert made.run.edges.matrix("probability") == pytest.approx(plain[0].run.edges.matrix("probability"), abs=1e-3)


def test_references_made_by_hand(folder):
    """The last value: errors are the changes of the test part; sigma is the size of those of the training part."""
    problem = plan_of(folder / "wide.csv").dataset
    found = {name: one.numbers for name, one in references(problem.preparation, problem.split).items()}
    changes = np.diff(series(), axis=0)[1:]  # targets from row 2 on
    train, test = changes[:83], changes[83 + 12 :]
    last = found["the last value"]
    assert last["point_mae"] == pytest.approx(np.abs(test).mean(), rel=1e-4)
    assert last["point_mse"] == pytest.approx((test**2).mean(), rel=1e-4)
    inside = np.abs(test) <= 1.2815516 * np.sqrt((train**2).mean(0))
    assert last["coverage_0.8"] == pytest.approx(inside.mean(), abs=1e-6)
    assert found["ridge regression"]["crps"] < last["crps"]
    pairs = plan_of(folder / "pairs.npz").dataset
    assert set(references(pairs.preparation, pairs.split)) == {"ridge regression"}


def test_settings_halve_early_and_only_where_there_are_several():
    settings = fit_settings(
        quick("a.csv", training={"epochs": 50, "replicas": 4, "learning_rate": 0.1, "predictor_learning_rate": 0.01})
    )
    assert settings.halve_after == (5, 10)
    assert settings.predictor_factor == pytest.approx(0.1)
    assert fit_settings(quick("a.csv", training={"epochs": 50})).halve_after == ()
    assert fit_settings(quick("a.csv", training={"epochs": 2, "replicas": 4})).halve_after == (1,)


def test_a_density_is_a_belief_about_every_edge(folder):
    plan = plan_of(folder / "wide.csv", graph={"density": 0.2})
    problem, settled, prior = plan.dataset, plan.config, plan.model.prior
    sigma = float(ridge_regression(problem.split.train, problem.split.validation).sigmas.mean())
    sizes = problem.preparation.sizes
    weights = sizes.window * sizes.out_channels if settled.predictor.kind == "filter" else 0
    expected = density_prior(0.2, sigma, len(problem.split.train), len(problem.nodes), weights)
    assert prior.weight == pytest.approx(expected.weight)
    assert torch.allclose(prior.probs, expected.probs)
    heavier = settled.model_copy(update={"graph": settled.graph.model_copy(update={"prior_weight": 0.5})})
    assert build_model(heavier, problem, plan.rules, OwnParts(), 0).prior.weight == 0.5


def test_a_warm_start_is_near_the_regression(folder):
    plan = plan_of(folder / "wide.csv", predictor={"kind": "filter", "warm_start": True})
    settled, probs = plan.config, plan.model.graph.edge_probs.detach()
    assert probs[2, 1] == pytest.approx(0.5)  # the strongest relation, east -> south
    assert probs[0, 3] == pytest.approx(0.03)
    cold = settled.model_copy(update={"predictor": settled.predictor.model_copy(update={"warm_start": False})})
    assert build_model(cold, plan.dataset, plan.rules, OwnParts(), 0).graph.edge_probs.max() <= 0.15


def test_over_a_table_only_kept_edges_start_with_a_weight(folder):
    sections = {"graph": {"layout": "table", "k_correlated": 2}, "predictor": {"kind": "filter", "warm_start": True}}
    plan = plan_of(folder / "wide.csv", **sections)
    candidates = plan.model.graph.candidates
    kept = np.random.default_rng(0).random(int(candidates.used.sum())) > 0.5  # over the index of edges
    model = build_model(plan.config, plan.dataset, plan.rules, OwnParts(), 0, kept)
    assert torch.equal(model.predictor.edge_weights.detach().abs().amax((2, 3)) > 0, candidates.placed(kept))


@pytest.mark.parametrize(
    "sections",
    [
        {"predictor": {"kind": "recurrent", "warm_start": True}},
        {"graph": {"prior_weight": 1.0, "evidence": "none"}},
        {"graph": {"prior_weight": 0.5, "density": 0.1, "evidence": "auto"}, "predictor": {"kind": "filter"}},
        {"model": {"prior": 0.2}},
        {"model": {"num_graphs": 1}},
        {"model": {"temperature": 0.5}},
        {"model": {"estimator": "concrete"}, "predictor": {"kind": "gcn"}},
    ],
)
def test_what_does_not_go_together_leaves_nothing_behind(sections, folder, tmp_path, refused):
    refused(learn, folder / "wide.csv", tmp_path / "run", **sections)
    assert list(tmp_path.iterdir()) == []


def test_the_graph_that_made_the_data_is_found(folder, tmp_path):
    """North -> east and east -> south are the two most probable edges after a short training."""
    training = {"epochs": 80, "replicas": 2, "patience": 80}
    predictor = {"kind": "filter", "warm_start": True}
    made, _ = learn(
        folder / "wide.csv", tmp_path / "run", training=training, predictor=predictor, model={"num_graphs": 8}
    )
    probs = torch.tensor(made.run.edges.matrix("probability"))
    best = {divmod(int(place), 4) for place in probs.flatten().topk(2).indices}
    assert best == {(1, 0), (2, 1)}
    ranked = probs.flatten().sort(descending=True).values
    assert ranked[1] > 0.7 > 0.5 > ranked[2]
    assert made.run.record.metrics["crps"] < made.run.record.references["the last value"]["crps"]


def test_the_model_is_read_from_its_own_file(plain):
    run = read_run(plain[0].directory)
    logits = load_file(plain[0].directory / "model.safetensors")["graph.edge_logits"]
    assert run.edges.matrix("probability")[1][0] == pytest.approx(torch.sigmoid(logits[1, 0]).item(), rel=1e-5)
    history = (plain[0].directory / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in history] == [1]
