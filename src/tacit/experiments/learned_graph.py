"""The learned edge probabilities of one training, entry by entry."""

from matplotlib.figure import Figure

from tacit.experiments.replication import (
    GOOD_NOTE,
    PAPER_MODEL,
    column,
    good_runs,
    mean_and_deviation,
    paper_pairs,
    predictor_for,
    quick_note,
    train_and_describe,
)
from tacit.experiments.study import Listener, Options, Records, Study, Table, Task, Values
from tacit.report import heatmap_pair
from tacit.systems import CommunitySystem, community_edge_probs


class LearnedGraph(Study):
    """Learned probabilities and their errors."""

    name = "learned-graph"
    title = "theta and psi learned together with the paper's settings; kept: the run with the lowest validation loss."

    def tasks(self) -> list[Task]:
        """All runs at once."""
        return [Task("runs", _work)]

    def tables(self, records: Records) -> list[Table]:
        """The errors of the runs."""
        values = records["runs"]
        good, kept = good_runs(values), values["runs"][values["best"]]
        row = [
            "below 0.01",
            mean_and_deviation(column(values, "edge_prob_mae")),
            mean_and_deviation(column(values, "edge_prob_max_error"), 3),
            str(len(good)),
            str(len(values["runs"]) - len(good)),
            f"{kept['edge_prob_mae']:.4f}, {kept['edge_prob_max_error']:.3f}",
        ]
        columns = ["paper: MAE on theta", "MAE on theta", "largest error", "good runs", "bad", "kept by validation"]
        return [Table("Learned graph", columns, [row], [GOOD_NOTE, *quick_note([values])])]

    def figures(self, records: Records) -> dict[str, Figure]:
        """Heatmaps of the kept run."""
        return {"heatmaps": heatmap_pair({"theta": records["runs"]["edge_probs"]}, community_edge_probs())}


def _work(options: Options, listener: Listener) -> Values:
    system, pairs = CommunitySystem(), paper_pairs(options)
    predictor = predictor_for(system, "learned")
    return train_and_describe("learned-graph", PAPER_MODEL, system, pairs, options, listener, predictor=predictor)
