"""Studies without training: the system of the paper, the counterexample to point losses, the lemma on injectivity."""

import itertools
import math
import statistics
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure

from tacit.assessment.evaluation import predictive_metrics
from tacit.experiments.replication import NUM_PAIRS, PAPER_MODEL, QUICK_PAIRS, quick_note
from tacit.experiments.study import OPTIMAL_NOTE, Listener, Options, Records, Study, Table, Tasks, Values
from tacit.losses import MMD, EnergyScore
from tacit.randomness import generator_for
from tacit.report import COLOURS, PROBABILITY_COLOURS
from tacit.systems import COMMUNITY_EDGES, NODES_PER_COMMUNITY, CommunitySystem, community_edge_probs

OPTIMAL = {"point_mse": "0.158", "point_mae": "0.267", "distribution_loss": "about -0.088"}
TITLES = {"point_mse": "optimal MSE", "point_mae": "optimal MAE", "distribution_loss": "least distribution loss"}
# Positions of the six nodes: a triangle with three nodes on its lower side, as in the paper.
PLACES = ((0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (0.5, 0.87), (1.5, 0.87), (1.0, 1.73))
PARTS = 10  # number of parts of the pairs, for standard errors


class System(Study):
    """The synthetic system of the paper: its graph, its edge probabilities and its optimal scores."""

    name = "system"
    title = "Communities of six nodes; both directions of every edge drawn, and every self-loop, have theta* = 0.75."

    def tasks(self) -> Tasks:
        """One task, which samples and trains nothing."""
        return {"optimal": self._work}

    def _work(self, options: Options, listener: Listener) -> Values:
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

    def tables(self, records: Records) -> list[Table]:
        """Optimal values with their standard errors."""
        rows = []
        for key, title in TITLES.items():
            parts = records["optimal"]["parts"][key]
            error = statistics.stdev(parts) / math.sqrt(len(parts))
            rows.append(
                [title, OPTIMAL[key], f"{statistics.mean(parts):.4f}", f"{error:.4f}", str(records["optimal"]["pairs"])]
            )
        columns, notes = ["value", "paper", "ours", "standard error", "pairs"], quick_note(list(records.values()))
        return [Table("Optimal values by sampling", columns, rows, [OPTIMAL_NOTE, *notes])]

    def figures(self, records: Records) -> dict[str, Figure]:
        """The graph of three communities and theta* of two."""
        del records
        count = 3
        graph = Figure(figsize=(2.3 * count, 2.2), layout="constrained")
        axis = graph.subplots()
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

        matrix = Figure(figsize=(3.4, 3.0), layout="constrained")
        axis = matrix.subplots()
        image = axis.imshow(community_edge_probs().numpy(), cmap=PROBABILITY_COLOURS, vmin=0, vmax=1)
        axis.set(title="true edge probability", xlabel="source", ylabel="target")
        matrix.colorbar(image, ax=axis, shrink=0.8)
        return {"communities": graph, "true-edge-probs": matrix}


TRUTH = 0.75
OUTPUTS = (0.0, 1.0)  # f(x, 0) and f(x, 1)
GRID = [k / 100 for k in range(101)]


class Counterexample(Study):
    """One Bernoulli edge: the point loss with MAE is flat for every theta above 1/2, distribution losses are not."""

    name = "counterexample"
    title = "One edge with theta* = 0.75, f(x, 1) = 1 > f(x, 0) = 0: each loss as a function of theta, by enumeration."

    def tasks(self) -> Tasks:
        """Return one task: a sum over two graphs."""
        return {"curves": self._work}

    def _work(self, options: Options, listener: Listener) -> Values:
        del options, listener
        curves: dict[str, list[float]] = {"point MAE": [], "MMD": [], "energy score": []}
        outputs = torch.tensor(OUTPUTS, dtype=torch.float64)
        truth = torch.tensor([1 - TRUTH, TRUTH], dtype=torch.float64)
        losses = {"MMD": MMD(baseline="none"), "energy score": EnergyScore(baseline="none")}
        pairs = torch.cartesian_prod(outputs, outputs).view(4, 2, 1, 1)
        values = {
            name: torch.stack([loss(pairs, y.view(1, 1, 1).expand(4, 1, 1)).value[:, 0] for y in outputs])
            for name, loss in losses.items()
        }  # (target, pair of graphs)
        for theta in GRID:
            probs = torch.tensor([1 - theta, theta], dtype=torch.float64)
            median = OUTPUTS[1] if theta > 0.5 else OUTPUTS[0] if theta < 0.5 else 0.5
            curves["point MAE"].append(float(truth @ (outputs - median).abs()))
            for name, value in values.items():
                curves[name].append(float(truth @ value @ torch.cartesian_prod(probs, probs).prod(1)))
        return {"curves": curves}

    def tables(self, records: Records) -> list[Table]:
        """Return the minimum of each loss."""
        rows = []
        for name, curve in records["curves"]["curves"].items():
            least = min(curve)
            where = [theta for theta, value in zip(GRID, curve, strict=True) if value - least < 1e-9]
            span = f"{where[0]:.2f}" if len(where) == 1 else f"every theta from {where[0]:.2f} to {where[-1]:.2f}"
            rows.append([name, {"point MAE": "flat above 1/2"}.get(name, "at theta*"), span])
        return [Table("Least loss", ["loss", "paper", "least at"], rows)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """Return the curves, each minus its minimum."""
        figure = Figure(figsize=(4.4, 3.0), layout="constrained")
        axis = figure.subplots()
        for (name, curve), colour in zip(records["curves"]["curves"].items(), COLOURS, strict=False):
            axis.plot(GRID, np.asarray(curve) - min(curve), color=colour, label=name)
        axis.axvline(TRUTH, color="black", linestyle="--", linewidth=0.8)
        axis.set(xlabel="theta", ylabel="loss above its least")
        axis.legend(fontsize=7)
        return {"curves": figure}


SIZES = (2, 3, 4, 5, 6, 8)
INPUTS = 2_000
INTEGER_RANGE = 20  # integers from -20 to 20: inputs that often lie on a hyperplane


class Injectivity(Study):
    """How often A -> sigma(A x) is injective for random x: all rows a in {0, 1}^N, compared with the paper's lemma."""

    name = "injectivity"
    title = (
        "a -> a x is injective for a in {0, 1}^N unless x is orthogonal to some delta in {-1, 0, 1}^N other than 0 "
        "(the paper's lemma); rows of A x, and tanh of them, then are too."
    )

    def tasks(self) -> Tasks:
        """One per number of nodes."""
        return {f"nodes-{size}": partial(self._work, size) for size in SIZES}

    def _work(self, size: int, options: Options, listener: Listener) -> Values:
        del options, listener
        generator = generator_for(size, "injectivity")
        normal = torch.randn(INPUTS, size, generator=generator, dtype=torch.float64)
        integer = torch.randint(-INTEGER_RANGE, INTEGER_RANGE + 1, (INPUTS, size), generator=generator).double()
        found: Values = {"inputs": INPUTS}
        for name, inputs in (("normal", normal), ("integer", integer)):
            by_rows, by_lemma = injective(inputs), off_all_hyperplanes(inputs)
            found[name] = {
                "injective": by_rows.double().mean().item(),
                "agree": int((by_rows == by_lemma).sum()),
            }
        return found

    def tables(self, records: Records) -> list[Table]:
        """Shares of injective inputs, and whether the lemma agrees for each of them."""
        rows = []
        for size in SIZES:
            values = records[f"nodes-{size}"]
            agree = values["normal"]["agree"] + values["integer"]["agree"]
            cells = {
                "nodes": str(size),
                "paper: normal x": "all, but for a null set",
                "injective, normal x": f"{values['normal']['injective']:.2%}",
                "injective, integer x": f"{values['integer']['injective']:.2%}",
                "inputs where the lemma agrees": f"{agree} of {2 * values['inputs']}",
            }
            rows.append(list(cells.values()))
        notes = [f"integer x: uniform from -{INTEGER_RANGE} to {INTEGER_RANGE}, where the hyperplanes are often hit"]
        return [Table("Injectivity of one layer", list(cells), rows, notes)]


def injective(inputs: torch.Tensor) -> torch.Tensor:
    """Return for each x whether all rows a in {0, 1}^N give different a x; all rows of A share x, so one decides."""
    rows = torch.tensor(list(itertools.product((0.0, 1.0), repeat=inputs.shape[1])), dtype=inputs.dtype)
    ordered = (inputs @ rows.T).sort(1).values
    return (ordered.diff(dim=1) > 1e-9).all(1)


def off_all_hyperplanes(inputs: torch.Tensor) -> torch.Tensor:
    """Return for each x whether no delta in {-1, 0, 1}^N other than 0 is orthogonal to it."""
    deltas = torch.tensor(list(itertools.product((-1.0, 0.0, 1.0), repeat=inputs.shape[1])), dtype=inputs.dtype)
    deltas = deltas[deltas.abs().sum(1) > 0]
    return ((inputs @ deltas.T).abs() > 1e-9).all(1)
