"""The paper's other trainings: wrong or other predictors, a wrong graph distribution, more nodes, more graphs."""

from functools import partial
from itertools import product

import torch
from matplotlib.figure import Figure

from tacit.config import ModelConfig
from tacit.experiments.replication import (
    GOOD_NOTE,
    PAPER_MODEL,
    column,
    good_runs,
    mean_and_deviation,
    paper_pairs,
    predictor_for,
    quick_note,
    rounded,
    train_and_describe,
)
from tacit.experiments.study import Listener, Options, Records, Study, Table, Tasks, Values
from tacit.graph import BernoulliGraph
from tacit.predictors import ConvolutionStack
from tacit.randomness import generator_for
from tacit.report import heatmap_pair
from tacit.systems import NODES_PER_COMMUNITY, CommunitySystem, community_edge_probs
from tacit.training import CosineDecay, FitSettings

# The paper's table: largest perturbation, mean error and largest error with their deviations.
PERTURBED = {
    0.0: ((0.009, 0.001), (0.06, 0.01)),
    0.1: ((0.010, 0.001), (0.07, 0.01)),
    0.2: ((0.012, 0.004), (0.08, 0.02)),
    0.5: ((0.028, 0.011), (0.16, 0.06)),
    0.8: ((0.047, 0.009), (0.28, 0.06)),
}


class Perturbed(Study):
    """The effect of errors in psi: edge probabilities learned with a predictor that is fixed at a perturbed truth."""

    name = "perturbed"
    title = "psi fixed at (1 + delta) psi*, delta uniform up to a largest perturbation, a new one for each run."

    def tasks(self) -> Tasks:
        """One per size of the perturbation; the runs are replicas, each with its own psi."""
        return {f"up-to-{size}": partial(self._work, size) for size in PERTURBED}

    def _work(self, size: float, options: Options, listener: Listener) -> Values:
        system, pairs = CommunitySystem(), paper_pairs(options)
        stack = []
        for seed in range(options.seeds):
            generator = generator_for(seed, f"perturbation {size}")
            delta = size * (2 * torch.rand(system.hop_weights.shape, generator=generator) - 1)
            stack.append((1 + delta) * system.hop_weights)
        constants = {"predictor.hop_weights": torch.stack(stack).to(options.torch_device)}
        chosen: Values = {"predictor": system.true_predictor(), "constants": constants}
        return train_and_describe(f"perturbed up to {size}", PAPER_MODEL, system, pairs, options, listener, **chosen)[1]

    def tables(self, records: Records) -> list[Table]:
        """The table of the paper with the values of tacit."""
        rows = []
        for size, ((error, error_sd), (largest, largest_sd)) in PERTURBED.items():
            values = records[f"up-to-{size}"]
            ours = [column(values, f"edge_prob_{kind}", good=False) for kind in ("mae", "max_error")]
            means = [sum(one) / len(one) for one in ours]
            fits = means[0] <= error + 2 * error_sd and means[1] <= largest + 2 * largest_sd
            cells = [f"{error:.3f} ± {error_sd:.3f}", mean_and_deviation(ours[0])]
            cells += [f"{largest:.2f} ± {largest_sd:.2f}", mean_and_deviation(ours[1], 2)]
            rows.append([f"{size}", *cells, str(len(ours[0])), "yes" if fits else "no"])
        columns = ["perturbation up to", "paper: MAE on theta", "MAE on theta", "paper: largest error", "largest error"]
        notes = quick_note(list(records.values()))
        return [Table("Perturbed psi", [*columns, "runs", "within two deviations, or better"], rows, notes)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """Learned probabilities and errors of the first run; each run has its own psi, so no run is the best."""
        rows = {f"up to {size}": records[f"up-to-{size}"]["first_edge_probs"] for size in PERTURBED}
        return {"heatmaps": heatmap_pair(rows, community_edge_probs())}


TOUCHED, WRONG, START = (2, 3), 0.25, (0.0, 0.1)
STAYS_RIGHT = 0.012  # a third more than MMD's error on the right distribution in the paper


def masks() -> dict[str, torch.Tensor]:
    """Return the sets of entries to which the claims refer."""
    truth = community_edge_probs() > 0
    node = torch.arange(len(truth))
    touched = torch.isin(node, torch.tensor(TOUCHED))
    second = node >= NODES_PER_COMMUNITY
    held = truth & (touched[:, None] | touched[None])
    elsewhere = second[:, None] | second[None]
    return {
        "fixed at 0.25": held,
        "free, an end in the second community": elsewhere,
        "free and true, first community": truth & ~held & ~elsewhere,
        "free and spurious, first community": ~truth & ~elsewhere,
        "free and spurious, second community": ~truth & second[:, None] & second[None],
    }


class Misconfigured(Study):
    """A graph distribution that is partly wrong: the true entries that touch two nodes are fixed at 0.25."""

    name = "misconfigured"
    title = "psi true, the 14 true entries that touch nodes 2 and 3 fixed at 0.25 instead of 0.75, the rest learned."

    def tasks(self) -> Tasks:
        """All runs at once."""
        return {"runs": self._work}

    def _work(self, options: Options, listener: Listener) -> Values:
        system, pairs = CommunitySystem(), paper_pairs(options)
        held = masks()["fixed at 0.25"]
        graph = BernoulliGraph(torch.where(held, WRONG, START[1]), fixed=held, initial_range=START)
        chosen: Values = {"predictor": system.true_predictor(), "graph": graph}
        result, values = train_and_describe("misconfigured", PAPER_MODEL, system, pairs, options, listener, **chosen)
        probs = result.model.graph.probs_from(result.parameters["graph.edge_logits"])
        return {**values, "all_edge_probs": [rounded(p) for p in probs]}

    def tables(self, records: Records) -> list[Table]:
        """Mean error and mean probability in each set of entries."""
        rows, truth = [], community_edge_probs()
        probs = torch.tensor(records["runs"]["all_edge_probs"])  # (run, node, node)
        for name, mask in masks().items():
            error = [(p - truth).abs()[mask].mean().item() for p in probs]
            mean = [p[mask].mean().item() for p in probs]
            true_mean = f"{truth[mask].mean().item():.3f}"
            count = str(int(mask.sum()))
            rows.append([name, count, mean_and_deviation(error), mean_and_deviation(mean), true_mean, str(len(probs))])
        columns = ["entries", "how many", "MAE on theta", "mean probability", "true mean", "runs"]
        by_set = {name: float(probs[:, mask].mean()) for name, mask in masks().items()}
        right = float((probs - truth).abs()[:, masks()["free, an end in the second community"]].mean())
        rise = by_set["free and true, first community"]
        spurious = [by_set[f"free and spurious, {place} community"] for place in ("first", "second")]
        notes = [
            f"the paper: entries with an end in the second community stay correct. MAE {right:.4f}: "
            + _yes(right <= STAYS_RIGHT),
            f"the paper: free true entries of the first community compensate. Mean {rise:.2f} instead of 0.75: "
            + _yes(rise > community_edge_probs().max()),
            "the paper: spurious entries of the first community are less certain. Mean "
            f"{spurious[0]:.2f} against {spurious[1]:.2f} in the second: " + _yes(spurious[0] > 2 * spurious[1]),
            *quick_note(list(records.values())),
        ]
        return [Table("Misconfigured distribution", columns, rows, notes)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """Learned probabilities and errors of one run."""
        return {"heatmaps": heatmap_pair({"misconfigured": records["runs"]["edge_probs"]}, community_edge_probs())}


def _yes(holds: bool | torch.Tensor) -> str:
    return "holds" if bool(holds) else "does not hold"


# The paper's table: layer widths, and whether training converged.
STACKS = {
    (4, 1): False,
    (4, 1, 1): False,
    (4, 2, 1): True,
    (4, 8, 1): True,
    (4, 8, 2, 1): True,
    (4, 16, 8, 1): True,
    (4, 32, 8, 1): True,
    (4, 64, 8, 1): True,
    (4, 64, 16, 1): True,
    (4, 64, 32, 1): True,
    (4, 8, 8, 4, 1): True,
}
STACK_MODEL = ModelConfig(loss="energy", scope="joint", num_graphs=16, share_graphs=True)
# No lower limit of the probabilities: with one, the errors of the good runs of most stacks were larger (0.035 to 0.047
# off the diagonal instead of 0.030 to 0.043, 8 runs each on an H200).
STACK_SETTINGS = FitSettings(
    epochs=10, schedule=CosineDecay(0.05), predictor_learning_rate=0.01, min_draws_per_edge=0.0
)
CONVERGED_MSE, CONVERGED_ERROR = 0.19, 0.11


class GenericGNN(Study):
    """Predictors of another family than the system: stacks of graph convolutions, trained together with theta."""

    name = "generic-gnn"
    title = (
        "f is a stack of graph convolutions (Morris et al.) with tanh on the output; it adds self-loops itself, so the "
        "diagonal of theta is not identifiable."
    )

    def tasks(self) -> Tasks:
        """One per list of widths."""
        return {_slug(widths): partial(self._work, widths) for widths in STACKS}

    def _work(self, widths: tuple[int, ...], options: Options, listener: Listener) -> Values:
        system, pairs = CommunitySystem(), paper_pairs(options)
        predictor = ConvolutionStack.random(widths, self_loops=True, generator=generator_for(0, "stack"))
        what = f"generic-gnn, {list(widths)}"
        chosen: Values = {"predictor": predictor, "settings": STACK_SETTINGS}
        result, values = train_and_describe(what, STACK_MODEL, system, pairs, options, listener, **chosen)
        probs = result.model.graph.probs_from(result.parameters["graph.edge_logits"]).cpu()
        off = ~torch.eye(system.num_nodes, dtype=torch.bool)
        errors = [(p - system.true_edge_probs).abs()[off].mean().item() for p in probs]
        return {**values, "off_diagonal": errors}

    def tables(self, records: Records) -> list[Table]:
        """Errors on and off the diagonal of the kept run, and whether it converged."""
        rows = []
        for widths, converges in STACKS.items():
            values = records[_slug(widths)]
            runs, kept = values["runs"], values["runs"][values["best"]]
            converged = kept["point_mse"] < CONVERGED_MSE and kept["edge_prob_mae"] < CONVERGED_ERROR
            good = [number for number, run in enumerate(runs) if run["edge_prob_mae"] < CONVERGED_ERROR]
            cells = {
                "widths": str(list(widths)),
                "paper: converges": "yes" if converges else "no",
                "converges": "yes" if converged else "no",
                "MAE on theta": f"{kept['edge_prob_mae']:.4f}",
                "off the diagonal": f"{values['off_diagonal'][values['best']]:.4f}",
                "off the diagonal, good runs": mean_and_deviation([values["off_diagonal"][number] for number in good]),
                "MSE on y": f"{kept['point_mse']:.4f}",
                "good runs": f"{len(good)} of {len(runs)}",
            }
            rows.append(list(cells.values()))
        notes = [
            "of eight runs, the one with the lowest validation loss; converged: MAE on theta below 0.11, as in the "
            "paper, and MSE below 0.19; good runs have an MAE below 0.11",
            "settings, which are not the paper's: energy score at joint scope, 16 graphs shared by the batch, ten "
            "epochs with cosine decay from 0.05, a fifth of that rate for the stack",
            "the paper reports less than 0.03 off the diagonal for its worst model; narrow stacks here are above it",
            *quick_note(list(records.values())),
        ]
        return [Table("Generic predictors", list(cells), rows, notes)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """Learned probabilities of some stacks."""
        chosen = ((4, 1), (4, 8, 1), (4, 64, 32, 1))
        rows = {str(list(widths)): records[_slug(widths)]["edge_probs"] for widths in chosen}
        return {"heatmaps": heatmap_pair(rows, community_edge_probs())}


def _slug(widths: tuple[int, ...]) -> str:
    return "-".join(map(str, widths))


class LearnedGraph(Study):
    """The learned edge probabilities of one training, entry by entry."""

    name = "learned-graph"
    title = "theta and psi learned together with the paper's settings; kept: the run with the lowest validation loss."

    def tasks(self) -> Tasks:
        """All runs at once."""
        return {"runs": self._work}

    def _work(self, options: Options, listener: Listener) -> Values:
        system, pairs = CommunitySystem(), paper_pairs(options)
        chosen: Values = {"predictor": predictor_for(system, "learned")}
        return train_and_describe("learned-graph", PAPER_MODEL, system, pairs, options, listener, **chosen)[1]

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


COMMUNITIES, QUICK_COMMUNITIES = 20, 5
LARGER_RUNS = 1  # because a run takes minutes on two cores
LARGER_MODEL = ModelConfig(loss="mmd", num_graphs=32, share_graphs=True)
# No lower limit of the probabilities: with 120 sources at 0.02 each, a node would have two extra sources on average. On
# an H200 (one run each) the error was 0.00230 with a limit and 0.00186 without.
LARGER_SETTINGS = FitSettings(epochs=5, schedule=CosineDecay(0.1), min_draws_per_edge=0.0)


class LargerGraph(Study):
    """A graph of 120 nodes: all 14,400 edge probabilities from the same number of pairs."""

    name = "larger-graph"
    title = "20 communities, 120 nodes, 35,000 pairs, psi known, MMD at node scope."

    def tasks(self) -> Tasks:
        """One training."""
        return {"run": self._work}

    def _work(self, options: Options, listener: Listener) -> Values:
        system = CommunitySystem(community_edge_probs(QUICK_COMMUNITIES if options.quick else COMMUNITIES))
        listener.stage("larger-graph: drawing pairs")
        pairs = paper_pairs(options, system)
        seeds = range(min(options.seeds, LARGER_RUNS))
        chosen: Values = {"predictor": system.true_predictor(), "settings": LARGER_SETTINGS, "seeds": seeds}
        _, values = train_and_describe("larger-graph", LARGER_MODEL, system, pairs, options, listener, **chosen)
        return {**values, "nodes": system.num_nodes}

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


NUMBERS = (2, 4, 8, 16, 32, 64)
LOSSES = ("mmd", "energy")
METRICS = {
    "distribution_loss": "distribution loss",
    "edge_prob_mae": "MAE on theta",
    "edge_prob_max_error": "largest error",
    "point_mse": "MSE on y",
}
NUM_GRAPHS_RUNS = 3  # 64 graphs for each of 128 pairs are slow, and runs hardly differ


class NumGraphs(Study):
    """The effect of the number of graphs per pair: final losses and errors for 2 to 64 graphs."""

    name = "num-graphs"
    title = "psi known, graphs drawn separately for each pair, joint scope: the effect of more graphs."

    def tasks(self) -> Tasks:
        """One per loss and number."""
        return {f"{loss}-{number:02}": partial(self._work, loss, number) for loss in LOSSES for number in NUMBERS}

    def _work(self, loss: str, number: int, options: Options, listener: Listener) -> Values:
        system, pairs = CommunitySystem(), paper_pairs(options)
        config = ModelConfig(loss=loss, scope="joint", baseline="paper", num_graphs=number)
        chosen: Values = {"predictor": system.true_predictor(), "seeds": range(min(options.seeds, NUM_GRAPHS_RUNS))}
        what = f"num-graphs, {loss}, {number} graphs"
        return train_and_describe(what, config, system, pairs, options, listener, **chosen)[1]

    def tables(self, records: Records) -> list[Table]:
        """All losses and numbers."""
        rows = []
        for loss, number in product(LOSSES, NUMBERS):
            values = records[f"{loss}-{number:02}"]
            cells = [mean_and_deviation(column(values, metric, good=False)) for metric in METRICS]
            rows.append([loss, str(number), *cells])
        notes = [
            "in the paper 16 or more graphs give equivalent losses; the error on theta decreases further",
            f"at most {NUM_GRAPHS_RUNS} runs each: 64 graphs for each of 128 pairs are slow, and runs hardly differ",
            *quick_note(list(records.values())),
        ]
        return [Table("Graphs per pair", ["loss", "graphs per pair", *METRICS.values()], rows, notes)]
