"""The figure of docs/results/situations.md: curves of four edges that follow the hour, beside the truth.

    python -m benchmarks.situations.curves

One data set of :mod:`benchmarks.situations.likelihood`, 2,500 rows.
"""

from pathlib import Path

import matplotlib as mpl
import torch
from benchmarks.situations.likelihood import FIRST_SEED, ROWS, constant_fit, edges, probs_at, simulate, variable_of

from tacit.assessment.situations import vary_by_likelihood

FIGURE = Path(__file__).parents[2] / "docs" / "results" / "situations" / "curves.png"


def main() -> None:
    """Draw it."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    train, phases = simulate("hour", "gaussian", ROWS, torch.Generator().manual_seed(FIRST_SEED))
    model, tested = constant_fit("hour", "gaussian", train)
    variable, varying = variable_of("hour", train), edges("hour")[0]
    found = vary_by_likelihood(model, [variable], train, tested)
    by, hours, fine = found.by_situation(variable), torch.arange(24), torch.linspace(0, 1, 200)
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.6), sharey=True, layout="constrained")
    places = found.varies.nonzero().tolist()
    for axis, (node, source) in zip(axes, varying.nonzero().tolist(), strict=True):
        axis.plot(24 * fine, probs_at("hour", fine, float(phases[node])), color="black", lw=1, ls="--", label="truth")
        axis.axhline(
            float(model.graph.edge_probs.detach()[node, source]), color="tab:gray", lw=1, label="constant graph"
        )
        if [node, source] in places:
            place = places.index([node, source])
            axis.fill_between(hours, by.low[place], by.high[place], color="tab:blue", alpha=0.25, lw=0)
            axis.plot(hours, by.probability[place], color="tab:blue", label="estimate, 95% band")
        axis.set(title=f"node {source} → node {node}", xlabel="hour", ylim=(0, 1), xticks=[0, 6, 12, 18, 24])
    axes[0].set_ylabel("probability")
    axes[0].legend(fontsize=7, loc="lower left")
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=120)


if __name__ == "__main__":
    main()
