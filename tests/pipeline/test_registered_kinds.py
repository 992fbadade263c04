"""Kinds from outside the package: one toy of each is registered and runs through the command, by its name alone."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import tacit
from commands import call
from own_files import NODES, series
from tacit.graph import EdgeProbsPerPair, GraphDistribution
from tacit.losses import EnergyScore
from tacit.observation import ObservationModel
from tacit.predictors import PredictorKind


@dataclass(frozen=True)
class TwiceTheEnergy(EnergyScore):
    """A loss: twice the energy score."""

    def parts(self, samples, targets, observed, group_size):
        return [part._replace(values=2 * part.values) for part in super().parts(samples, targets, observed, group_size)]


@dataclass(frozen=True)
class Clipped(tacit.ScoreFunction):
    """An estimator: advantages of at most 1."""

    def surrogate(self, terms, graphs, graph):
        advantage = (terms.cost - terms.baseline).clamp(-1, 1)
        return super().surrogate(terms._replace(cost=advantage, baseline=torch.zeros_like(advantage)), graphs, graph)


class BySeries(GraphDistribution):
    """A graph distribution: probabilities of its own for each of three series."""

    independent_edges = True
    context_fields = ("series",)

    def __init__(self, start):
        super().__init__()
        self.levels = nn.Parameter(torch.logit(start.edge_probs.detach().clamp(1e-3, 0.999)).expand(3, -1, -1).clone())
        self.register_buffer("never", start.fixed.clone())

    edge_shape = property(lambda self: tuple(self.levels.shape[1:]))
    edge_probs = property(lambda self: torch.sigmoid(self._logits()).mean(0))

    def _logits(self):
        return self.levels.masked_fill(self.never, -torch.inf)

    def condition(self, context):
        return EdgeProbsPerPair(self._logits()[context.series])

    def sample_from(self, uniforms):
        return EdgeProbsPerPair(self._logits().mean(0, keepdim=True)).sample_from(uniforms)

    def log_prob(self, graphs):
        return EdgeProbsPerPair(self._logits().mean(0, keepdim=True)).log_prob(graphs)

    def initial_parameters(self, generator):
        del generator
        return {"levels": self.levels.detach()}


class Laplace(ObservationModel):
    """An observation model: heavier tails than the Gaussian."""

    num_parameters = 2

    def __init__(self, num_nodes, channels):
        super().__init__(channels)
        self.log_scale = nn.Parameter(torch.full((num_nodes, channels), -1.0))

    @classmethod
    def for_sizes(cls, *, num_nodes, in_channels, channels, values=None):
        del in_channels, values
        return cls(num_nodes, channels)

    def describe(self, outputs, inputs):
        del inputs
        return torch.cat([outputs, self.log_scale.exp().expand_as(outputs)], -1)

    def sample(self, parameters, uniforms):
        mean, scale = parameters.chunk(2, -1)
        return mean - scale * (uniforms - 0.5).sign() * torch.log1p(-2 * (uniforms - 0.5).abs())

    def mean(self, parameters):
        return parameters.chunk(2, -1)[0]

    def variance(self, parameters):
        return 2 * parameters.chunk(2, -1)[1].square()


class Sum(nn.Module):
    """A predictor: the newest value of a node, and a weight times the sum of what it reads."""

    num_hops = 1

    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, inputs, graphs):
        newest = inputs[:, None, :, -1:]
        return newest + self.weight * (graphs @ newest)


TOYS = {
    "loss": ("twice", TwiceTheEnergy),
    "estimator": ("clipped", Clipped),
    "graph": ("by_series", BySeries),
    "observation": ("laplace", Laplace),
    "predictor": (
        "sum",
        PredictorKind(lambda _sizes, options, _candidates, _noise: Sum(options.options["weight"]), uses=("options",)),
    ),
}


@pytest.fixture
def registered(own_kinds):
    for what, (name, kind) in TOYS.items():
        tacit.register(what, name, kind)


@pytest.fixture
def panel(tmp_path):
    """Three series in which south follows east in the first alone."""
    frames = []
    for number in range(3):
        values = (series(80, number) - [0, 5, -20, 3]) / [1, 10, 100, 1]
        if number:
            values[:, 2] = np.random.default_rng(number).normal(size=80)
        frames.append(pd.DataFrame(values, columns=NODES).assign(place=f"p{number}", time=np.arange(80)))
    pd.concat(frames).to_csv(tmp_path / "panel.csv", index=False)
    return tmp_path / "panel.csv"


def test_a_toy_of_each_kind_runs_through_the_command(registered, panel, tmp_path, capsys):
    config = tmp_path / "choices.toml"
    config.write_text(
        "[data]\nseries = 'place'\nwindow = 1\n[predictor]\nkind = 'sum'\noptions = {weight = 0.5}\n"
        "[observation]\nkind = 'laplace'\n"
        "[model]\nloss = 'twice'\nestimator = 'clipped'\ngraph = 'by_series'\nnum_graphs = 4\n"
        "[training]\nepochs = 2\ncompile = false\n"
    )
    run = tmp_path / "run"
    assert call("fit", panel, "--config", config, "--out", run, "--quiet") == 0
    record = json.loads((run / "record.json").read_text())
    assert {record["config"][section][key] for section, key in (("model", "loss"), ("predictor", "kind"))} == {
        "twice",
        "sum",
    }
    assert "no edge probabilities" in {one["values"].get("reason") for one in record["findings"]}
    assert (run / "report.html").is_file()
    capsys.readouterr()
    assert call("predict", run, panel, "--json") == 0
    predictions = json.loads(capsys.readouterr().out)["predictions"]
    assert len(predictions) == 3 * 80 * len(NODES)
    assert {row["series"] for row in predictions} == {"p0", "p1", "p2"}
    assert call("evaluate", run, panel, "--json") == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["crps"] > 0
    assert call("report", run, "--quiet") == 0


@pytest.mark.parametrize("lift", ["loop", "vmap"])
@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_graphs_that_depend_on_the_series_are_learned(lift, compile, rng):
    """Node 1 reads node 0 in the first series, never in the second, half of the time in the third."""
    pairs, probs = 600, torch.tensor([1.0, 0.0, 0.5])
    which = torch.arange(pairs) % 3
    inputs = torch.randn(pairs, 2, 1, generator=rng)
    acts = torch.rand(pairs, generator=rng) < probs[which]
    targets = inputs.clone()
    targets[:, 1] += acts[:, None] * inputs[:, 0]
    data = tacit.Pairs(inputs, targets, series=which)
    start = tacit.BernoulliGraph(torch.tensor([[0.0, 0.0], [0.3, 0.0]]), ~torch.tensor([[False, False], [True, False]]))
    predictor = Sum(1.0)
    predictor.requires_grad_(False)
    model = tacit.LatentGraphModel(BySeries(start), predictor, EnergyScore(), num_graphs=8)
    settings = tacit.FitSettings(epochs=20, batch_size=60, schedule=tacit.CosineDecay(0.3), min_draws_per_edge=0.0)
    tacit.fit(model, data[:480], data[480:], settings, lift=lift, compile=compile)
    learned = torch.sigmoid(model.graph.levels[:, 1, 0])
    torch.testing.assert_close(learned, probs, atol=0.1, rtol=0)


def test_without_several_series_such_a_distribution_says_what_it_lacks(registered, tmp_path, wrong_call):
    pd.DataFrame(series(60), columns=NODES).to_csv(tmp_path / "one.csv", index_label="time")
    arguments = ["--set", "model.graph=by_series", "--window", 1, "--out", tmp_path / "run"]
    wrong_call("fit", tmp_path / "one.csv", *arguments)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "setting", ["model.loss=enrgy", "predictor.kind=transformer", "observation.kind=laplace", "model.graph=scale_free"]
)
def test_an_unregistered_name_says_what_is_registered_and_how_to_register(setting, tmp_path, wrong_call):
    pd.DataFrame(series(60), columns=NODES).to_csv(tmp_path / "one.csv", index_label="time")
    wrong_call("fit", tmp_path / "one.csv", "--set", setting, "--out", tmp_path / "run", "--quiet")
    assert not (tmp_path / "run").exists()
