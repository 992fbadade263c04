"""Which edges exist in series of counts, yes or no, categories, positive numbers? Methods side by side.

    python -m benchmarks.observation --method tacit --on counts "no edges" --seed-set choose --count 5
    python -m benchmarks.observation --seed-set test

Writes ``benchmarks/results/observation/SEEDS-METHOD.json``, a record for each kind, at once: kinds that are run again
replace their records. ``--on`` takes names of ``systems.KINDS`` or their beginnings.
"""

import argparse

from benchmarks.observation.methods import METHODS
from benchmarks.observation.records import line, path_of, study, write
from benchmarks.observation.systems import KINDS, SEEDS


def main() -> None:
    """Run the chosen methods on the chosen kinds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--on", nargs="+", default=[""])
    parser.add_argument("--seed-set", choices=list(SEEDS), default="choose")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="data sets at a time; seconds are those of one data set")
    options = parser.parse_args()
    kinds = [kind for kind in KINDS if kind.startswith(tuple(options.on))]
    if not kinds:
        parser.error(f"--on must be the beginning of one of {', '.join(KINDS)}, got {options.on}; correct it")
    for kind in kinds:
        for name in options.method:
            found = study(METHODS[name], kind, SEEDS[options.seed_set][: options.count], options.jobs)
            write(path_of(options.seed_set, name), kind, found)
            print(line(kind, name, found), flush=True)


if __name__ == "__main__":
    main()
