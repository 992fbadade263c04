"""Lorenz-96 and VAR systems of ten nodes: the graph behind short series, beside ridge and lasso."""

from pathlib import Path

import torch
from benchmarks.studies.known_data import KnownGraph, read_lorenz96_var
from benchmarks.studies.known_graph_tables import (
    method_rankings,
    ranking_cells,
    strips,
)
from benchmarks.studies.known_graphs import Problem, blockwise_errors, compare, sparse
from matplotlib.figure import Figure

from tacit.data.regression import RIDGE_PENALTIES, ridge_path
from tacit.errors import require
from tacit.experiments.replication import quick_note
from tacit.experiments.study import Listener, Options, Records, Study, Table, Tasks, Values, Work

SYSTEMS = {"F_10": "Lorenz-96, F = 10", "F_40": "Lorenz-96, F = 40", "S_30": "VAR"}
LENGTHS = {"F_10": (250, 500, 1000), "F_40": (250, 500), "S_30": (500, 1000)}
GROUPS = [f"{system}_T_{length}" for system, lengths in LENGTHS.items() for length in lengths]
WINDOWS = (1, 2, 3, 5)  # lags to choose from
NEIGHBOURS = 1.0  # that a node is expected to read, in every system
MOST_SEEDS = 3

RANKINGS = ("auroc", "aupr")
METHODS = ("mean of the starts", "ridge", "lasso")


class Lorenz96(Study):
    """Rankings of edges against the graphs of the simulation."""

    name = "lorenz96"
    title = "Lorenz-96 and VAR systems of Khanna and Tan: edges found from short series, compared with ridge and lasso."
    needs_data = "the folder of the Lorenz-96 and VAR sets, with F_10_T_250_dataset_1.npz and the like"

    def tasks(self) -> Tasks:
        """One per system and length, with its series in it."""
        return {group: _work(group) for group in GROUPS}

    def tables(self, records: Records) -> list[Table]:
        """How well the edges are ranked, for each system and length."""
        rows = []
        for group in (group for group in GROUPS if group in records):
            series = records[group]["series"]
            system, length = group.split("_T_")
            lags = sorted({one["window"] for one in series})
            setting = [SYSTEMS[system], length, ", ".join(map(str, lags)), str(len(series))]
            rankings = method_rankings(series)
            rows.append([*setting, *(" / ".join(ranking_cells(rankings[name], RANKINGS)) for name in METHODS)])
        notes = [
            "mean ± deviation over series; a weight and a gate per edge and lag, "
            "noise per node; no method in this table can express the products of neighbours of Lorenz-96",
            f"the prior follows from {NEIGHBOURS:g} expected source of a node and from the residuals of ridge; all "
            f"methods read the same lags, of {', '.join(map(str, WINDOWS))} those with the least error of ridge where "
            "a fifth of the pairs at a time is left out",
            "the ranking is right, but hardly any theta is above 0.5: its values are not probabilities of existence; "
            "use `exists` for those (EXISTENCE.md)",
            *quick_note(list(records.values())),
        ]
        return [Table("Lorenz-96 and VAR: AUROC / AUPR", ["system", "steps", "lags", "series", *METHODS], rows, notes)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """Probabilities on true edges and elsewhere, for the first series of each group."""
        first = {group.replace("_T_", "\n"): records[group]["series"][0] for group in GROUPS if group in records}
        return {"probabilities": strips(first, "system and steps")} if first else {}


def chosen_window(known: KnownGraph) -> int:
    """Return the number of lags with the least error of a ridge regression on blocks that were left out."""
    longest = Problem.of(known, max(WINDOWS))
    errors = [blockwise_errors(longest.newest(window).pairs, ridge_path, RIDGE_PENALTIES).min() for window in WINDOWS]
    return WINDOWS[int(torch.stack(errors).argmin())]


def _work(group: str) -> Work:
    def work(options: Options, listener: Listener) -> Values:
        paths = sorted(Path(str(options.data)).glob(f"{group}_dataset_*.npz"))
        require(len(paths) > 0, f"data must be files {group}_dataset_*.npz, got none in {options.data}; correct --data")
        series = []
        for path in paths[:1] if options.quick else paths:
            listener.stage(f"lorenz96, {path.stem}")
            known = read_lorenz96_var(path)
            problem = Problem.of(known, chosen_window(known))
            found = compare(problem, sparse(NEIGHBOURS), options, listener, most_seeds=MOST_SEEDS)
            series.append({"file": path.stem, **found})
        return {"series": series, "train_seconds": sum(one["train_seconds"] for one in series)}

    return work
