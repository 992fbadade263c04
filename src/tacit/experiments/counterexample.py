"""One Bernoulli edge: the point loss with MAE is flat for every theta above 1/2, distribution losses are not."""

import numpy as np
import torch
from matplotlib.figure import Figure

from tacit.experiments.study import Listener, Options, Records, Study, Table, Task, Values
from tacit.losses import MMD, EnergyScore
from tacit.report import COLOURS

TRUTH = 0.75
OUTPUTS = (0.0, 1.0)  # f(x, 0) and f(x, 1)
GRID = [k / 100 for k in range(101)]


class Counterexample(Study):
    """The paper's appendix on point losses, as a curve."""

    name = "counterexample"
    title = "One edge with theta* = 0.75, f(x, 1) = 1 > f(x, 0) = 0: each loss as a function of theta, by enumeration."

    def tasks(self) -> list[Task]:
        """Return one task: a sum over two graphs."""
        return [Task("curves", _work)]

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


def _work(options: Options, listener: Listener) -> Values:
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
