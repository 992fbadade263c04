"""Draws docs/results/FUZZING.md from the figures of the last long run: ``python tests/fuzz/fuzz_page.py``."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PAGE, FIGURES, DEFECTS = (
    RESULTS / "FUZZING.md",
    RESULTS / "fuzzing" / "figures.json",
    RESULTS / "fuzzing" / "defects.json",
)
WORDS = {
    "configs": "files of choices, `--set`, command lines",
    "tables": "CSV tables: wide, long, ragged, quoted, gzipped, odd names, times, numbers and bytes",
    "arrays": "`.npz` and `.parquet` files: odd types and shapes, lying headers, pickles, broken archives",
    "edges": "edge rules and coordinates",
    "inputs": "new data for `predict` and `evaluate`",
    "finished runs": "run directories with bytes, fields, tensors or files changed, resealed or not",
    "stopped runs": "calls and checkpoints with the same changes, for `fit --resume`",
    "python": "`LatentGraphRegressor`: parameters, X and y of every kind",
}


TEXT = """# Fuzzing

{cases:,} random cases (seed {seed}): {results:,} ended in a result, {plans:,} were taken as input up to where training
begins, {errors:,} were refused in one clear line with exit code 2. Failures: {failures}.

A case is a few files in an empty folder and the words that are typed. It passes if

- the exit code is 0, nothing is on standard error, and the result holds together: probabilities in [0, 1], `edges.csv`
  complete, JSON without NaN, forecasts finite with quantiles in order, forbidden edges exactly 0; or
- the exit code is 2, standard error is one line `tacit: ...` of at most 300 printable characters, nothing was printed,
  and no file was made, changed or removed.

Everything else is a failure: another exit code, a traceback, a warning, more than 20 seconds of the processor, two
minutes of waiting, more than 3 GiB of memory. Cases run in one process through the real command. Of those whose input
is good, one in six or eight is trained to the end, the others up to the first step.

| surface | what | cases | results | taken | refused | kinds of error | slowest | failures |
|---|---|---:|---:|---:|---:|---:|---:|---:|
{rows}

Kinds of error are messages without their names and numbers. The slowest case was timed by the clock, on two cores that
other jobs used too. `make test` judges four hundred cases, the same each time; `make fuzz` judges this many, others
each time, and draws this page. `TACIT_FUZZ_SEED` repeats a run. Two defects of the list below were found by
this very run (a learning rate of 1e300, pairs without any node); after they were mended, the surfaces "python" and
"arrays" were run again with the same seed.

## What was found, and mended

About 30,000 cases were run while the code was mended, and 150 wrong calls were typed by hand. What was mended is held
by plain tests beside those of the code it was in, and by the cases that are the same each time.

| input | was | now |
|---|---|---|
{listed}

## What is not covered

- `tacit demo` and `tacit reproduce` beyond their options: whatever is right there trains for minutes.
- Files that a process may not read: the tests run as root, who may read all.
- Numbers in a checkpoint that are finite, of the right shape and under a checksum that fits, but absurd: the training
  breaks down, and ends with exit code 1.
- scikit-learn's own checks of X and y: those errors are its words, and may have several lines.
- The page of a run is drawn in few of the cases; what it shows is tested elsewhere.
"""


def page(figures: dict[str, Any], defects: list[dict[str, str]]) -> str:
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
        listed="\n".join(f"| {defect['input']} | {defect['was']} | {defect['now']} |" for defect in defects),
    )


def read() -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Return what the page is drawn from."""
    return json.loads(FIGURES.read_text(encoding="utf-8")), json.loads(DEFECTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(*read()), encoding="utf-8")
    print(PAGE)
