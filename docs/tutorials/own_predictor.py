# ---
# jupyter:
#   tutorial:
#     thumbnail: 3
# ---

# %% [markdown]
# # A predictor of your own
#
# Traffic jams spread along a road network only if a road is nearly full. A linear effect per edge cannot express this. This tutorial
# replaces the predictor of tacit by a PyTorch module of your own, and then by a layer of PyTorch Geometric. tacit still learns the graph,
# and how often each edge acts.
#
# ## The data
#
# Six roads. The load of a road in ten minutes depends on its load now, and on the overflow of other roads: what is above a
# threshold of 0.5. Road 0 overflows into roads 1 and 2, road 3 into road 4. A traffic light lets the overflow of road 3 through in
# seven of ten cases.

# %% alt="Load of road 1 in ten minutes against the load of road 0 now: flat up to 0.5, then rising"
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
pairs, roads = 2000, 6
x = rng.normal(size=(pairs, roads))
open_light = rng.random(pairs) < 0.7
overflow = np.maximum(x - 0.5, 0)
y = 0.3 * x + 0.1 * rng.normal(size=x.shape)
y[:, 1] += 1.5 * overflow[:, 0]
y[:, 2] += 1.5 * overflow[:, 0]
y[:, 4] += 1.5 * overflow[:, 3] * open_light

fig, axes = plt.subplots(1, 2, sharey=True, figsize=(6.4, 2.6))
for ax, source, target in zip(axes, (0, 3), (1, 4), strict=True):
    ax.scatter(x[:, source], y[:, target] - 0.3 * x[:, target], s=2, alpha=0.5)
    ax.set(xlabel=f"load of road {source} now", title=f"road {source} to road {target}")
axes[0].set_ylabel("change of the load")
plt.show()

# %% [markdown]
# On the right, the same load of road 3 has two outcomes: the light was open or closed. This is what a random edge means.
#
# ## The default
#
# These are pairs (x, y) without time, so the estimator is `LatentGraphRegressor`. Its default predictor has one weight per edge and is linear.

# %%
from tacit import LatentGraphRegressor
from tacit.config import AssessmentOptions, TrainingOptions

quick = AssessmentOptions(enabled=False)
linear = LatentGraphRegressor(assessment=quick).fit(x[:1500], y[:1500])
print(linear.listed_edges()[["source", "target", "exists", "probability"]].round(2).to_string(index=False))
print(f"R2 on new pairs: {linear.score(x[1500:], y[1500:]):.3f}")

# %% [markdown]
# The edges are found, but the probabilities are wrong. A straight line does not fit the overflow, and the linear model uses random edges to
# explain what it cannot fit. **A probability is only as good as the predictor.**
#
# ## A module of your own
#
# A predictor is any `torch.nn.Module` that maps inputs (batch, node, channel) and graphs (batch or 1, graph, node, node) to means
# (batch, graph, node, channel). Entry `[i, j]` of a graph is 1 if there is an edge from `j` to `i`, so `graphs @ message` sums over the sources.
# `num_hops = 1` promises that the output of a node depends only on its direct sources.

# %%
import torch
from torch import nn


class Overflow(nn.Module):
    """Own load, plus what the sources have above a threshold; three numbers are learned."""

    num_hops = 1

    def __init__(self):
        super().__init__()
        self.own = nn.Parameter(torch.tensor(0.5))
        self.strength = nn.Parameter(torch.tensor(1.0))
        self.threshold = nn.Parameter(torch.tensor(0.0))

    def forward(self, inputs, graphs):
        message = torch.relu(inputs - self.threshold)[:, None]  # (batch, 1, node, channel)
        return self.own * inputs[:, None] + self.strength * (graphs @ message)


training = TrainingOptions(epochs=40, replicas=1, predictor_learning_rate=0.05, compile=False)
own = LatentGraphRegressor(predictor=Overflow(), observation="gaussian", training=training, assessment=quick)
own.fit(x[:1500], y[:1500])
print(own.listed_edges()[["source", "target", "exists", "probability"]].round(2).to_string(index=False))
print(f"R2 on new pairs: {own.score(x[1500:], y[1500:]):.3f}")
{name: round(value.item(), 2) for name, value in own.predictor_.named_parameters()}

# %% [markdown]
# The module learned the threshold 0.5, the strength 1.5 and the own weight 0.3 of the simulation. The probabilities are now close to the truth: 1 for
# two edges, and 0.7 for the traffic light. The score on new pairs rose as well.

# %% alt="Probability of the three edges: the linear model is off, the module is close to the truth"
edges = [(0, 1), (0, 2), (3, 4)]
fig, ax = plt.subplots(figsize=(6.4, 2.4))
position = np.arange(len(edges))
true = [1.0, 1.0, 0.7]
for offset, (words, values) in enumerate(
    {
        "truth": true,
        "linear": [linear.edge_probs_[target, source] for source, target in edges],
        "module": [own.edge_probs_[target, source] for source, target in edges],
    }.items()
):
    ax.bar(position + 0.25 * (offset - 1), values, 0.22, label=words, color=("0.6", "C1", "C0")[offset])
ax.set_xticks(position, [f"road {source} to road {target}" for source, target in edges])
ax.set(ylabel="acts", ylim=(0, 1.3))
ax.legend(ncols=3, loc="upper left")
plt.show()

# %% [markdown]
# ## A layer of PyTorch Geometric
#
# `PyGPredictor` takes any module that is called as `module(x, edge_index)`, and adds a linear path from each node to itself. Here it is a small
# network of two layers around a `GraphConv`. It needs `pip install '.[pyg]'`.

# %% alt="Response of the PyTorch Geometric model: what road 1 receives from road 0 over the load of road 0, close to the true overflow"
from torch_geometric.nn import GraphConv

from tacit.predictors import PyGPredictor


class Message(nn.Module):
    """A hidden layer at the source, then a sum over edges."""

    def __init__(self, hidden=8):
        super().__init__()
        self.hidden = nn.Linear(1, hidden)
        self.sum = GraphConv(hidden, 1, aggr="add")

    def forward(self, x, edge_index):
        return self.sum(torch.relu(self.hidden(x)), edge_index)


with torch.random.fork_rng():
    torch.manual_seed(0)
    predictor = PyGPredictor(Message(), window=1, num_features=1, residual=False)
candidates = [(0, 1), (0, 2), (3, 4), (5, 3), (2, 5)]
training = TrainingOptions(epochs=25, replicas=1, predictor_learning_rate=0.02, compile=False)
pyg = LatentGraphRegressor(
    predictor=predictor, candidates=candidates, observation="gaussian", training=training, assessment=quick
).fit(x[:1500], y[:1500])
print(f"R2 on new pairs: {pyg.score(x[1500:], y[1500:]):.3f}")

grid = np.zeros((60, roads))
grid[:, 0] = np.linspace(-2, 3, 60)
fig, ax = plt.subplots(figsize=(6.4, 2.6))
ax.plot(grid[:, 0], 1.5 * np.maximum(grid[:, 0] - 0.5, 0), color="0.6", lw=4, label="truth")
for words, fitted in (("linear", linear), ("module", own), ("PyTorch Geometric", pyg)):
    ax.plot(grid[:, 0], fitted.predict(grid)[:, 1], label=words)
ax.set(xlabel="load of road 0 now", ylabel="expected load of road 1")
ax.legend()
plt.show()

# %% [markdown]
# The network of PyTorch Geometric was not told about a threshold. It learned the shape from the data, with more parameters and a longer training.
# We gave it a few candidate edges, because each sampled graph of each pair becomes a part of one large graph, which takes time.
#
# ## What you learned
#
# - `predictor=` takes a `torch.nn.Module`. A copy of it is trained together with the graph.
# - A wrong predictor gives wrong probabilities, even if the edges are right. Compare scores on new data.
# - `PyGPredictor` wraps layers of PyTorch Geometric.
#
# ## Where next
#
# - [Extending tacit](../how-to/extending.md): register a predictor by name, and write losses, estimators, graphs and observation models.
# - [From the paper to its tables](paper.md): what is being optimised.
# - [tacit.predictors](../reference/model.md): the predictors that exist.
