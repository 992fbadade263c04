# ---
# jupyter:
#   tutorial:
#     thumbnail: 2
#     reads: [benchmarks/results/scale_cpu.json, benchmarks/results/scale_h200.json]
# ---

# %% [markdown]
# # A thousand nodes
#
# A thousand sensors have 999,000 possible edges. If every sensor is influenced only by sensors nearby, most of them need not be tested. This tutorial learns a graph
# of a thousand nodes on an ordinary machine with candidate edges, and shows the figures for a GPU.
#
# ## The data
#
# A thousand sensors at random places. Each reads two of its six nearest neighbours, one step later. There are 300 rows.

# %% alt="Map of a thousand sensors and the true edges between neighbours"
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.collections import LineCollection

from tacit.graph import nearest_candidates

rng = np.random.default_rng(0)
nodes, rows = 1000, 300
places = rng.random((nodes, 2))
neighbours = nearest_candidates(torch.tensor(places), 6, metric="euclidean").sources.numpy()  # (node, 6)
true_sources = rng.permuted(neighbours, axis=1)[:, :2]

values = np.zeros((rows, nodes))
for row in range(1, rows):
    values[row] = 0.3 * values[row - 1] + 0.3 * values[row - 1][true_sources].sum(1) + rng.normal(size=nodes)
table = pd.DataFrame(values, columns=[f"s{node}" for node in range(nodes)])


def draw(ax, sources, targets, **style):
    ax.add_collection(LineCollection(np.stack([places[sources], places[targets]], 1), **style))
    ax.plot(*places.T, ".", ms=2, color="0.2")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect=1, xticks=[], yticks=[])


fig, ax = plt.subplots(figsize=(4.6, 4.6))
draw(ax, true_sources.ravel(), np.arange(nodes).repeat(2), lw=0.7, color="C0")
ax.set_title("the true graph: 2,000 edges")
plt.show()

# %% [markdown]
# ## Candidate edges
#
# `nearest_candidates` makes a table of the eight nearest sensors of each sensor: 8,000 candidates instead of 999,000. Time and memory grow with the
# number of candidates. If you have no coordinates, `GraphOptions(k_correlated=10)` chooses candidates by correlation.

# %%
from tacit import LatentGraphForecaster
from tacit.config import AssessmentOptions, TrainingOptions

candidates = nearest_candidates(torch.tensor(places), 8, metric="euclidean")
model = LatentGraphForecaster(
    window=1,
    candidates=candidates,
    observation="gaussian",
    training=TrainingOptions(epochs=2, replicas=1, compile=False),
    assessment=AssessmentOptions(enabled=False),
).fit(table)
print(f"{candidates.num_edges:,} candidates")
print("\n".join(model.answer_[:2]))

# %% [markdown]
# `exists` is computed before the training, from regressions of each sensor on sets of its candidates. On one core this takes a few seconds here. The training
# learns how often each edge acts. Two epochs keep this page quick to build, but they are too few for that number. Leave `training` out for your own work.
#
# ## The answer
#
# With more than 400 nodes `edges_` lists only the candidates. All other edges have probability 0.

# %%
listed = model.listed_edges()
listed[["source", "target", "exists", "effect"]].head(5).round(3)

# %% alt="Map of the learned edges: true ones in green, false ones in orange, missed ones dotted"
true = {(f"s{source}", f"s{node}") for node, sources in enumerate(true_sources) for source in sources}
found = set(zip(listed["source"], listed["target"], strict=True))


def ends(edges):
    numbers = np.array([[int(name[1:]) for name in edge] for edge in sorted(edges)], dtype=int).reshape(-1, 2)
    return numbers[:, 0], numbers[:, 1]


fig, ax = plt.subplots(figsize=(4.6, 4.6))
draw(ax, *ends(found & true), lw=0.7, color="C0")
draw(ax, *ends(found - true), lw=1.2, color="C1")
draw(ax, *ends(true - found), lw=1.0, color="0.3", ls=":")
ax.set_title(f"{len(found & true):,} found, {len(found - true)} false, {len(true - found)} missed")
plt.show()

# %% [markdown]
# ## More nodes, and a GPU
#
# Pass `device="cuda"` to the estimator, or `--device cuda` to the command. Nothing else changes; `device="auto"`, the default, takes a GPU if
# there is one. This page was built without a GPU. The figures below come from records in the repository, which `python -m benchmarks.scale` made: a system with
# 50 candidates per node, 1,600 pairs, 8 epochs, one run each.

# %% alt="Seconds per epoch over the number of candidate edges, on two cores and on an H200; both lines rise linearly"
import json
from pathlib import Path

results = []
for name in ("scale_cpu", "scale_h200"):
    record = json.loads(Path(f"benchmarks/results/{name}.json").read_text())
    results.append(pd.DataFrame(record["results"]).assign(device=record["device"]))
results = pd.concat(results)

fig, ax = plt.subplots(figsize=(6.4, 2.8))
for device, rows in results.groupby("device"):
    ax.loglog(rows["candidates"], rows["epoch_seconds"], "o-", label=device)
ax.set(xlabel="candidate edges", ylabel="seconds per epoch")
ax.legend()
plt.show()
columns = ["device", "nodes", "candidates", "auroc", "edge_prob_mae", "train_seconds", "gigabytes"]
results[columns].round({"auroc": 4, "edge_prob_mae": 4, "train_seconds": 1, "gigabytes": 1})

# %% [markdown]
# Seconds grow linearly with the number of candidates. On the GPU, five million candidates of 100,002 nodes took 10 s of training and 16 GB.
#
# ## What you learned
#
# - Candidate edges, by distance, by correlation or by name, make a thousand nodes feasible on two cores.
# - An edge that is not a candidate cannot be found. Choose more candidates than you expect edges.
# - `device="cuda"` runs the same fit on a GPU.
#
# ## Where next
#
# - [Many nodes, processes, GPUs](../how-to/scale.md): the options, memory, several processes.
# - [Speed and scale](../results/SPEED.md): all measurements.
# - [Sensors on a map](beijing.md): constraints in detail.
