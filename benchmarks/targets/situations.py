"""Targets of edges that depend on the situation, and of regimes."""

from collections.abc import Iterator

from benchmarks.situations.page import null_ratio
from benchmarks.situations.records import RESULTS, Figures, read
from benchmarks.situations.step import TARGET
from benchmarks.targets import Target, at_least, at_most

TOPIC = "situations"
ERRORS = {"category": 0.03, "hour": 0.04}
FOUND, NULL, REJECTED, POWER, MARGINALS, ACCURACY, SAME = 0.95, 0.1, 0.1, 0.95, 0.01, 0.95, 1.05


def targets() -> Iterator[Target]:
    """Yield each target with what was measured."""
    for name, found in read(RESULTS / "varying.json").items():
        kind = name.split(", ")[0]
        if kind == "constant":
            yield from _null(name, found)
            continue
        if kind in ERRORS:
            yield at_most(TOPIC, f"{name}: error of the probability", found["mae"], ERRORS[kind], "{:.4f}")
        yield at_least(TOPIC, f"{name}: varying edges found", found["found_share"], FOUND, "{:.1%}")
    for name, found in read(RESULTS / "regimes.json").items():
        if "least_ratio" in found:
            what = f"{name}: accuracy over that of the true model, the least"
            yield at_least(TOPIC, what, found["least_ratio"], ACCURACY, "{:.3f}")
            continue
        sets = found["sets"]
        yield at_most(TOPIC, f"{name}: error of the marginals", found["mixture_mae_edges"], MARGINALS, "{:.4f}")
        yield at_most(TOPIC, f"{name}: two regimes rejected", found["mixture_rejected"] / sets, REJECTED, "{:.0%}")
        yield at_least(TOPIC, f"{name}: constant graph rejected", found["constant_rejected"] / sets, POWER, "{:.0%}")
    for row in read(RESULTS / "likelihood.json"):
        if row["kind"] == "none":
            what = f"linear filters, {row['noise']}, no edge varies: sets with one called varying"
            yield at_most(TOPIC, what, row["sets_with_a_wrong_edge"], NULL, "{:.1%}")
    for name, found in read(RESULTS / "step.json").items():
        yield at_most(TOPIC, f"largest ratio of a step, {name}", max(found["ratios"].values()), TARGET, "{:.2f}")


def _null(name: str, found: Figures) -> Iterator[Target]:
    share = found["with_false"] / found["sets"]
    yield at_most(TOPIC, f"{name}: sets with an edge called varying", share, NULL, "{:.1%}")
    yield at_most(TOPIC, f"{name}: error over that of the constant fit", null_ratio(found), SAME, "{:.3f}")
