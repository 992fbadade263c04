# ---
# jupyter:
#   tutorial:
#     thumbnail: 2
# ---

# %% [markdown]
# # A river with a gate
#
# Four water levels are measured every hour. Which level depends on which, and how often? This tutorial answers the question with
# one call, and explains the two numbers that tacit gives for each edge. It takes five minutes.
#
# The data of this example is simulated, so that the answer can be checked. Water runs from a spring into a creek. It runs from the
# creek into a river through a gate, which is open in six hours of ten. A lake is independent of the others.

# %% alt="Five days of four water levels; the river falls where the gate is closed"
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

rng = np.random.default_rng(1)
hours = 1600
levels = np.zeros((hours, 4))
gate = np.zeros(hours, dtype=bool)
for hour in range(1, hours):
    spring, creek, river, lake = levels[hour - 1]
    gate[hour] = rng.random() < 0.6
    levels[hour] = [0.6 * spring, 0.3 * creek + 0.6 * spring, 0.3 * river + gate[hour] * 0.9 * creek, 0.5 * lake]
    levels[hour] += [0.5, 0.2, 0.1, 0.2] * rng.normal(size=4)

names = ["spring", "creek", "river", "lake"]
times = pd.date_range("2026-01-01", periods=hours, freq="h", name="time")
table = pd.DataFrame((10 + levels).round(3), columns=names, index=times)
known, newer = table[:1500], table[1490:]

fig, axes = plt.subplots(4, sharex=True, figsize=(6.4, 3.6))
for ax, name in zip(axes, names, strict=True):
    ax.plot(table.index[:120], table[name][:120], lw=1)
    ax.set_ylabel(name, rotation=0, ha="right", va="center")
axes[2].vlines(table.index[:120][~gate[:120]], 8.8, 11.4, color="0.88", lw=3, zorder=0)
axes[2].set_title("grey: gate closed", loc="right", fontsize=7, pad=0)
axes[3].xaxis.set_major_formatter(plt.matplotlib.dates.DateFormatter("%d %b"))
fig.align_ylabels()
plt.show()

# %% [markdown]
# The gate is not in the table. tacit sees only the four columns of levels, with a row per hour.
#
# ## Fit
#
# `LatentGraphForecaster` takes the table. It learns a graph and a predictor for the next hour at the same time. It also computes
# standard errors and compares the forecasts with those of simpler models. The fit takes about ten seconds.

# %%
from tacit import LatentGraphForecaster

model = LatentGraphForecaster().fit(known)
print("\n".join(model.answer_))

# %% [markdown]
# The answer comes first: there is a graph, and it has two edges. The next lines compare the forecasts on the last 20% of the rows,
# which the training did not use.
#
# ## Two numbers per edge

# %%
columns = ["source", "target", "exists", "probability", "std_error", "low", "high", "effect", "lag"]
model.listed_edges()[columns].round(3)

# %% [markdown]
# - `exists` is the probability that the edge is needed at all, given the data. It is 1.000 for both edges. A small value means that
#   the data can be explained without the edge.
# - `probability` is how often the edge acts, given that it exists. The command calls this number `acts`. The spring always feeds the
#   creek. The gate is open in about six hours of ten, and the 95% interval from `low` to `high` contains the true value 0.6.
#
# The two numbers answer different questions. More data moves `exists` toward 0 or 1. More data does not move `probability` toward 1:
# it makes the interval around 0.6 narrower.
#
# `effect` is the size and sign of the effect in standard deviations, and `lag` is the number of hours before the target at which the
# effect is largest.

# %% alt="The learned graph: spring to creek always acts, creek to river acts in six hours of ten, the lake has no edge"
from tacit import GraphDisplay

GraphDisplay.from_estimator(model)
plt.show()

# %% [markdown]
# The ten other pairs are in `edges_` too. Their `exists` is small, and they have no `probability`, because an edge that does not exist
# cannot act:

# %%
model.edges_[["source", "target", "exists", "probability"]].sort_values("exists", ascending=False).head(6).round(3)

# %% [markdown]
# ## Forecast
#
# `predict` returns the mean forecast for each hour. `sample` draws from the distribution of forecasts: each sample has its own graph,
# with the gate open or closed. `ForecastDisplay` draws the median and the intervals of such samples; with `steps` the forecast continues
# after the end of the table.

# %% alt="Forecast of the river for 24 hours, with an interval that widens"
from tacit import ForecastDisplay

ForecastDisplay.from_estimator(model, known[-72:], node="river", steps=24)
plt.show()

# %% [markdown]
# `evaluate` scores the model on rows that it has not seen:

# %%
scores = model.evaluate(newer)
pd.Series(scores["metrics"]).round(4)

# %% [markdown]
# ## The same from the shell
#
# `tacit fit` does the same for a file. With the same data and the same seed it gives the same numbers. It writes a folder with the edges,
# the trained model and a report for the browser.

# %%
known.to_csv("levels.csv")
newer.to_csv("newer.csv")

# %% language="bash"
# tacit fit levels.csv --out runs/levels | sed -n 1,11p
# tacit predict runs/levels newer.csv --out forecasts.csv
# head -n 3 forecasts.csv

# %% [markdown]
# In Python, `model.report("levels.html")` writes the same report.
#
# ## What you learned
#
# - `LatentGraphForecaster().fit(table)` learns a graph from a table with a column per node.
# - `exists` says whether an edge is needed. `probability` (`acts`) says how often it acts. A gate that is open in six hours of ten exists with
#   probability 1 and acts with probability 0.6.
# - Samples of forecasts include the randomness of the graph.
#
# ## Where next
#
# - [Sensors on a map](beijing.md): missing values, and edges that you forbid or require.
# - [Reading the answer](../concepts/reading.md): what the numbers mean, and what they do not mean.
# - [Your own data](../how-to/own-data.md): file formats, several variables, several series.
