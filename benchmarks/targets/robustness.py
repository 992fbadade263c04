"""Targets on tables that break assumptions."""

from collections.abc import Iterator

import numpy as np
from benchmarks.robustness.compass import COMPASS
from benchmarks.robustness.methods import METHODS, TACIT
from benchmarks.robustness.page import false_share, paired
from benchmarks.robustness.records import any_listed, read
from benchmarks.robustness.systems import BACKGROUNDS, EDGES, NONE, PLAIN
from benchmarks.targets import Target, at_least, at_most

TOPIC = "robustness"
NOTHING = (*BACKGROUNDS, "random_walk", "volatility", "common_volatility")  # kinds where nothing may be listed
ANY, FALSE, LOST = 0.10, 0.10, 0.02
COMPASS_FALSE, COMPASS_BELOW, ERRORS = 0.12, 0.01, 2.0
RECORDED_ONLY = ("cc_confounders_var", "cc_measurement_var")


def targets() -> Iterator[Target]:
    """Yield each target with what was measured."""
    records = {name: read(name) for name in METHODS}
    for kind, found in records[TACIT].items():
        name = kind.replace("_", " ")
        if kind in NOTHING and NONE in found:
            yield at_most(TOPIC, f"{name}, no edges, data sets with a list", any_listed(found[NONE]), ANY, "{:.0%}")
        share = false_share(found.get(EDGES, {}))
        if kind in BACKGROUNDS and share is not None:
            yield at_most(TOPIC, f"{name}, false share of the listed", share, FALSE, "{:.1%}")
        if EDGES in found and PLAIN in found:
            lost = float(np.mean(found[EDGES]["auroc"]) - np.mean(found[PLAIN]["auroc"]))
            yield at_least(TOPIC, f"{name}, AUROC less that without the background", lost, -LOST, "{:+.3f}")
        if kind in COMPASS and kind.endswith("_var") and kind not in RECORDED_ONLY and share is not None:
            yield at_most(TOPIC, f"{name}, false share of the listed", share, COMPASS_FALSE, "{:.1%}")
        failed = sum(len(row["failed"]) for row in found.values())
        if failed:
            yield at_most(TOPIC, f"{name}, errors", failed, 0, "{:.0f}")
    for kind, key, other, _, _, mean, error in paired(records):
        if kind in COMPASS:
            what = f"{kind.replace('_', ' ')}, {key.upper()} less {other}"
            wanted = f"not below by more than {ERRORS:.0f} errors or {COMPASS_BELOW}"
            met = mean >= -max(ERRORS * error, COMPASS_BELOW)
            yield Target(TOPIC, what, f"{mean:+.4f} ± {error:.4f}", wanted, met)
