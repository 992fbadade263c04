"""Compare settings of the other methods on the seeds ``CHOOSE``; run ``python -m benchmarks.simultaneous.settings``.

Prints a table and puts it in ``benchmarks/results/simultaneous/settings.json``, kind by kind.
"""

import argparse
import json

from benchmarks.simultaneous.peers import VARIANTS
from benchmarks.simultaneous.records import RESULTS, line, study, values
from benchmarks.simultaneous.scores import GRAPHS
from benchmarks.simultaneous.systems import CHOOSE

SETS = {  # data sets of each kind
    "svar gaussian 500": 4,
    "svar laplace 500": 4,
    "svar laplace 2000": 4,
    "chain interpolated 1000": 2,
    "chain sampled 1000": 2,
}
RECORD = RESULTS / "settings.json"
KEYS = (*(f"{graph}_auroc" for graph in GRAPHS), "seconds")


def main() -> None:
    """Run every variant on a few systems of a few kinds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", nargs="+", choices=list(SETS), default=list(SETS))
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    for kind in parser.parse_args().on:
        for name, method in VARIANTS.items():
            if kind.startswith("chain") and "resamples" in name:
                continue  # minutes for each
            found = study(method, kind, CHOOSE[: SETS[kind]])
            means = {key: round(float(values(found, key).mean()), 3) for key in KEYS}
            record.setdefault(name, {})[kind] = means
            print(line(kind, name, found), flush=True)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
