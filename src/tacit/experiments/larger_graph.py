"""A graph of 120 nodes: all 14,400 edge probabilities from the same number of pairs."""

from matplotlib.figure import Figure

from tacit.config import ModelConfig
from tacit.experiments.replication import column, mean_and_deviation, paper_pairs, quick_note, train_and_describe
from tacit.experiments.study import Listener, Options, Records, Study, Table, Task, Values
from tacit.report import heatmap_pair
from tacit.systems import CommunitySystem, community_edge_probs
from tacit.training import CosineDecay, FitSettings

COMMUNITIES, QUICK_COMMUNITIES = 20, 5
MOST_RUNS = 1  # because a run takes minutes on two cores
MODEL = ModelConfig(loss="mmd", num_graphs=32, share_graphs=True)
# No lower limit of the probabilities: with 120 sources at 0.02 each, a node would have two extra sources on average. On
# an H200 (one run each) the error was 0.00230 with a limit and 0.00186 without.
SETTINGS = FitSettings(epochs=5, schedule=CosineDecay(0.1), min_draws_per_edge=0.0)


class LargerGraph(Study):
    """120 nodes."""

    name = "larger-graph"
    title = "20 communities, 120 nodes, 35,000 pairs, psi known, MMD at node scope."

    def tasks(self) -> list[Task]:
        """One training."""
        return [Task("run", _work)]

    def tables(self, records: Records) -> list[Table]:
        """The error over all entries."""
        values = records["run"]
        row = [
            str(values["nodes"]),
            "0.003" if values["nodes"] == 120 else "–",
            mean_and_deviation(column(values, "edge_prob_mae", good=False), 5),
            mean_and_deviation(column(values, "edge_prob_max_error", good=False), 3),
            str(len(values["runs"])),
            f"{values['train_seconds']:.0f} s",
        ]
        columns = ["nodes", "paper: MAE on theta", "MAE on theta", "largest error", "runs", "training"]
        notes = ["node scope, five epochs, one run", *quick_note([values])]
        return [Table("Larger graph", columns, [row], notes)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """Heatmap of all entries."""
        communities = records["run"]["nodes"] // 6
        return {"heatmaps": heatmap_pair({"theta": records["run"]["edge_probs"]}, community_edge_probs(communities))}


def _work(options: Options, listener: Listener) -> Values:
    system = CommunitySystem(community_edge_probs(QUICK_COMMUNITIES if options.quick else COMMUNITIES))
    listener.stage("larger-graph: drawing pairs")
    pairs = paper_pairs(options, system)
    seeds = range(min(options.seeds, MOST_RUNS))
    chosen: Values = {"predictor": system.true_predictor(), "settings": SETTINGS, "seeds": seeds}
    values = train_and_describe("larger-graph", MODEL, system, pairs, options, listener, **chosen)
    return {**values, "nodes": system.num_nodes}
