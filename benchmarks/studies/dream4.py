"""DREAM4: who regulates whom among ten and among a hundred genes, beside ridge and lasso."""

from dataclasses import dataclass

from benchmarks.studies.known_data import read_dream4
from benchmarks.studies.known_graph_tables import (
    RANKING_COLUMNS,
    RANKING_NOTE,
    method_rankings,
    ranking_cells,
    strips,
)
from benchmarks.studies.known_graphs import PriorRule, Problem, compare, sparse
from matplotlib.figure import Figure

from tacit.experiments.replication import quick_note
from tacit.experiments.study import Listener, Options, Records, Study, Table, Tasks, Values, Work

NETWORKS, QUICK_NETWORKS = range(1, 6), range(1, 2)
WINDOW = 1  # the change of a gene is a function of the present values: a differential equation
REGULATORS = 1.0  # expected of a gene, in every network


@dataclass(frozen=True)
class Setting:
    """Networks of one size under one prior, and from how many starts at most."""

    size: int
    prior: PriorRule
    said: str
    most_seeds: int = 8


MAIN = {
    "size10": Setting(10, sparse(REGULATORS), "1"),
    "size100": Setting(100, sparse(REGULATORS), "1", most_seeds=2),
}
OTHERS = {
    "size10-half": Setting(10, sparse(0.5), "1/2"),
    "size10-two": Setting(10, sparse(2), "2"),
    "size10-free": Setting(10, sparse(REGULATORS, weights_cost=False), "1, weights free"),
}
SETTINGS = MAIN | OTHERS


class DREAM4(Study):
    """Rankings of edges against the gold standard."""

    name = "dream4"
    title = "DREAM4 gene networks: edges found from time series alone, compared with ridge and lasso."
    needs_data = "the folder of DREAM4, with insilico_size10_1_timeseries.tsv and the like"

    def tasks(self) -> Tasks:
        """One per size and prior, with the five networks in it."""
        return {name: _work(setting) for name, setting in SETTINGS.items()}

    def tables(self, records: Records) -> list[Table]:
        """How well the edges are ranked. What another prior would have given is in the records only."""
        return [_main_table(setting.size, records[name]) for name, setting in MAIN.items() if name in records]

    def figures(self, records: Records) -> dict[str, Figure]:
        """Probabilities on true edges and elsewhere, for each network of ten genes."""
        networks = records["size10"]["networks"] if "size10" in records else []
        return {"probabilities": strips({str(one["network"]): one for one in networks}, "network")} if networks else {}


def _main_table(size: int, values: Values) -> Table:
    networks = values["networks"]
    rows = [[method, *ranking_cells(found), str(len(found))] for method, found in method_rankings(networks).items()]
    notes = [
        "mean ± deviation over networks; a weight and a gate per edge, one lag, noise per gene",
        f"the prior follows from {REGULATORS:g} expected regulator of a gene, the same for all networks, and from "
        "the residuals of ridge; starts and steps were chosen on simulated networks",
        RANKING_NOTE,
        "ridge and lasso: penalty by leaving out a fifth of the pairs at a time",
        *quick_note([values]),
    ]
    return Table(f"DREAM4, {size} genes", ["method", *RANKING_COLUMNS, "runs"], rows, notes)


def _work(setting: Setting) -> Work:
    def work(options: Options, listener: Listener) -> Values:
        networks = []
        for number in QUICK_NETWORKS if options.quick else NETWORKS:
            listener.stage(f"dream4, {setting.size} genes, prior {setting.said}, network {number}")
            problem = Problem.of(read_dream4(str(options.data), setting.size, number), WINDOW)
            found = compare(problem, setting.prior, options, listener, most_seeds=setting.most_seeds)
            networks.append({"network": number, **found})
        return {"networks": networks, "train_seconds": sum(one["train_seconds"] for one in networks)}

    return work
