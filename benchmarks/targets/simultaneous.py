"""Targets of effects within a step."""

from collections.abc import Iterator

from benchmarks.simultaneous.methods import METHODS, OFF, TACIT
from benchmarks.simultaneous.page import WORDS, against_off, paired
from benchmarks.simultaneous.records import read
from benchmarks.targets import Target, at_most

TOPIC = "simultaneous"
WANTED = "not below by more than one error"
CALIBRATION = 0.06


def targets() -> Iterator[Target]:
    """Yield each target with what was measured."""
    records = {name: read("test", name) for name in METHODS}
    for kind, graph, _, best, _, (mean, error) in paired(records):
        what = f"{kind}, {WORDS[graph]}, AUROC less {best}"
        yield Target(TOPIC, what, f"{mean:+.4f} ± {error:.4f}", WANTED, mean >= -error)
    for kind, found in records[TACIT].items():
        error = found.get("directed_calibration_error")
        if error is not None:
            yield at_most(TOPIC, f"{kind}, calibration error of `exists`", error, CALIBRATION, "{:.3f}")
    for kind, pairs in against_off(records):
        for score, (mean, error) in zip(("AUROC", "average precision"), pairs, strict=True):
            what = f"{kind}, {score} less {OFF}"
            yield Target(TOPIC, what, f"{mean:+.4f} ± {error:.4f}", WANTED, mean >= -error)
