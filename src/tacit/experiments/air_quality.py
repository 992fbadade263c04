"""Air quality: a learned graph of stations, compared with controls that could explain its gain.

All models have a recurrent unit per station, one graph layer and noise whose size depends on the input. They differ
only in the graph: none, every edge, the nearest stations, random edges with a fixed probability, and learned edges.
"""

import statistics
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from tacit.assessment.evaluation import forecast_scores, gaussian_scores, persistence, residual_sigmas
from tacit.data import Pairs, Series, SeriesPairs, Split, Windows, load_beijing_air, read_aqi36, ridge_regression
from tacit.experiments.replication import mean_and_deviation, put, quick_note, rounded
from tacit.experiments.study import Listener, Options, Records, Study, Table, Tasks, Values
from tacit.graph import BernoulliGraph, nearest_candidates
from tacit.losses import EnergyScore
from tacit.observation import HeadGaussianNoise
from tacit.predictors import GraphNetwork
from tacit.randomness import generator_for
from tacit.report import draw_network
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, fit

HORIZONS = (1, 6)  # hours ahead
MOST_SEEDS = 3
NEAREST, RANDOM_PROB, START = 5, 0.07, (0.05, 0.15)
NUM_GRAPHS = 16
SETTINGS = FitSettings(epochs=30, batch_size=64, schedule=CosineDecay(0.05), predictor_learning_rate=0.003, patience=6)
FIRST_YEAR = 24 * 365  # rows of the stations included in the package: as many as in the data set of the paper
GRAPHS = {
    "none": "GRU, no graph",
    "full": "GRU, full graph",
    "nearest": f"GRU, {NEAREST} nearest stations",
    "random": f"GRU, random edges, probability {RANDOM_PROB} each, not learned",
    "learned": "GRU, learned probabilities",
}
SIMPLE = {"persistence": "the last value", "ridge": "ridge regression, 12 lags"}


class AirQuality(Study):
    """PM2.5 at stations in Beijing, one and six hours ahead."""

    name = "air-quality"
    title = "PM2.5 in Beijing, one and six hours ahead: a learned graph and controls (36 stations with --data)."
    takes_data = True

    def tasks(self) -> Tasks:
        """One per horizon and graph, and one per horizon for the simple forecasts."""
        simple: Tasks = {f"simple-{hours}h": partial(self._simple, hours) for hours in HORIZONS}
        return simple | {f"{kind}-{hours}h": partial(self._work, kind, hours) for hours in HORIZONS for kind in GRAPHS}

    def _work(self, kind: str, hours: int, options: Options, listener: Listener) -> Values:
        series, made = _prepared(options, hours)
        if kind == "nearest" and series.coordinates is None:
            return {"runs": [], "stations": series.num_nodes, "train_seconds": 0.0}
        listener.stage(f"air-quality, {GRAPHS[kind]}, {hours} h: training")
        split = made.split
        if options.quick:
            split = Split(split.train[:640], split.validation[:128], split.test[:128])
        split = split.to(options.torch_device)
        certain = kind in ("none", "full", "nearest")  # one graph: samples of it are all the same
        model = LatentGraphModel(
            _graph(kind, series),
            GraphNetwork.recurrent(made.window, made.num_features, numbers_per_target=2, known=made.known),
            EnergyScore(scope="node"),
            observation=HeadGaussianNoise(),
            num_graphs=3 if certain else NUM_GRAPHS,
            share_graphs=certain,
        )
        settings = FitSettings(**{**vars(SETTINGS), "epochs": 2}) if options.quick else SETTINGS
        seeds = range(min(options.seeds, MOST_SEEDS))
        compiled = options.torch_device.type == "cpu" and not options.quick
        result = fit(
            model, split.train, split.validation, settings, seeds=seeds, compile=compiled, on_progress=listener.step
        )
        if result.interrupted:
            raise KeyboardInterrupt
        listener.stage(f"air-quality, {GRAPHS[kind]}, {hours} h: scoring")
        spread = torch.from_numpy(made.scaling.deviation[:, : made.out_channels]).float()
        runs = []
        for replica in seeds:
            put(model, result.parameters, replica)
            generator = generator_for(0, "score", options.torch_device)
            scores = forecast_scores(
                model, split.test, generator=generator, spread=spread, num_graphs=3 if certain else 100
            )
            runs.append({**scores.numbers(), "validation_loss": result.replicas[replica].validation_loss})
        probs = model.graph.probs_from(result.parameters["graph.edge_logits"]).detach().cpu()
        values = {
            "runs": runs,
            "stations": series.num_nodes,
            "agreement": [],
            "epochs": len(result.history),
            "warnings": result.warnings,
            "train_seconds": result.train_seconds,
        }
        if kind != "learned":
            return values
        places = None if series.coordinates is None else series.coordinates.round(2).tolist()  # enough for a map
        drawn = {"nodes": list(series.nodes), "coordinates": places, "edge_probs": rounded(probs[result.best])}
        return {**values, **drawn, "agreement": rank_correlations(probs)}

    def _simple(self, hours: int, options: Options, listener: Listener) -> Values:
        listener.stage(f"air-quality, simple forecasts, {hours} h")
        series, made = _prepared(options, hours)
        split, spread = made.split, torch.from_numpy(made.scaling.deviation[:, :1]).float()
        last = {
            name: persistence(
                part.inputs, num_features=made.num_features, out_channels=made.out_channels, known=made.known
            )
            for name, part in vars(split).items()
        }
        changes = {  # the regression predicts the change, as the networks do
            name: Pairs(part.inputs, part.targets - last[name], part.observed) for name, part in vars(split).items()
        }
        ridge = ridge_regression(changes["train"], changes["validation"])
        scaled = Pairs(split.test.inputs, split.test.targets * spread, split.test.observed)
        sigmas = residual_sigmas(last["train"], split.train)
        predicted = ridge.predict(split.test.inputs) + last["test"]
        return {
            "stations": series.num_nodes,
            "persistence": gaussian_scores(last["test"] * spread, sigmas * spread, scaled),
            "ridge": gaussian_scores(predicted * spread, ridge.sigmas * spread, scaled),
            "train_seconds": 0.0,
        }

    def tables(self, records: Records) -> list[Table]:
        """One per horizon."""
        tables = []
        columns = ["model", "MAE", "CRPS", "in 80% interval", "agreement of seeds", "runs"]
        for hours in HORIZONS:
            simple = records[f"simple-{hours}h"]
            rows = [[title, *_cells([simple[name]]), "–", "–", "1"] for name, title in SIMPLE.items()]
            runs: dict[str, list[Values]] = {}
            for kind, title in GRAPHS.items():
                values = records[f"{kind}-{hours}h"]
                if values["runs"]:  # empty if stations have no coordinates
                    runs[kind] = values["runs"]
                    agreement = f"{min(values['agreement']):.2f}" if values["agreement"] else "–"
                    coverage = mean_and_deviation([run["coverage_0.8"] for run in values["runs"]], 2)
                    rows.append([title, *_cells(values["runs"]), coverage, agreement, str(len(values["runs"]))])
            notes = [
                f"{simple['stations']} stations, window 12 h, 70/10/20 in time, micrograms per cubic metre; mean ± "
                "deviation over seeds; agreement: the least rank correlation of learned probabilities between two "
                "seeds",
                *_claims(runs),
                *quick_note(list(records.values())),
            ]
            tables.append(Table(f"{hours} hour{'s' if hours > 1 else ''} ahead", columns, rows, notes))
        return tables

    def figures(self, records: Records) -> dict[str, Figure]:
        """The learned graph over the stations' coordinates."""
        figures = {}
        for hours in HORIZONS:
            values = records[f"learned-{hours}h"]
            places = None if values["coordinates"] is None else np.array(values["coordinates"])
            title = f"{hours} hour{'s' if hours > 1 else ''} ahead, edges with probability 0.3 or more"
            probs = np.array(values["edge_probs"])
            figures[f"map-{hours}h"] = draw_network(probs, values["nodes"], places, threshold=0.3, title=title)
        return figures


def _claims(runs: dict[str, list[Values]]) -> list[str]:
    """Return the comparisons of the learned graph with the controls, as sentences."""
    mean = {kind: statistics.mean(run["crps"] for run in found) for kind, found in runs.items()}
    rest = [kind for kind in runs if kind != "learned"]
    parts = [f"{GRAPHS[kind]} {mean['learned'] / mean[kind] - 1:+.1%}" for kind in rest]
    said = [f"CRPS of the learned graph against: {'; '.join(parts)}"]
    if mean["none"] > mean["learned"]:
        share = (mean["none"] - mean["random"]) / (mean["none"] - mean["learned"])
        said.append(
            f"random edges that are not learned give {share:.0%} of the gain over no graph: most of the gain does not "
            "come from the choice of stations"
            if share > 0.5
            else f"random edges that are not learned give {share:.0%} of the gain over no graph"
        )
    return said


def _cells(runs: list[Values]) -> list[str]:
    return [mean_and_deviation([run[key] for run in runs], 2) for key in ("point_mae", "crps")]


def stations(options: Options) -> Series:
    """Return the 36 stations of the paper if --data is given, otherwise a year of the twelve included stations."""
    if options.data is not None:
        return read_aqi36(options.data)
    air = load_beijing_air()
    times = None if air.times is None else air.times[:FIRST_YEAR]
    return Series(air.values[:FIRST_YEAR], air.nodes, air.channels, times, coordinates=air.coordinates)


def _prepared(options: Options, hours: int) -> tuple[Series, SeriesPairs]:
    series = stations(options)
    return series, Windows(12, hours).prepare(series)


def _graph(kind: str, series: Series) -> BernoulliGraph:
    away = ~torch.eye(series.num_nodes, dtype=torch.bool)
    held = torch.ones_like(away)
    if kind == "learned":
        return BernoulliGraph(away * START[1], ~away, initial_range=START)
    if kind == "nearest":
        if series.coordinates is None:
            raise ValueError("nearest stations require coordinates")
        near = nearest_candidates(torch.from_numpy(series.coordinates), NEAREST, metric="great_circle").to_mask()
        return BernoulliGraph(near.float(), held)
    return BernoulliGraph(away * {"none": 0.0, "full": 1.0, "random": RANDOM_PROB}[kind], held)


def rank_correlations(edge_probs: Tensor) -> list[float]:
    """Return Spearman's correlation of the off-diagonal probabilities of every two replicas.

    >>> probs = torch.tensor([[[0.0, 0.1], [0.2, 0.0]], [[0.0, 0.3], [0.9, 0.0]]])
    >>> rank_correlations(probs)
    [1.0]
    """
    away = ~torch.eye(edge_probs.shape[-1], dtype=torch.bool)
    ranks = edge_probs[:, away].argsort(-1).argsort(-1).double()
    matrix = torch.corrcoef(ranks)
    return [round(float(matrix[i, j]), 4) for i in range(len(ranks)) for j in range(i)]
