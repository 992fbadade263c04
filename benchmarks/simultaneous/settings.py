"""Compare settings of the other methods on the seeds ``CHOOSE``; run ``python -m benchmarks.simultaneous.settings``.

Prints a table and writes ``benchmarks/results/simultaneous/settings.json``.
"""

import json

from benchmarks.simultaneous.peers import VARIANTS
from benchmarks.simultaneous.records import RESULTS, line, study, values
from benchmarks.simultaneous.scores import GRAPHS
from benchmarks.simultaneous.systems import CHOOSE

KINDS_TO_CHOOSE = (
    "svar gaussian 500",
    "svar laplace 500",
    "svar laplace 2000",
    "chain interpolated 1000",
    "chain sampled 1000",
)
SETS = 4


def main() -> None:
    """Run every variant on a few systems of a few kinds."""
    record: dict[str, dict[str, dict[str, float]]] = {}
    for kind in KINDS_TO_CHOOSE:
        for name, method in VARIANTS.items():
            if kind.startswith("chain") and "resamples" in name:
                continue  # minutes for each
            found = study(method, kind, CHOOSE[:SETS])
            means = {key: values(found, key).mean() for key in (*(f"{one}_auroc" for one in GRAPHS), "seconds")}
            record.setdefault(name, {})[kind] = {key: round(float(mean), 4) for key, mean in means.items()}
            print(line(kind, name, found), flush=True)
    (RESULTS / "settings.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
