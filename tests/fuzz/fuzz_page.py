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


def page(figures: dict[str, Any], defects: list[dict[str, str]]) -> str:
    """Return the page."""
    surfaces = figures["surfaces"]
    total = {key: sum(found[key] for found in surfaces.values()) for key in ("cases", "results", "plans", "errors")}
    failures = sum(len(found["failures"]) for found in surfaces.values())
    rows = [
        f"| {name} | {WORDS[name]} | {found['cases']:,} | {found['results']:,} | {found['plans']:,} | "
        f"{found['errors']:,} | {found['kinds']} | {found['slowest_seconds']:.1f} s | {len(found['failures'])} |"
        for name, found in surfaces.items()
    ]
    listed = [f"| {defect['input']} | {defect['was']} | {defect['now']} |" for defect in defects]
    return "\n".join(
        [
            "# Fuzzing",
            "",
            f"{total['cases']:,} random cases (seed {figures['seed']}): {total['results']:,} ended in a result, "
            f"{total['plans']:,} were taken as input up to where training begins, {total['errors']:,} were refused in one "
            f"clear line with exit code 2, {failures} {'is a failure' if failures == 1 else 'are failures'}.",
            "",
            "A case is a few files in an empty folder and the words that are typed. It passes if",
            "",
            "- the exit code is 0, nothing is on standard error, and the result holds together: probabilities in [0, 1],",
            "  `edges.csv` complete, JSON without NaN, forecasts finite with quantiles in order, forbidden edges exactly 0; or",
            "- the exit code is 2, standard error is one line `tacit: ...` of at most 300 printable characters, nothing was",
            "  printed, and no file was made, changed or removed.",
            "",
            "Everything else is a failure: another exit code, a traceback, a warning, more than 20 seconds, more than 3 GiB",
            "of memory. Cases run in one process through the real command; of those whose input is good, one in six or eight",
            "is trained to the end, the others up to the first step.",
            "",
            "| surface | what | cases | results | taken | refused | kinds of error | slowest | failures |",
            "|---|---|---:|---:|---:|---:|---:|---:|---:|",
            *rows,
            "",
            "Kinds of error are messages without their names and numbers. The slowest case was timed on two cores that other",
            "jobs used too. `make test` judges about a thousand cases, the same each time; `make fuzz` judges these many,",
            "others each time, and draws this page. `TACIT_FUZZ_SEED` repeats a run.",
            "",
            "## What was found, and mended",
            "",
            "About 30,000 cases were run while the code was mended; 150 wrong calls were typed by hand. Each defect has a",
            "plain test of its own beside the tests of the code that it was in.",
            "",
            "| input | was | now |",
            "|---|---|---|",
            *listed,
            "",
            "## What is not covered",
            "",
            "- `tacit demo` and `tacit reproduce` beyond their options: whatever is right there trains for minutes.",
            "- Files that a process without rights cannot read: the tests run as root, who can read all.",
            "- Numbers in a checkpoint that are finite, of the right shape and under a checksum that fits, but absurd: the",
            "  training breaks down and ends with exit code 1.",
            "- Errors of scikit-learn's own checks of X and y, which are its words and may have several lines.",
            "- The page of a run is drawn in part of the cases only; what it shows is tested elsewhere.",
            "",
        ]
    )


def read() -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Return what the page is drawn from."""
    return tuple(json.loads(path.read_text(encoding="utf-8")) for path in (FIGURES, DEFECTS))  # type: ignore[return-value]


if __name__ == "__main__":
    PAGE.write_text(page(*read()), encoding="utf-8")
    print(PAGE)
