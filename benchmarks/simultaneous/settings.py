"""Compare settings of the other methods on the seeds ``CHOOSE``; run ``python -m benchmarks.simultaneous.settings``.

Prints a table and puts it in ``benchmarks/results/simultaneous/settings.json``, kind by kind.
"""

import argparse
import json

from benchmarks.simultaneous.peers import VARIANTS
from benchmarks.simultaneous.records import RESULTS, line, study, values
from benchmarks.simultaneous.scores import GRAPHS
from benchmarks.simultaneous.systems import CHOOSE

KINDS_TO_CHOOSE = ("svar gaussian 500", "svar laplace 500", "svar laplace 2000")
SETS = 4  # data sets of each kind
RECORD = RESULTS / "settings.json"
KEYS = (*(f"{graph}_auroc" for graph in GRAPHS), "seconds")


def main() -> None:
    """Run every variant on a few systems of a few kinds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", nargs="+", choices=KINDS_TO_CHOOSE, default=KINDS_TO_CHOOSE)
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    for kind in parser.parse_args().on:
        for name, method in VARIANTS.items():
            found = study(method, kind, CHOOSE[:SETS])
            means = {key: round(float(values(found, key).mean()), 3) for key in KEYS}
            record.setdefault(name, {})[kind] = means
            print(line(kind, name, found), flush=True)
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
