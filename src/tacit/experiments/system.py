"""The synthetic system of the paper: its graph, its edge probabilities and its optimal scores."""

import math
import statistics

from matplotlib.figure import Figure

from tacit.assessment.evaluation import predictive_metrics
from tacit.experiments.replication import NUM_PAIRS, PAPER_MODEL, QUICK_PAIRS, quick_note
from tacit.experiments.study import OPTIMAL_NOTE, Listener, Options, Records, Study, Table, Task, Values
from tacit.randomness import generator_for
from tacit.report import PROBABILITY_COLOURS
from tacit.systems import COMMUNITY_EDGES, NODES_PER_COMMUNITY, CommunitySystem, community_edge_probs

PAPER = {"point_mse": "0.158", "point_mae": "0.267", "distribution_loss": "about -0.088"}
TITLES = {"point_mse": "optimal MSE", "point_mae": "optimal MAE", "distribution_loss": "least distribution loss"}
# Positions of the six nodes: a triangle with three nodes on its lower side, as in the paper.
PLACES = ((0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (0.5, 0.87), (1.5, 0.87), (1.0, 1.73))
PARTS = 10  # number of parts of the pairs, for standard errors


class System(Study):
    """The system and its optimal values."""

    name = "system"
    title = "Communities of six nodes; both directions of every edge drawn, and every self-loop, have theta* = 0.75."

    def tasks(self) -> list[Task]:
        """One task, which samples and trains nothing."""
        return [Task("optimal", _work)]

    def tables(self, records: Records) -> list[Table]:
        """Optimal values with their standard errors."""
        rows = []
        for key, title in TITLES.items():
            parts = records["optimal"]["parts"][key]
            error = statistics.stdev(parts) / math.sqrt(len(parts))
            rows.append(
                [title, PAPER[key], f"{statistics.mean(parts):.4f}", f"{error:.4f}", str(records["optimal"]["pairs"])]
            )
        notes = [
            OPTIMAL_NOTE,
            *quick_note(list(records.values())),
        ]
        return [Table("Optimal values by sampling", ["value", "paper", "ours", "standard error", "pairs"], rows, notes)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """The graph of three communities and theta* of two."""
        del records
        return {"communities": _communities(3), "true-edge-probs": _matrix()}


def _work(options: Options, listener: Listener) -> Values:
    system = CommunitySystem()
    truth = PAPER_MODEL.build(system.true_graph(), system.true_predictor()).to(options.torch_device)
    size = (QUICK_PAIRS if options.quick else NUM_PAIRS) // PARTS
    parts: dict[str, list[float]] = {key: [] for key in TITLES}
    for part in range(PARTS):
        listener.stage(f"system: sampling part {part + 1} of {PARTS}")
        pairs = system.generate(size, seed=1000 + part).to(options.torch_device)
        generator = generator_for(part, "system study", options.torch_device)
        scores = predictive_metrics(truth, pairs, truth.loss, generator=generator)
        for key in TITLES:
            parts[key].append(scores[key])
    return {"parts": parts, "pairs": size * PARTS}


def _communities(count: int) -> Figure:
    figure = Figure(figsize=(2.3 * count, 2.2), layout="constrained")
    axis = figure.subplots()
    places = [(x + 3.0 * community, y) for community in range(count) for x, y in PLACES]
    for start in range(0, NODES_PER_COMMUNITY * count, NODES_PER_COMMUNITY):
        edges = [(start + i, start + j) for i, j in COMMUNITY_EDGES] + ([(start - 1, start)] if start else [])
        for i, j in edges:
            axis.plot(*zip(places[i], places[j], strict=True), color="#e69f00", linewidth=2, zorder=1)
    for node, (x, y) in enumerate(places):
        axis.scatter([x], [y], s=180, color="white", edgecolors="black", zorder=2)
        axis.annotate(str(node), (x, y), ha="center", va="center", fontsize=8, zorder=3)
    axis.set_aspect("equal")
    axis.margins(0.08)
    axis.axis("off")
    return figure


def _matrix() -> Figure:
    figure = Figure(figsize=(3.4, 3.0), layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(community_edge_probs().numpy(), cmap=PROBABILITY_COLOURS, vmin=0, vmax=1)
    axis.set(title="true edge probability", xlabel="source", ylabel="target")
    figure.colorbar(image, ax=axis, shrink=0.8)
    return figure
