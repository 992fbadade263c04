"""The effect of the number of graphs per pair: final losses and errors for 2 to 64 graphs."""

from functools import partial
from itertools import product

from tacit.config import ModelConfig
from tacit.experiments.replication import (
    column,
    mean_and_deviation,
    paper_pairs,
    quick_note,
    train_and_describe,
)
from tacit.experiments.study import Listener, Options, Records, Study, Table, Task, Values
from tacit.systems import CommunitySystem

NUMBERS = (2, 4, 8, 16, 32, 64)
LOSSES = ("mmd", "energy")
METRICS = {
    "distribution_loss": "distribution loss",
    "edge_prob_mae": "MAE on theta",
    "edge_prob_max_error": "largest error",
    "point_mse": "MSE on y",
}
MOST_RUNS = 3  # 64 graphs for each of 128 pairs are slow, and runs hardly differ


class NumGraphs(Study):
    """Numbers of graphs per pair."""

    name = "num-graphs"
    title = "psi known, graphs drawn separately for each pair, joint scope: the effect of more graphs."

    def tasks(self) -> list[Task]:
        """One per loss and number."""
        return [Task(f"{loss}-{number:02}", partial(_work, loss, number)) for loss in LOSSES for number in NUMBERS]

    def tables(self, records: Records) -> list[Table]:
        """All losses and numbers."""
        rows = []
        for loss, number in product(LOSSES, NUMBERS):
            values = records[f"{loss}-{number:02}"]
            cells = [mean_and_deviation(column(values, metric, good=False)) for metric in METRICS]
            rows.append([loss, str(number), *cells])
        notes = [
            "in the paper 16 or more graphs give equivalent losses; the error on theta decreases further",
            f"at most {MOST_RUNS} runs each: 64 graphs for each of 128 pairs are slow, and runs hardly differ",
            *quick_note(list(records.values())),
        ]
        return [Table("Graphs per pair", ["loss", "graphs per pair", *METRICS.values()], rows, notes)]


def _work(loss: str, number: int, options: Options, listener: Listener) -> Values:
    system, pairs = CommunitySystem(), paper_pairs(options)
    config = ModelConfig(loss=loss, scope="joint", baseline="paper", num_graphs=number)
    chosen: Values = {"predictor": system.true_predictor(), "seeds": range(min(options.seeds, MOST_RUNS))}
    return train_and_describe(
        f"num-graphs, {loss}, {number} graphs", config, system, pairs, options, listener, **chosen
    )
