"""The picture of docs/concepts/two-numbers.md: ``python -m benchmarks.figures.two_numbers``.

A creek that a spring always feeds, a river that the creek feeds through a gate, and a pond that a lake hardly feeds.
The picture shows the data behind these three edges, and the numbers of a fit with default options from the record.
Without a record, the fit is made first.
"""

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tacit import LatentGraphForecaster
from tacit.report import COLOURS, STYLE

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "two-numbers.png"
RECORD = ROOT / "benchmarks" / "results" / "two_numbers.json"
NODES = ("spring", "creek", "river", "lake", "pond")
OWN = {"creek": 0.3, "river": 0.3, "pond": 0.5}
WEAK, GATE, HOURS, SEED = 0.094, 0.6, 1_500, 1
EDGES = {("spring", "creek"): "acts always", ("creek", "river"): "a gate", ("lake", "pond"): "a weak edge"}


def levels() -> tuple[pd.DataFrame, np.ndarray]:
    """Return the hourly levels, and whether the gate was open on the way to each hour."""
    rng = np.random.default_rng(SEED)
    values, gates = np.zeros((HOURS, len(NODES))), rng.random(HOURS) < GATE
    for hour in range(1, HOURS):
        spring, creek, river, lake, pond = values[hour - 1]
        values[hour] = [
            0.6 * spring,
            OWN["creek"] * creek + 0.6 * spring,
            OWN["river"] * river + gates[hour] * 0.9 * creek,
            0.5 * lake,
            OWN["pond"] * pond + WEAK * lake,
        ]
        values[hour] += np.array([0.5, 0.2, 0.1, 0.2, 0.2]) * rng.normal(size=len(NODES))
    return pd.DataFrame(values, columns=list(NODES)), gates


def fit(table: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """Return both numbers of each edge, from a fit with default options."""
    edges = LatentGraphForecaster(random_state=0).fit(table).edges_
    found = {}
    for row in edges.to_dict("records"):
        numbers = {key: row.get(key) for key in ("exists", "probability", "low", "high")}
        found[f"{row['source']} -> {row['target']}"] = {
            key: None if value is None or pd.isna(value) else round(float(value), 4) for key, value in numbers.items()
        }
    return found


def draw(table: pd.DataFrame, gates: np.ndarray, numbers: dict[str, dict[str, float | None]]) -> Figure:
    """Return the picture."""
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    for axis, ((source, target), words) in zip(figure.subplots(1, 3), EDGES.items(), strict=True):
        before, after = table[source].to_numpy()[:-1], table[target].to_numpy()
        change = after[1:] - OWN[target] * after[:-1]
        found = numbers[f"{source} -> {target}"]
        open_ = gates[1:] if target == "river" else np.ones(len(change), bool)
        for chosen, colour, said in ((open_, COLOURS[0], "gate open"), (~open_, COLOURS[1], "gate closed")):
            if chosen.any():
                axis.plot(before[chosen], change[chosen], ".", color=colour, markersize=3, alpha=0.6, label=said)
        if target == "river":
            axis.legend(loc="upper left", markerscale=3)
        axis.set_title(f"{words}\n{_said(found)}", fontsize="medium")
        axis.set(xlabel=f"{source}, an hour before", ylabel=f"{target}, less its own past")
    return figure


def _said(found: dict[str, float | None]) -> str:
    acts, low, high = found["probability"], found["low"], found["high"]
    often = "acts: not estimated" if acts is None else f"acts {acts:.2f}"
    return f"exists {found['exists']:.2f}\n{often}" + ("" if low is None else f" (interval {low:.2f} to {high:.2f})")


def rows() -> list[str]:
    """Return the figures of the three edges, as the table of the page has them."""
    found = json.loads(RECORD.read_text(encoding="utf-8"))
    edges = [found[f"{source} -> {target}"] for source, target in EDGES]
    return [f"{e['exists']:.2f} | {e['probability']:.2f} | {e['low']:.2f} to {e['high']:.2f}" for e in edges]


if __name__ == "__main__":
    data, opened = levels()
    if not RECORD.is_file():
        RECORD.write_text(json.dumps(fit(data), indent=1) + "\n", encoding="utf-8")
    result = json.loads(RECORD.read_text(encoding="utf-8"))
    with mpl.rc_context(STYLE):
        draw(data, opened, result).savefig(PICTURE, dpi=150, facecolor="white")
    print(PICTURE, *(f"{name}: {values}" for name, values in result.items()), sep="\n")
