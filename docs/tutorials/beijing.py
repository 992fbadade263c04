# ---
# jupyter:
#   tutorial:
#     thumbnail: 3
#     reads: [docs/results/air-quality/records]
# ---

# %% [markdown]
# # Sensors on a map
#
# Twelve stations measure the air of Beijing every hour. Which stations help to forecast which others? This tutorial uses real data
# with missing values. It limits the candidate edges by distance, forbids and requires edges, and then asks how much the graph improves
# the forecast.
#
# The data ships with tacit: hourly PM2.5 (fine dust, in micrograms per cubic metre) from 2013 to 2017, by Chen (2017), UCI Machine
# Learning Repository, CC BY 4.0. We take January 2017.

# %% alt="PM2.5 of three stations over a month: they rise and fall together, with gaps where values are missing"
import matplotlib.pyplot as plt
import pandas as pd

from tacit.data import load_beijing_air

air = load_beijing_air()
table = pd.DataFrame(air.values[:, :, 0], index=pd.to_datetime(air.times), columns=air.nodes)
table = table["2017-01-01":"2017-01-31"]

fig, ax = plt.subplots(figsize=(6.4, 2.6))
for name in ("Dongsi", "Shunyi", "Dingling"):
    ax.plot(table[name], lw=0.8, label=name)
ax.set_ylabel("PM2.5")
ax.xaxis.set_major_formatter(plt.matplotlib.dates.DateFormatter("%d %b"))
ax.legend(ncols=3)
plt.show()

# %% [markdown]
# ## Missing values
#
# Every station has gaps. They need no preparation: NaN in a DataFrame, or an empty cell in a file, is a missing value. A missing input
# is replaced by the last observed value and flagged for the predictor. A missing target is left out of the training and of every
# score.

# %%
table.isna().sum().sort_values(ascending=False).rename("missing hours").to_frame().T

# %% [markdown]
# ## Candidate edges by distance
#
# The data set has no coordinates. These are the positions of the stations, rounded to 0.01 degrees.

# %%
places = pd.DataFrame(
    {
        "Aotizhongxin": (39.98, 116.40), "Changping": (40.22, 116.23), "Dingling": (40.29, 116.22), "Dongsi": (39.93, 116.42),
        "Guanyuan": (39.93, 116.35), "Gucheng": (39.91, 116.18), "Huairou": (40.33, 116.63), "Nongzhanguan": (39.94, 116.46),
        "Shunyi": (40.13, 116.66), "Tiantan": (39.89, 116.41), "Wanliu": (39.99, 116.29), "Wanshouxigong": (39.88, 116.35),
    },
    index=["latitude", "longitude"],
).T  # fmt: skip
places.to_csv("places.csv", index_label="node")
places.head(3)

# %% [markdown]
# Twelve stations have 132 possible edges. With `k_nearest=5` each station can only be influenced by its five nearest stations, which leaves 60
# candidates. Fewer candidates need less data and less time. An edge that is not a candidate cannot be found.
#
# ## Rules: edges that you forbid or require
#
# Suppose that two things are known. The instrument at Gucheng is being replaced, and must not be used to forecast other stations. An
# earlier study has established that Changping influences Dingling, eight kilometres to the north. Both become rules:

# %%
from tacit import LatentGraphForecaster
from tacit.config import AssessmentOptions, GraphOptions

rules = GraphOptions(
    coordinates="places.csv",
    k_nearest=5,
    forbidden=[("Gucheng", other) for other in table.columns if other != "Gucheng"],
    required=[("Changping", "Dingling")],
)
model = LatentGraphForecaster(
    window=3,
    graph=rules,
    observation="gaussian",
    assessment=AssessmentOptions(bootstrap_replicas=0, controls=True),
).fit(table)
print("\n".join(model.answer_))

# %% [markdown]
# `window` is the number of past hours in the input, and `observation` the distribution of the errors. Without these two options tacit chooses
# them from the data, which takes longer. `bootstrap_replicas=0` leaves out the standard errors. `controls=True` trains the same model without a graph
# and with all edges, for comparison.
#
# The first sentence is a warning. In this month the learned graph lowers the error against no graph by less than two standard errors, so the edges are not shown
# to be useful for the forecast. The last sentence names a reason: the stations rise and fall within the same hour, because they share the weather.
#
# A forbidden edge has `exists` 0, and so has a pair that is not a candidate. A required edge has `exists` 1 and acts always. The file of rules of the command has the same kinds
# ([your own data](../how-to/known-edges.md)).

# %%
edges = model.edges_.set_index(["source", "target"])[["exists", "probability"]]
edges.loc[[("Gucheng", "Wanliu"), ("Changping", "Dingling"), ("Tiantan", "Huairou")]]

# %% alt="Matrix of the probability that each edge exists; most of the mass is on a few pairs of neighbouring stations"
exists = model.edges_.pivot(index="target", columns="source", values="exists")
fig, ax = plt.subplots(figsize=(5.2, 4.4))
image = ax.imshow(exists, vmin=0, vmax=1)
ax.set_xticks(range(len(exists)), exists.columns, rotation=60, ha="right")
ax.set_yticks(range(len(exists)), exists.index)
ax.set(xlabel="source", ylabel="target")
fig.colorbar(image, label="exists", shrink=0.8)
plt.show()

# %% [markdown]
# ## The map

# %% alt="Map of the twelve stations with the listed edges as arrows between neighbours"
fig, ax = plt.subplots(figsize=(6.0, 5.0))
for edge in model.listed_edges().itertuples():
    (y0, x0), (y1, x1) = places.loc[edge.source], places.loc[edge.target]
    style = {"arrowstyle": "-|>", "color": "C0", "alpha": 0.35 + 0.6 * edge.exists * edge.probability, "lw": 1.5}
    style |= {"shrinkA": 5, "shrinkB": 5, "connectionstyle": "arc3,rad=0.12"}
    ax.annotate("", (x1, y1), (x0, y0), arrowprops=style)
ax.scatter(places["longitude"], places["latitude"], s=22, color="C1", zorder=3)
for name, place in places.iterrows():
    west = name in ("Guanyuan", "Wanshouxigong", "Wanliu")  # labels that would hide others
    side = {"ha": "right" if west else "left", "va": "top" if west else "bottom"}
    offset = (-4, -4) if west else (4, 4)
    ax.annotate(name, tuple(place[::-1]), offset, textcoords="offset points", fontsize=7, **side)
ax.set(xlabel="longitude", ylabel="latitude", aspect=1.3)
plt.show()

# %% [markdown]
# A required edge is known, so it is not listed and not drawn here.
#
# ## Does the graph improve the forecast?
#
# The errors on the last 20% of the hours, in micrograms per cubic metre:

# %%
rows = {"learned graph": model.record_.metrics, **model.record_.references}
pd.DataFrame(rows).T[["point_mae", "crps"]].astype(float).round(2)

# %% [markdown]
# Other stations help: both graphs are better than no graph. In this month all edges together forecast best, better than the listed ones. If only the forecast matters,
# use all edges. Two more cautions apply to air quality.
#
# **A better forecast is not a proof of the edges.** The study [air-quality](../results/RESULTS.md#air-quality) trains recurrent networks on 36
# stations, one hour ahead, with different graphs. These are its records (mean over 3 seeds, in micrograms per cubic metre):

# %%
import json
from pathlib import Path

kinds = {
    "none": "no graph",
    "full": "all edges",
    "nearest": "5 nearest",
    "random": "random edges",
    "learned": "learned graph",
}
crps = {}
for kind, words in kinds.items():
    record = json.loads(Path(f"docs/results/air-quality/records/{kind}-1h.json").read_text())
    crps[words] = [run["crps"] for run in record["runs"]]
pd.DataFrame(crps).agg(["mean", "std"]).T.round(2)

# %% [markdown]
# The learned graph is best, but random edges that are not learned give about 90% of the improvement over no graph. Most of the improvement
# comes from the information of other stations and from the randomness of the edges, not from the choice of the stations.
#
# **An edge is not a cause.** Wind and weather move the dust over all stations. A station that is reached first helps to forecast one that
# is reached later, without causing anything there. [Reading the answer](../concepts/reading.md) says more.
#
# ## What you learned
#
# - Missing values need no preparation.
# - `coordinates` and `k_nearest` limit the candidate edges by distance; `forbidden` and `required` add what you know.
# - `controls=True` compares the learned graph with no graph and with all edges. Look at this comparison before you interpret edges.
#
# ## Where next
#
# - [Gene networks](genes.md): several experiments, and how many of the listed edges are false.
# - [A thousand nodes](thousand_nodes.md): the same candidates by distance, on a larger map.
# - [Edges that depend on the situation](../how-to/situations.md): for example on the wind.
