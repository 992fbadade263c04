"""The records of the studies: a file for each study, in it a record for each setting."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from benchmarks.situations.systems import NUM_PAIRS
from joblib import Parallel, delayed

RESULTS = Path(__file__).parents[1] / "results" / "situations"
FIRST_TEST_SEED = 1000
Figures = dict[str, Any]


def read(path: Path) -> Figures:
    """Return the records of a file, none if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write(path: Path, key: str, found: Figures) -> None:
    """Put one record in a file, a line for each row of its lists."""
    records = read(path) | {key: rounded(found)}
    parts = []
    for name in sorted(records):
        fields = []
        for field, value in records[name].items():
            rows = isinstance(value, list) and value and isinstance(value[0], dict)
            text = "[\n" + ",\n".join(f"   {json.dumps(row)}" for row in value) + "\n  ]" if rows else json.dumps(value)
            fields.append(f"  {json.dumps(field)}: {text}")
        parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n }")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def rounded(value: Any) -> Any:
    """Return the same with five digits after the point."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 5) if isinstance(value, float) else value


def run_study(
    description: str | None,
    kinds: list[str],
    one: Callable[..., Figures],
    summary: Callable[[list[Figures]], Figures],
    record: Path,
) -> None:
    """Run ``one`` on data sets of each kind, psi known and learned, and keep a record after every few of them."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="*", default=kinds)
    parser.add_argument("--psi", nargs="*", default=["known", "learned"])
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--first", type=int, default=FIRST_TEST_SEED)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=NUM_PAIRS)
    parser.add_argument("--add", action="store_true", help="keep the other data sets of the record")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for kind in options.kind:
        for psi in options.psi:
            key, last, found = f"{kind}, psi {psi}", options.first + options.sets, Figures()
            kept = read(record).get(key, {}).get("rows", []) if options.add else []
            rows = [row for row in kept if row["seed"] not in range(options.first, last)]
            for first in range(options.first, last, 2 * options.jobs):
                seeds = range(first, min(first + 2 * options.jobs, last))
                rows += Parallel(n_jobs=options.jobs)(
                    delayed(one)(kind, psi, seed, device, options.pairs) for seed in seeds
                )
                found = {"device": device, "pairs": options.pairs * 4 // 5, **summary(rows), "rows": rows}
                write(record, key, found)
            print(key, {name: value for name, value in found.items() if name != "rows"}, flush=True)
