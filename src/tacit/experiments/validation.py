"""The figure of losses during training: with and without baseline, psi known and learned, mean and deviation."""

import statistics
from functools import partial

import torch
from matplotlib.figure import Figure
from torch import Tensor

from tacit.assessment.evaluation import oracle_edge_prob_mae, point_prediction, predictive_metrics
from tacit.data import Split
from tacit.experiments.replication import (
    GOOD_NOTE,
    OUR_MODEL,
    OUR_SETTINGS,
    PAPER_MODEL,
    PAPER_SETTINGS,
    column,
    describe,
    good_runs,
    mean_and_deviation,
    paper_pairs,
    predictor_for,
    quick_note,
    train,
)
from tacit.experiments.study import OPTIMAL_NOTE, Listener, Options, Records, Study, Table, Task, Values
from tacit.randomness import generator_for
from tacit.report import bands
from tacit.systems import CommunitySystem, community_edge_probs
from tacit.training import LatentGraphModel, Monitor

SETTINGS = {
    f"{'with' if baseline == 'paper' else 'without'} baseline, psi {psi}": (baseline, psi)
    for baseline in ("paper", "none")
    for psi in ("known", "learned")
} | {f"ours: energy, node, psi {psi}": ("ours", psi) for psi in ("known", "learned")}
METRICS = {"distribution_loss": "distribution loss", "edge_prob_mae": "MAE on theta", "point_mse": "MSE on y"}
SHOWN_PAIRS, SHOWN_GRAPHS = 500, 200  # for the curve of the MSE; the table uses all test pairs and 1,000 graphs


class Validation(Study):
    """Three losses during training in four settings."""

    name = "validation"
    title = "Distribution loss, error on theta and point error during training with MMD (the paper's first results)."

    def tasks(self) -> list[Task]:
        """One per setting, and the optimal values."""
        return [Task("optimal", _optimal), *(Task(_slug(name), partial(_work, *SETTINGS[name])) for name in SETTINGS)]

    def tables(self, records: Records) -> list[Table]:
        """The values at the end of training, with the optimal ones."""
        optimal = records["optimal"]["optimal"]
        paper = {"distribution_loss": "about -0.088", "edge_prob_mae": "below 0.01", "point_mse": "0.158"}
        rows = [["paper", *(paper[metric] for metric in METRICS), "–", "8", "–", "–"]]
        shown = {**optimal, "edge_prob_mae": oracle_edge_prob_mae(community_edge_probs(), records["optimal"]["pairs"])}
        rows.append(["optimal", *(f"{shown[metric]:.4f}" for metric in METRICS), "0", "–", "–", "–"])
        for name in SETTINGS:
            values = records[_slug(name)]
            good, kept = len(good_runs(values)), values["runs"][values["best"]]["edge_prob_mae"]
            cells = [mean_and_deviation(column(values, metric)) for metric in METRICS]
            excess = _excess(values, optimal["distribution_loss"])
            rows.append([name, *cells, excess, str(good), str(len(values["runs"]) - good), f"{kept:.4f}"])
        notes = [
            "above the least loss: mean distance of the distribution loss from its least value, as a share of it, and "
            "in deviations of the runs; below two deviations it is not significant",
            "on the test pairs after the last epoch, over the good runs; optimal MAE on theta: that of an oracle that "
            "observes every hidden graph of the training pairs",
            GOOD_NOTE,
            OPTIMAL_NOTE,
            *quick_note(list(records.values())),
        ]
        columns = ["setting", *METRICS.values(), "above the least loss", "good runs", "bad", "kept: MAE on theta"]
        return [Table("Losses at the end of training", columns, rows, notes)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """Mean and one deviation over the runs in the good basin, epoch by epoch."""
        papers = [name for name, (baseline, _) in SETTINGS.items() if baseline != "ours"]
        present = {name: records[_slug(name)] for name in papers}
        keys = {"validation_loss": "distribution loss", "edge_prob_mae": "MAE on theta", "point_mse": "MSE on y"}
        panels = {
            title: {
                name: [[line[key][run] for line in values["history"]] for run in good_runs(values)]
                for name, values in present.items()
            }
            for key, title in keys.items()
        }
        epochs = [line["epoch"] for line in next(iter(present.values()))["history"]]
        optimal = records["optimal"]["optimal"]
        lines = {"distribution loss": optimal["validation_loss"], "MSE on y": optimal["shown_mse"]}
        return {"losses": bands(panels, epochs, lines, "epoch")}


def _slug(name: str) -> str:
    return name.replace(",", "").replace(":", "").replace(" ", "-")


def _excess(values: Values, least: float) -> str:
    losses = column(values, "distribution_loss")
    above = statistics.mean(losses) - least
    deviations = (
        f", {above / spread:.1f} deviations" if len(losses) > 1 and (spread := statistics.stdev(losses)) else ""
    )
    return f"{above / abs(least):.2%}{deviations}"


def _work(baseline: str, psi: str, options: Options, listener: Listener) -> Values:
    system, pairs = CommunitySystem(), paper_pairs(options)
    ours = baseline == "ours"
    config = OUR_MODEL if ours else PAPER_MODEL.model_copy(update={"baseline": baseline})
    listener.stage(f"validation, baseline {baseline}, psi {psi}: training")
    predictor = predictor_for(system, psi)
    model_for_scores = PAPER_MODEL.build(system.true_graph(), predictor_for(system, psi)).to(options.torch_device)
    settings = OUR_SETTINGS if ours else PAPER_SETTINGS
    watch = _watch(model_for_scores, system, pairs)
    result = train(config, system, pairs, options, listener, predictor=predictor, monitor=watch, settings=settings)
    listener.stage(f"validation, baseline {baseline}, psi {psi}: scoring")
    return describe(result, system, pairs, loss=model_for_scores.loss)  # the same loss for all settings


def _watch(model: LatentGraphModel, system: CommunitySystem, pairs: Split) -> Monitor:
    """Return a monitor of the error on theta and of the MSE on some validation pairs."""
    truth = system.true_edge_probs.to(pairs.train.inputs.device)

    def watch(edge_probs: Tensor, parameters: dict[str, Tensor]) -> dict[str, list[float]]:
        errors = []
        for replica in range(len(edge_probs)):
            state = {name: value[replica] for name, value in parameters.items()}
            model.load_state_dict(state, strict=False)
            errors.append(_shown_mse(model, pairs))
        return {"edge_prob_mae": (edge_probs - truth).abs().mean((1, 2)).tolist(), "point_mse": errors}

    return watch


def _shown_mse(model: LatentGraphModel, pairs: Split) -> float:
    inputs, targets = pairs.validation.inputs[:SHOWN_PAIRS], pairs.validation.targets[:SHOWN_PAIRS]
    samples = model.sample(inputs, SHOWN_GRAPHS, generator=generator_for(0, "shown", inputs.device))
    return (point_prediction(samples, "mean") - targets).square().mean().item()


def _optimal(options: Options, listener: Listener) -> Values:
    listener.stage("validation: optimal values")
    system, pairs = CommunitySystem(), paper_pairs(options)
    truth = PAPER_MODEL.build(system.true_graph(), system.true_predictor()).to(options.torch_device)
    generator = generator_for(
        0, "score", options.torch_device
    )  # the same random graphs as for the runs, so that sampling errors cancel
    with torch.no_grad():
        test = predictive_metrics(truth, pairs.test, truth.loss, generator=generator)
        validation = predictive_metrics(truth, pairs.validation, truth.loss, generator=generator, point_graphs=64)
        shown = _shown_mse(truth, pairs)
    extra = {"edge_prob_mae": 0.0, "validation_loss": validation["distribution_loss"], "shown_mse": shown}
    return {"optimal": {**test, **extra}, "pairs": len(pairs.train)}
