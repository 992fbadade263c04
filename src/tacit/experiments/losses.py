"""The main table of the paper: eight losses, and their errors of edge probabilities and predictions."""

import warnings
from functools import partial
from typing import Any

import torch

from tacit.config import ModelConfig
from tacit.experiments.replication import (
    GOOD_NOTE,
    OUR_MODEL,
    OUR_SETTINGS,
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
from tacit.experiments.study import LOSS_METRICS as METRICS
from tacit.experiments.study import LOSS_TABLE as PAPER
from tacit.experiments.study import OPTIMAL_NOTE, Listener, Options, Records, Study, Table, Task, Values
from tacit.systems import CommunitySystem

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
    """Table of losses, psi trained and psi known."""

    name = "losses"
    title = "What each loss learns on the 12-node system (the paper's main table)."

    def tasks(self) -> list[Task]:
        """One per row and kind of psi."""
        return [
            Task(f"{psi}-{row}", partial(_row, row, psi)) for psi in ("learned", "known") for row in (*PAPER, "ours")
        ]

    def tables(self, records: Records) -> list[Table]:
        """One for each kind of psi; the first includes the values of the paper."""
        titles = {"learned": "psi trained, as the paper's appendix says", "known": "psi frozen at the truth"}
        names = (*PAPER, "ours")
        return [_table(title, {name: records[f"{psi}-{name}"] for name in names}, psi) for psi, title in titles.items()]


def _row(row: str, psi: str, options: Options, listener: Listener) -> Values:
    system = CommunitySystem()
    pairs = paper_pairs(options)
    settings, config, chosen = PAPER_SETTINGS, OUR_MODEL, ""
    grid: Values = {"losses": {}, "train_seconds": 0.0}
    predictor = predictor_for(system, psi)
    if row == "elbo":
        chosen, config, grid = _best_elbo(system, pairs, psi, options, listener)
    elif row == "ours":
        settings = OUR_SETTINGS
    else:
        config = ROWS[row]
    listener.stage(f"losses, {row}, psi {psi}: training")
    result = train(config, system, pairs, options, listener, predictor=predictor, settings=settings)
    listener.stage(f"losses, {row}, psi {psi}: scoring")
    values = {**describe(result, system, pairs), "chosen": chosen, "grid": grid["losses"]}
    return {**values, "train_seconds": values["train_seconds"] + grid["train_seconds"]}


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
) -> tuple[str, ModelConfig, Values]:
    """Return the setting with the lowest validation loss, from one initialisation of each, and the results of all."""
    grid, losses, seconds = elbo_grid(system.true_edge_probs), {}, 0.0
    for name, config in grid.items():
        listener.stage(f"losses, elbo, {name}: training")
        predictor = predictor_for(system, psi)
        result = train(config, system, pairs, options, listener, predictor=predictor, seeds=[0])
        losses[name] = result.replicas[0].validation_loss
        seconds += result.train_seconds
    best = min(losses, key=lambda name: losses[name])
    return best, grid[best], {"losses": losses, "train_seconds": seconds}


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
        "mean ± deviation over the good runs",
        GOOD_NOTE,
        "bold: not worse than the best row by Welch's test at p < 0.01",
        *quick_note(list(rows.values())),
        *_notes(rows, psi),
    ]
    return Table(title, ["loss", *columns, "good runs", "bad", "kept by validation: MAE on theta"], lines, notes)


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
