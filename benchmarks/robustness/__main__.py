"""What do methods list where an assumption of theirs is broken?

    python -m benchmarks.robustness --methods tacit --kinds trend,cycle --first 10000 --sets 20
    python -m benchmarks.robustness --methods tacit,PCMCI --truth none,edges --sets 100
    python -m benchmarks.robustness.page

Each answer is appended to ``--out`` at once, and data sets that are there are skipped. The figures of each kind are
printed and, without ``--out``, their summaries are written to ``benchmarks/results/robustness``. With ``--name`` the
answers of one method get another name: ``--methods tacit --name before``. The package is the one that Python finds
first: ``PYTHONPATH=OTHER/src:. python -m benchmarks.robustness`` runs another version of it.
"""

import argparse
import json
from pathlib import Path

import torch
from benchmarks.existence.evidence_study import read_lines
from benchmarks.robustness.methods import METHODS, TACIT
from benchmarks.robustness.records import RAW, line, path_of, scored, summary, write
from benchmarks.robustness.systems import KINDS, TEST, make, truths


def names_in(text: str) -> list[str]:
    return [one for one in text.split(",") if one]


def main() -> None:
    """Run the chosen methods on the chosen kinds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", type=names_in, default=[TACIT], help=f"of {', '.join(METHODS)}")
    parser.add_argument("--kinds", type=names_in, default=list(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--truth", type=names_in, help="of none, edges, plain; all that a kind has")
    parser.add_argument("--first", type=int, default=TEST[0], help="first seed")
    parser.add_argument("--sets", type=int, default=10, help="number of seeds")
    parser.add_argument("--name", help="name of the answers, if it is not that of the method")
    parser.add_argument("--out", type=Path, default=RAW, help="folder of the answers")
    options = parser.parse_args()
    for what, given, known in (("methods", options.methods, METHODS), ("kinds", options.kinds, KINDS)):
        if wrong := [one for one in given if one not in known]:
            parser.error(f"--{what} must be of {', '.join(known)}, got {', '.join(wrong)}; correct it")
    if options.name and len(options.methods) > 1:
        parser.error(f"--name requires one method, got {', '.join(options.methods)}; leave it out")
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    seeds = range(options.first, options.first + options.sets)
    for kind in options.kinds:
        for truth in (one for one in truths(kind) if options.truth is None or one in options.truth):
            for method in options.methods:
                name = options.name or method
                raw = path_of(options.out, name, ".jsonl")
                rows = [row for row in read_lines(raw) if (row["kind"], row["truth"]) == (kind, truth)]
                rows = [row for row in rows if row["seed"] in seeds]
                for seed in sorted(set(seeds) - {row["seed"] for row in rows}):
                    rows.append(scored(METHODS[method], make(kind, seed, truth), truth, seed))
                    with raw.open("a", encoding="utf-8") as file:
                        print(json.dumps(rows[-1]), file=file)
                print(line(kind, truth, name, summary(rows)), flush=True)
    if options.out == RAW:
        for method in options.methods:
            write(options.name or method, RAW)


if __name__ == "__main__":
    main()
