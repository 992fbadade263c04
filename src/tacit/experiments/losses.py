"""The paper's main table: eight losses, what each does to the edge probabilities and to the predictions."""

import warnings
from typing import Any

import torch
from matplotlib.figure import Figure

from tacit.config import ModelConfig
from tacit.experiments.published import LOSS_METRICS as METRICS
from tacit.experiments.published import LOSS_TABLE as PAPER
from tacit.experiments.replication import (
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
from tacit.experiments.study import Listener, Options, Records, Table, Task, Values, Work
from tacit.systems import CommunitySystem
from tacit.training import CosineDecay, FitSettings

SHARED: dict[str, Any] = {"num_graphs": 64, "share_graphs": True}
JOINT: dict[str, Any] = {"scope": "joint", "baseline": "paper", **SHARED}
ROWS = {
    **{name: ModelConfig(loss=name, **JOINT) for name in ("literature_1_mae", "literature_1_mse")},
    **{name: ModelConfig(loss=name, **SHARED) for name in ("literature_2_mae", "literature_2_mse")},
    **{name: ModelConfig(loss=name, **JOINT) for name in ("point_mse", "energy", "mmd")},
}
OURS = "ours: energy, node"
OUR_MODEL, OUR_SETTINGS = ModelConfig(), FitSettings(epochs=10, schedule=CosineDecay(0.1))
ELBO_SDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5)
SIGNIFICANT = 0.01


class Losses:
    """Table of losses, psi trained and psi known."""

    name = "losses"
    title = "What each loss learns on the 12-node system (the paper's main table)."

    def tasks(self, options: Options) -> list[Task]:
        """One per row and kind of psi."""
        del options
        return [Task(f"{psi}-{row}", _row(row, psi)) for psi in ("learned", "known") for row in (*PAPER, "ours")]

    def tables(self, records: Records) -> list[Table]:
        """One for each kind of psi; the paper's values stand beside the first."""
        titles = {"learned": "psi trained, as the paper's appendix says", "known": "psi frozen at the truth"}
        found = []
        for psi, title in titles.items():
            rows = {name: records[f"{psi}-{name}"] for name in (*PAPER, "ours") if f"{psi}-{name}" in records}
            if rows:
                found.append(_table(title, rows, psi))
        return found

    def figures(self, records: Records) -> dict[str, Figure]:
        """Nothing to draw."""
        del records
        return {}


def _row(row: str, psi: str) -> Work:
    def work(options: Options, listener: Listener) -> Values:
        system = CommunitySystem()
        pairs = paper_pairs(options)
        settings, config, chosen = PAPER_SETTINGS, OUR_MODEL, ""
        predictor = predictor_for(system, psi)
        if row == "elbo":
            chosen, config = _best_elbo(system, pairs, psi, options, listener)
        elif row == "ours":
            settings = OUR_SETTINGS
        else:
            config = ROWS[row]
        listener.stage(f"losses, {row}, psi {psi}: training")
        result = train(config, system, pairs, options, listener, predictor=predictor, settings=settings)
        listener.stage(f"losses, {row}, psi {psi}: scoring")
        return {**describe(result, system, pairs), "chosen": chosen}

    return work


def elbo_grid(truth: torch.Tensor) -> dict[str, ModelConfig]:
    """Return the 18 settings of the paper's appendix, by name."""
    informed = tuple(tuple(row) for row in torch.where(truth > 0, 0.75, 0.05).tolist())
    priors: dict[str, Any] = {"0.01": 0.01, "0.5": 0.5, "0.75 on true edges, 0.05 elsewhere": informed}
    return {
        f"prior {name}, sd {sd}": ModelConfig(loss="elbo", prior=prior, likelihood_sd=sd, **JOINT)
        for name, prior in priors.items()
        for sd in ELBO_SDS
    }


def _best_elbo(
    system: CommunitySystem, pairs: Any, psi: str, options: Options, listener: Listener
) -> tuple[str, ModelConfig]:
    """Return the setting with the lowest validation loss, by one initialisation of each."""
    grid, losses = elbo_grid(system.true_edge_probs), {}
    for name, config in grid.items():
        listener.stage(f"losses, elbo, {name}: training")
        predictor = predictor_for(system, psi)
        result = train(config, system, pairs, options, listener, predictor=predictor, seeds=[0])
        losses[name] = result.replicas[0].validation_loss
    best = min(losses, key=lambda name: losses[name])
    return best, grid[best]


def _table(title: str, rows: dict[str, Values], psi: str) -> Table:
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
    notes = [
        "mean ± deviation over the runs in the good basin",
        "bold: not worse than the best row by Welch's test at p < 0.01",
        *quick_note(list(rows.values())),
    ]
    if "elbo" in rows:
        notes.append(f"ELBO: {rows['elbo']['chosen']}, chosen of 18 by validation loss")
    if {"mmd", "point_mse", "literature_1_mse"} <= set(rows):
        notes.append(_place_of_point_mse(rows))
    return Table(title, ["loss", *columns, "good runs", "bad", "kept by validation: MAE on theta"], lines, notes)


def _not_worse_than_the_best(rows: dict[str, Values], metric: str) -> list[str]:
    columns = {name: column(values, metric) for name, values in rows.items() if name != "ours"}
    best = min(columns, key=lambda name: sum(columns[name]) / len(columns[name]))
    return [name for name in columns if name == best or _p_value(columns[name], columns[best]) >= SIGNIFICANT]


def _p_value(first: list[float], second: list[float]) -> float:
    """Return the p-value of Welch's test that two rows have the same mean; 1 where it cannot be had."""
    if min(len(first), len(second)) < 2 or (len(set(first)) == 1 and len(set(second)) == 1):
        return 1.0 if sum(first) / len(first) == sum(second) / len(second) else float(min(len(first), len(second)) < 2)
    from scipy.stats import ttest_ind  # half a second to import, for this alone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows whose runs are all but equal
        return float(ttest_ind(first, second, equal_var=False).pvalue)


def _place_of_point_mse(rows: dict[str, Values]) -> str:
    column_of = {name: column(rows[name], "edge_prob_mae") for name in ("mmd", "point_mse", "literature_1_mse")}
    against = {name: _p_value(column_of["point_mse"], column_of[name]) for name in ("mmd", "literature_1_mse")}
    return (
        "point MSE in MAE on theta: against MMD p = "
        f"{against['mmd']:.2g}, against literature 1 MSE p = {against['literature_1_mse']:.2g}"
    )
