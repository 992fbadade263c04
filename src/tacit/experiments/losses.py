"""What losses and gradient estimators learn on the system of the paper: its main table and the curves of training."""

import statistics
import warnings
from functools import partial
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from tacit.assessment.evaluation import oracle_edge_prob_mae, point_prediction, predictive_metrics
from tacit.config import ModelConfig
from tacit.data import Split
from tacit.experiments.replication import (
    GOOD_NOTE,
    OUR_MODEL,
    OUR_SETTINGS,
    PAPER_MODEL,
    PAPER_SETTINGS,
    column,
    good_runs,
    mean_and_deviation,
    paper_pairs,
    predictor_for,
    put,
    quick_note,
    train,
    train_and_describe,
)
from tacit.experiments.study import LOSS_METRICS as METRICS
from tacit.experiments.study import LOSS_TABLE as PAPER
from tacit.experiments.study import OPTIMAL_NOTE, Listener, Options, Records, Study, Table, Tasks, Values
from tacit.randomness import generator_for
from tacit.report import bands
from tacit.systems import CommunitySystem, community_edge_probs
from tacit.training import LatentGraphModel

SHARED: dict[str, Any] = {"num_graphs": 64, "share_graphs": True}
JOINT: dict[str, Any] = {"scope": "joint", "baseline": "paper", **SHARED}
ROWS = {
    **{name: ModelConfig(loss=name, **JOINT) for name in ("literature_1_mae", "literature_1_mse")},
    **{name: ModelConfig(loss=name, **SHARED) for name in ("literature_2_mae", "literature_2_mse")},
    **{name: ModelConfig(loss=name, **JOINT) for name in ("point_mse", "energy", "mmd")},
}
OURS = "ours: energy, node"
ELBO_SDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5)
SIGNIFICANT = 0.01


class Losses(Study):
    """The main table: eight losses, and their errors of edge probabilities and predictions, psi trained and known."""

    name = "losses"
    title = "What each loss learns on the 12-node system (the paper's main table)."

    def tasks(self) -> Tasks:
        """One per row and kind of psi."""
        rows = (*PAPER, "ours")
        return {f"{psi}-{row}": partial(self._work, row, psi) for psi in ("learned", "known") for row in rows}

    def _work(self, row: str, psi: str, options: Options, listener: Listener) -> Values:
        system, pairs = CommunitySystem(), paper_pairs(options)
        config, settings = (OUR_MODEL, OUR_SETTINGS) if row == "ours" else (ROWS.get(row, OUR_MODEL), PAPER_SETTINGS)
        chosen, losses, seconds = "", dict[str, float](), 0.0
        if row == "elbo":
            # The setting with the lowest validation loss, from one initialisation of each.
            grid = elbo_grid(system.true_edge_probs)
            for name, one in grid.items():
                listener.stage(f"losses, elbo, {name}: training")
                predictor = predictor_for(system, psi)
                result = train(one, system, pairs, options, listener, predictor=predictor, seeds=[0])
                losses[name] = result.replicas[0].validation_loss
                seconds += result.train_seconds
            chosen = min(losses, key=lambda name: losses[name])
            config = grid[chosen]
        what, predictor = f"losses, {row}, psi {psi}", predictor_for(system, psi)
        _, values = train_and_describe(
            what, config, system, pairs, options, listener, predictor=predictor, settings=settings
        )
        return {**values, "chosen": chosen, "grid": losses, "train_seconds": values["train_seconds"] + seconds}

    def tables(self, records: Records) -> list[Table]:
        """One for each kind of psi; the first includes the values of the paper."""
        titles = {"learned": "psi trained, as the paper's appendix says", "known": "psi frozen at the truth"}
        tables = []
        for psi, title in titles.items():
            rows = {name: records[f"{psi}-{name}"] for name in (*PAPER, "ours")}
            best = {metric: _not_worse_than_the_best(rows, metric) for metric in METRICS}
            lines = []
            for name, values in rows.items():
                cells = [OURS if name == "ours" else name.replace("_", " ")]
                for number, metric in enumerate(METRICS):
                    paper = PAPER.get(name)
                    if psi == "learned":
                        cells.append("–" if paper is None else f"{paper[number][0]:.3f} ± {paper[number][1]:.3f}")
                    text = mean_and_deviation(column(values, metric))
                    cells.append(f"**{text}**" if name in best[metric] else text)
                runs, good = len(values["runs"]), len(good_runs(values))
                kept = values["runs"][values["best"]]["edge_prob_mae"]
                lines.append([*cells, str(good), str(runs - good), f"{kept:.4f}"])
            names = ("MAE on theta", "MAE on y", "MSE on y")
            columns = [c for name in names for c in (("paper: " + name, name) if psi == "learned" else (name,))]
            columns = ["loss", *columns, "good runs", "bad", "kept by validation: MAE on theta"]
            notes = [
                "mean ± deviation over the good runs",
                GOOD_NOTE,
                "bold: not worse than the best row by Welch's test at p < 0.01",
                *quick_note(list(rows.values())),
                *_notes(rows, psi),
            ]
            tables.append(Table(title, columns, lines, notes))
        return tables


def elbo_grid(truth: torch.Tensor) -> dict[str, ModelConfig]:
    """Return the 18 settings of the paper's appendix, by name."""
    informed = tuple(tuple(row) for row in torch.where(truth > 0, 0.75, 0.05).tolist())
    priors: dict[str, Any] = {"0.01": 0.01, "0.5": 0.5, "0.75 on true edges, 0.05 elsewhere": informed}
    return {
        f"prior {name}, sd {sd}": ModelConfig(loss="elbo", prior=prior, likelihood_sd=sd, **JOINT)
        for name, prior in priors.items()
        for sd in ELBO_SDS
    }


def _not_worse_than_the_best(rows: dict[str, Values], metric: str) -> list[str]:
    columns = {name: column(values, metric) for name, values in rows.items() if name != "ours"}
    best = min(columns, key=lambda name: sum(columns[name]) / len(columns[name]))
    p_values = {name: p_value(columns[name], columns[best]) for name in columns}
    return [name for name, p in p_values.items() if name == best or (p is not None and p >= SIGNIFICANT)]


def p_value(first: list[float], second: list[float]) -> float | None:
    """Return the p-value of Welch's test that two rows have the same mean; None with fewer than two runs in one."""
    if min(len(first), len(second)) < 2:
        return None
    if len(set(first)) == 1 and len(set(second)) == 1:
        return float(first[0] == second[0])
    from scipy.stats import ttest_ind  # imported here because it takes half a second

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows whose runs are almost equal
        return float(ttest_ind(first, second, equal_var=False).pvalue)


def _notes(rows: dict[str, Values], psi: str) -> list[str]:
    """Return notes on the claims of the paper, and on numbers that differ from the paper."""
    errors = {name: column(values, "edge_prob_mae") for name, values in rows.items()}
    rivals = [name for name in PAPER if name.startswith("literature") or name == "elbo"]
    against = [p_value(errors[rival], errors[ours]) for rival in rivals for ours in ("mmd", "energy")]
    known = [p for p in against if p is not None]
    if known and len(known) == len(against):
        claims = f"literature losses and ELBO against MMD and energy in MAE on theta: largest p = {max(known):.1g}"
    else:
        claims = "too few good runs to test the literature losses against MMD and energy"
    places = [
        f"against {name.replace('_', ' ')} p = {p:.1g}"
        for name in ("mmd", "energy", "literature_1_mse")
        if (p := p_value(errors["point_mse"], errors[name])) is not None
    ]
    notes = [
        claims,
        f"point MSE in MAE on theta: {', '.join(places) or 'too few good runs'}",
        f"ELBO: {rows['elbo']['chosen']}; of 18 the lowest validation loss, by one initialisation each",
        OPTIMAL_NOTE,
    ]
    if "true edges" in rows["elbo"]["chosen"]:
        notes.append(
            "ELBO: the KL is not divided by the number of pairs, so theta nearly equals its prior, and this "
            "prior contains the truth"
        )
    if psi == "known":
        notes.append(
            "point MSE: with psi known the mean of y identifies theta; the paper has one table, with psi trained"
        )
    return notes


SETTINGS = {
    f"{'with' if baseline == 'paper' else 'without'} baseline, psi {psi}": (baseline, psi)
    for baseline in ("paper", "none")
    for psi in ("known", "learned")
} | {f"ours: energy, node, psi {psi}": ("ours", psi) for psi in ("known", "learned")}
SHOWN_METRICS = {"distribution_loss": "distribution loss", "edge_prob_mae": "MAE on theta", "point_mse": "MSE on y"}
SHOWN_PAIRS, SHOWN_GRAPHS = 500, 200  # for the curve of the MSE; the table uses all test pairs and 1,000 graphs


class Validation(Study):
    """Losses during training: with and without baseline, psi known and learned, mean and deviation."""

    name = "validation"
    title = "Distribution loss, error on theta and point error during training with MMD (the paper's first results)."

    def tasks(self) -> Tasks:
        """One per setting, and the optimal values."""
        settings: Tasks = {_slug(name): partial(self._work, *setting) for name, setting in SETTINGS.items()}
        return {"optimal": self._optimal, **settings}

    def _work(self, baseline: str, psi: str, options: Options, listener: Listener) -> Values:
        system, pairs = CommunitySystem(), paper_pairs(options)
        ours = baseline == "ours"
        config = OUR_MODEL if ours else PAPER_MODEL.model_copy(update={"baseline": baseline})
        shown = PAPER_MODEL.build(system.true_graph(), predictor_for(system, psi)).to(options.torch_device)
        truth = system.true_edge_probs.to(options.torch_device)

        def watch(edge_probs: Tensor, parameters: dict[str, Tensor]) -> dict[str, list[float]]:
            errors = []
            for replica in range(len(edge_probs)):
                put(shown, parameters, replica)
                errors.append(_shown_mse(shown, pairs))
            return {"edge_prob_mae": (edge_probs - truth).abs().mean((1, 2)).tolist(), "point_mse": errors}

        chosen: Values = {"predictor": predictor_for(system, psi), "monitor": watch}
        chosen |= {"settings": OUR_SETTINGS if ours else PAPER_SETTINGS, "loss": shown.loss}  # one loss for all scores
        what = f"validation, baseline {baseline}, psi {psi}"
        return train_and_describe(what, config, system, pairs, options, listener, **chosen)[1]

    def _optimal(self, options: Options, listener: Listener) -> Values:
        listener.stage("validation: optimal values")
        system, pairs = CommunitySystem(), paper_pairs(options)
        truth = PAPER_MODEL.build(system.true_graph(), system.true_predictor()).to(options.torch_device)
        # The same random graphs as for the runs, so that sampling errors cancel.
        generator = generator_for(0, "score", options.torch_device)
        with torch.no_grad():
            test = predictive_metrics(truth, pairs.test, truth.loss, generator=generator)
            validation = predictive_metrics(truth, pairs.validation, truth.loss, generator=generator, point_graphs=64)
            shown = _shown_mse(truth, pairs)
        extra = {"edge_prob_mae": 0.0, "validation_loss": validation["distribution_loss"], "shown_mse": shown}
        return {"optimal": {**test, **extra}, "pairs": len(pairs.train)}

    def tables(self, records: Records) -> list[Table]:
        """The values at the end of training, with the optimal ones."""
        optimal = records["optimal"]["optimal"]
        paper = {"distribution_loss": "about -0.088", "edge_prob_mae": "below 0.01", "point_mse": "0.158"}
        rows = [["paper", *(paper[metric] for metric in SHOWN_METRICS), "–", "8", "–", "–"]]
        shown = {**optimal, "edge_prob_mae": oracle_edge_prob_mae(community_edge_probs(), records["optimal"]["pairs"])}
        rows.append(["optimal", *(f"{shown[metric]:.4f}" for metric in SHOWN_METRICS), "0", "–", "–", "–"])
        for name in SETTINGS:
            values = records[_slug(name)]
            good, kept = len(good_runs(values)), values["runs"][values["best"]]["edge_prob_mae"]
            cells = [mean_and_deviation(column(values, metric)) for metric in SHOWN_METRICS]
            losses = column(values, "distribution_loss")
            above = statistics.mean(losses) - optimal["distribution_loss"]
            excess = f"{above / abs(optimal['distribution_loss']):.2%}"
            if len(losses) > 1 and (spread := statistics.stdev(losses)):
                excess += f", {above / spread:.1f} deviations"
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
        columns = ["setting", *SHOWN_METRICS.values(), "above the least loss", "good runs", "bad", "kept: MAE on theta"]
        return [Table("Losses at the end of training", columns, rows, notes)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """Mean and one deviation over the runs in the good basin, epoch by epoch."""
        papers = [name for name, (baseline, _) in SETTINGS.items() if baseline != "ours"]
        present = {name: records[_slug(name)] for name in papers}
        panels = {
            title: {
                name: [[line[key][run] for line in values["history"]] for run in good_runs(values)]
                for name, values in present.items()
            }
            for key, title in zip(
                ("validation_loss", "edge_prob_mae", "point_mse"), SHOWN_METRICS.values(), strict=True
            )
        }
        epochs = [line["epoch"] for line in next(iter(present.values()))["history"]]
        optimal = records["optimal"]["optimal"]
        lines = {"distribution loss": optimal["validation_loss"], "MSE on y": optimal["shown_mse"]}
        return {"losses": bands(panels, epochs, lines, "epoch")}


def _shown_mse(model: LatentGraphModel, pairs: Split) -> float:
    inputs, targets = pairs.validation.inputs[:SHOWN_PAIRS], pairs.validation.targets[:SHOWN_PAIRS]
    samples = model.sample(inputs, SHOWN_GRAPHS, generator=generator_for(0, "shown", inputs.device))
    return (point_prediction(samples, "mean") - targets).square().mean().item()


ERRORS = (0.05, 0.03, 0.02)
EVERY = 10  # steps between two evaluations
WAYS = {
    "no baseline": PAPER_MODEL.model_copy(update={"baseline": "none"}),
    "paper's baseline": PAPER_MODEL,
    "leave-one-out": PAPER_MODEL.model_copy(update={"baseline": "leave_one_out"}),
    "moving average": PAPER_MODEL.model_copy(update={"baseline": "moving_average"}),
    "DisARM": PAPER_MODEL.model_copy(update={"baseline": "auto", "estimator": "disarm"}),
    "ours: node scope, receptive field": ModelConfig(loss="mmd"),
}


class Variance(Study):
    """Number of steps until each baseline or estimator reaches a given error on theta."""

    name = "variance"
    title = "Steps until the mean absolute error on theta falls below a value, psi known, the paper's schedule."

    def tasks(self) -> Tasks:
        """One per gradient estimator."""
        return {_slug(name): partial(self._work, config) for name, config in WAYS.items()}

    def _work(self, config: ModelConfig, options: Options, listener: Listener) -> Values:
        system, pairs = CommunitySystem(), paper_pairs(options)
        listener.stage(f"variance, {config.estimator}, baseline {config.baseline}: training")
        predictor = system.true_predictor()
        result = train(config, system, pairs, options, listener, predictor=predictor, trace_every=EVERY)
        by_run = zip(*(line["edge_prob_mae"] for line in result.trace), strict=True)
        return {
            "steps_seen": [line["step"] for line in result.trace],
            "errors": [[round(error, 5) for error in line] for line in by_run],
            "train_seconds": result.train_seconds,
        }

    def tables(self, records: Records) -> list[Table]:
        """Steps with their spread, and as a ratio to training without a baseline."""
        rows = []
        base = {error: steps_to(records["no-baseline"], error) for error in ERRORS}
        for name in WAYS:
            values, cells = records[_slug(name)], []
            for error in ERRORS:
                steps = steps_to(values, error)
                reached = [step for step in steps if step is not None]
                if not steps:  # the training was too short for an evaluation
                    cells.append("–")
                elif len(reached) < len(steps):
                    cells.append(f"not reached by {len(steps) - len(reached)} of {len(steps)}")
                else:
                    cell = mean_and_deviation(reached, 0)
                    ratios = [
                        step / other for step, other in zip(reached, base[error], strict=False) if other is not None
                    ]
                    if len(ratios) == len(reached):
                        cell += f" ({mean_and_deviation(ratios, 2)})"
                    cells.append(cell)
            paper = "roughly 50% faster" if name == "paper's baseline" else "–"
            rows.append([name, paper, *cells, str(len(values["errors"]))])
        columns = ["gradient", "paper", *(f"steps to {error}" for error in ERRORS), "runs"]
        notes = [
            f"mean ± deviation over runs, measured every {EVERY} steps; in brackets the ratio to no baseline",
            *quick_note(list(records.values())),
        ]
        return [Table("Steps to a given error", columns, rows, notes)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """The error on theta, step by step."""
        steps = records["no-baseline"]["steps_seen"]
        if not steps:
            return {}
        panels = {"MAE on theta": {name: records[_slug(name)]["errors"] for name in WAYS}}
        return {"errors": bands(panels, steps, {}, "step")}


def steps_to(values: Values, error: float) -> list[int | None]:
    """Return for each run the first evaluated step with an error below ``error``, or None."""
    seen = values["steps_seen"]
    return [next((s for s, e in zip(seen, line, strict=True) if e < error), None) for line in values["errors"]]


def _slug(name: str) -> str:
    return name.replace("'", "").replace(":", "").replace(",", "").replace(" ", "-").lower()
