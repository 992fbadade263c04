"""Draws docs/results/FUZZING.md and DEFECTS.md from the last long run: ``python tests/fuzz/fuzz_page.py``."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PAGE, FIGURES, DEFECTS = (
    RESULTS / "FUZZING.md",
    RESULTS / "fuzzing" / "figures.json",
    RESULTS / "fuzzing" / "defects.json",
)
DEFECTS_PAGE = Path(__file__).parent / "DEFECTS.md"
WORDS = {
    "configs": "config files, `--set`, command lines",
    "tables": "CSV tables: wide, long, ragged, quoted, gzipped, odd names, times, numbers and bytes",
    "arrays": "`.npz` and `.parquet` files: odd types and shapes, false headers, pickles, broken archives",
    "edges": "edge rules and coordinates",
    "inputs": "new data for `predict` and `evaluate`",
    "finished runs": "run directories with bytes, fields, tensors or files changed, with and without a valid checksum",
    "stopped runs": "calls and checkpoints with the same changes, for `fit --resume`",
    "python": "`LatentGraphRegressor`: parameters, X and y of every kind",
}


TEXT = """# Fuzzing

Fuzzing runs tacit on random and damaged input. In {cases:,} random cases (seed {seed}), {results:,} ended with a
result, {plans:,} were valid input and were run up to the start of training, and {errors:,} were refused with a one-line
error and exit code 2. Failures: {failures}.

A case consists of a few files in an empty folder and a command line. It passes if the exit code is 0, nothing is on
standard error and the result is consistent, or if the exit code is 2, standard error is one line of at most 300
printable characters, and no file was created, changed or removed. Everything else is a failure: another exit code, a
traceback, a warning, more than 20 seconds of processor time, more than 3 GiB of memory.

| surface | input | cases | results | up to training | refused | kinds of error | slowest | failures |
|---|---|---:|---:|---:|---:|---:|---:|---:|
{rows}

*kinds of error*: different messages, without names and numbers. `make fuzz` runs as many cases as in the table, with a
new seed, and draws this page. `TACIT_FUZZ_SEED` repeats a run. The defects that were found are listed in
`tests/fuzz/DEFECTS.md`.

Not covered are valid calls of `tacit demo` and `tacit reproduce`; files without read permission; absurd finite numbers
in a checkpoint (training then fails with exit code 1); and scikit-learn's own checks of X and y.
"""
FOUND = """# Defects that fuzzing found

{count} kinds of input, what happened, and what happens now. They were found in about 30,000 cases and 150 wrong calls
typed by hand, while the code was corrected. Tests beside those of the code check each of them, and so do the cases that
are the same each time. Two were found by the run of docs/results/FUZZING.md itself (a learning rate of 1e300, pairs
without any node); the surfaces "python" and "arrays" were then run again with the same seed.

| input | was | now |
|---|---|---|
{listed}
"""


def pages() -> dict[Path, str]:
    """Return the text of both pages."""
    figures, defects = read()
    listed = "\n".join(f"| {defect['input']} | {defect['was']} | {defect['now']} |" for defect in defects)
    return {PAGE: page(figures), DEFECTS_PAGE: FOUND.format(count=len(defects), listed=listed)}


def page(figures: dict[str, Any]) -> str:
    """Return the page."""
    surfaces = figures["surfaces"]
    total = {key: sum(found[key] for found in surfaces.values()) for key in ("cases", "results", "plans", "errors")}
    rows = [
        f"| {name} | {WORDS[name]} | {found['cases']:,} | {found['results']:,} | {found['plans']:,} | "
        f"{found['errors']:,} | {found['kinds']} | {found['slowest_seconds']:.1f} s | {len(found['failures'])} |"
        for name, found in surfaces.items()
    ]
    return TEXT.format(
        **total,
        seed=figures["seed"],
        failures=sum(len(found["failures"]) for found in surfaces.values()),
        rows="\n".join(rows),
    )


def read() -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Return what the page is drawn from."""
    return json.loads(FIGURES.read_text(encoding="utf-8")), json.loads(DEFECTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path)
