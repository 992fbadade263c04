"""The effect of errors in psi: edge probabilities learned with a predictor that is fixed at a perturbed truth."""

from functools import partial

import torch
from matplotlib.figure import Figure

from tacit.experiments.replication import (
    PAPER_MODEL,
    column,
    mean_and_deviation,
    paper_pairs,
    quick_note,
    train_and_describe,
)
from tacit.experiments.study import Listener, Options, Records, Study, Table, Task, Values
from tacit.randomness import generator_for
from tacit.report import heatmap_pair
from tacit.systems import CommunitySystem, community_edge_probs

# The paper's table: largest perturbation, mean error and largest error with their deviations.
PAPER = {
    0.0: ((0.009, 0.001), (0.06, 0.01)),
    0.1: ((0.010, 0.001), (0.07, 0.01)),
    0.2: ((0.012, 0.004), (0.08, 0.02)),
    0.5: ((0.028, 0.011), (0.16, 0.06)),
    0.8: ((0.047, 0.009), (0.28, 0.06)),
}


class Perturbed(Study):
    """Table of perturbed predictors."""

    name = "perturbed"
    title = "psi fixed at (1 + delta) psi*, delta uniform up to a largest perturbation, a new one for each run."

    def tasks(self) -> list[Task]:
        """One per size of the perturbation; the runs are replicas, each with its own psi."""
        return [Task(f"up-to-{size}", partial(_work, size)) for size in PAPER]

    def tables(self, records: Records) -> list[Table]:
        """The table of the paper with the values of tacit."""
        rows = []
        for size, ((error, error_sd), (largest, largest_sd)) in PAPER.items():
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
        rows = {f"up to {size}": records[f"up-to-{size}"]["first_edge_probs"] for size in PAPER}
        return {"heatmaps": heatmap_pair(rows, community_edge_probs())}


def _work(size: float, options: Options, listener: Listener) -> Values:
    system, pairs = CommunitySystem(), paper_pairs(options)
    stack = []
    for seed in range(options.seeds):
        generator = generator_for(seed, f"perturbation {size}")
        delta = size * (2 * torch.rand(system.hop_weights.shape, generator=generator) - 1)
        stack.append((1 + delta) * system.hop_weights)
    constants = {"predictor.hop_weights": torch.stack(stack).to(options.torch_device)}
    chosen: Values = {"predictor": system.true_predictor(), "constants": constants}
    return train_and_describe(f"perturbed up to {size}", PAPER_MODEL, system, pairs, options, listener, **chosen)
