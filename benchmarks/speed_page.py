"""The page docs/results/SPEED.md, from the figures of the benchmarks alone; run ``python benchmarks/speed_page.py``.

The words around the tables are in ``speed_page.md``.
"""

import json
import statistics
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS, WORDS = HERE / "results", HERE / "speed_page.md"
PAGE = HERE.parent / "docs" / "results" / "SPEED.md"
PYG = {
    "PyG, usual": "a `Data` object per graph",
    "PyG, careful": "careful",
    "PyG, tuned": "tuned",
    "PyG, channels": "pairs as channels",
}
ACCURACY = {
    "quick": ("best_cpu", "12 nodes, 4 epochs, two cores"),
    "best": ("best_h200", "12 nodes, 300 epochs, 8 replicas at once, H200"),
    "larger": ("best_h200", "120 nodes, 30 epochs, H200"),
}
REFERENCE = "recurrent, window 12, rate 0.003, 1500 steps"
DEFAULT = "feedforward, window 6, rate 0.01, 1000 steps"
SHOWN = (  # the others that were tried are in the record
    REFERENCE, "filter", "recurrent, window 6, rate 0.006, 1500 steps", "feedforward, window 4, rate 0.006, 800 steps",
    "feedforward, window 6, rate 0.006, 1500 steps", "feedforward, window 12, rate 0.01, 800 steps", DEFAULT,
)  # fmt: skip
Figures = dict[str, Any]


def page(directory: Path) -> str:
    """Return the text of the page, from the files alone."""
    tables = {
        "waiting": _waiting,
        "networks": _networks,
        "pyg": _pyg,
        "accuracy": _accuracy,
        "limit": _limit,
        "scale": _scale,
        "reproduce": _reproduce,
    }
    text = WORDS.read_text(encoding="utf-8")
    for name, table in tables.items():
        text = text.replace(f"{{{name}}}", table(directory))
    return text


def read(directory: Path, name: str) -> Figures:
    """Return the figures of one run."""
    found: Figures = json.loads((directory / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in [heads, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(heads), *lines[1:]])


def _waiting(directory: Path) -> str:
    rows = []
    for name, row in read(directory, "waiting")["rows"].items():
        first, second = row["runs"]
        rows.append(
            [
                name,
                *(f"{first[key]:.1f}" if key in first else "-" for key in ("first_words", "first_edges")),
                *(f"{run['seconds']:.1f}" for run in (first, second)),
                f"{first['core_seconds']:.1f}",
                f"{first['memory_gb']:.2f}",
            ]
        )
    return _table(["data", "first output", "first edges", "report", "second run", "core s", "GB"], rows)


def _networks(directory: Path) -> str:
    rows = read(directory, "networks")["rows"]
    crps = {(row["variant"], row["table"]): row["crps"] for row in rows}
    tables = list(dict.fromkeys(row["table"] for row in rows))
    cells = [
        [f"**{variant}**" if variant == DEFAULT else variant]
        + [f"{crps[variant, table] / crps[REFERENCE, table]:.3f}" for table in tables]
        for variant in SHOWN
    ]
    return _table(["network", *tables], cells)


def _reproduce(directory: Path) -> str:
    found = read(directory, "reproduce_cpu")
    seconds, training = (sum(one[key] for one in found["studies"].values()) for key in ("seconds", "train_seconds"))
    return (
        f"{seconds / 60:.0f} minutes for {len(found['studies'])} studies, of which training {training / 60:.0f} "
        f"({found['device']})"
    )


def _pyg(directory: Path) -> str:
    found = [row for row in read(directory, "step_vs_pyg")["results"] if row["theta"] == "true"]
    rows = []
    for graphs, psi in dict.fromkeys((row["graphs"], row["psi"]) for row in found):
        own = {row["implementation"]: row for row in found if (row["graphs"], row["psi"]) == (graphs, psi)}
        ratios = [f"{own[name]['ratio']:.1f}" if name in own else "-" for name in PYG]
        rows.append([graphs, psi, f"{own['tacit']['ms_per_step']:.2f}", *ratios])
    return _table(["graphs", "psi", "tacit, ms", *PYG.values()], rows)


def _accuracy(directory: Path) -> str:
    rows = []
    for name, (file, what) in ACCURACY.items():
        found = read(directory, file)[name]
        errors = found["errors"]
        rows.append(
            [
                what,
                f"{statistics.mean(errors):.5f} ± {statistics.stdev(errors):.5f}",
                f"{max(errors):.5f}",
                str(len(errors)),
                f"{found['oracle']:.5f}",
                f"{max(found['largest']):.3f}",
                f"{max(found['seconds']):.2f} s",
            ]
        )
    heads = ["what", "MAE on theta", "worst", "runs", "oracle", "largest error", "slowest training"]
    return _table(heads, rows)


def _limit(directory: Path) -> str:
    rows = []
    for name in ("limit_h200", "limit_cpu"):
        figures = read(directory, name)
        for psi in ("known", "trained"):
            found = figures[psi]
            rows.append(
                [
                    figures["device"],
                    f"{figures['bytes'] / 1e6:.1f} MB",
                    f"{figures['operations'] / 1e6:.0f} M",
                    f"{figures['floor_us']:.1f} us",
                    psi,
                    f"{found['step_us']:,.0f} us",
                    f"{found['over_floor']:.0f}",
                    f"{found['fit_seconds']:.2f} s",
                ]
            )
    heads = ["machine", "bytes", "operations", "floor", "psi", "step", "step / floor", "10 epochs of 8 replicas"]
    return _table(heads, rows)


def _scale(directory: Path) -> str:
    rows = []
    for name in ("scale_cpu", "scale_h200"):
        figures = read(directory, name)
        rows += [
            [
                figures["device"],
                f"{row['nodes']:,}",
                f"{row['candidates']:,}",
                f"{row['auroc']:.4f}",
                f"{row['edge_prob_mae']:.4f}",
                f"{row['epoch_seconds']:.2f}",
                f"{row['of_linear']:.2f}",
                f"{row['train_seconds']:.0f} s",
                f"{row['gigabytes']:.1f} GB",
            ]
            for row in figures["results"]
        ]
    heads = ["machine", "nodes", "candidates", "AUROC", "MAE on theta", "s / epoch", "of linear", "training", "memory"]
    return _table(heads, rows)


def main() -> None:
    PAGE.write_text(page(RESULTS), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
