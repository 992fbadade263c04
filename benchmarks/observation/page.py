"""The page docs/results/observation.md, from the records alone; run ``python -m benchmarks.observation.page``.

With ``--full`` the tables of all intervals and of every method on every system are printed instead.
"""

import argparse
import statistics
from pathlib import Path

import numpy as np
from benchmarks.observation.methods import GAUSSIAN, GLM, METHODS, TACIT
from benchmarks.observation.records import RESULTS, Figures, path_of, read, values
from benchmarks.observation.rejections import KINDS as TESTED
from benchmarks.observation.systems import KINDS, NULL

PAGE = Path(__file__).parents[2] / "docs" / "results" / "observation.md"
LEVEL_OF_TEST = 0.05
NOT_AN_OPTION = "gaussian_likelihood"  # Gaussian noise with the intervals of student_t: the effect of the noise alone
THETA_ORDER = [f"{kind}, psi {psi}" for kind in ("poisson", "bernoulli", "gaussian") for psi in ("known", "learned")]
HEAD = """# Counts, yes or no, heavy tails

Measurements of the [observation models](../how-to/observation.md) on systems whose edges are known.
`python -m benchmarks.observation.page` draws this page from the records; with `--full` it prints all intervals, and
every method on every system. The generators are in `benchmarks/observation/`.
"""
THETA = """
## Edge probabilities of the paper's system

12 nodes, 28,000 training pairs, the 50 edges of the paper's system with probabilities between .3 and .9. The output is
$f = b + s \\tanh(\\sum_j A_{ij} x_j \\psi)$; Poisson means lie between .7 and 20, probabilities of yes between .05 and
.95. Energy score at node scope in closed form, 8 graphs per pair, 10 epochs, one start.

- *bound*: no unbiased estimator has a smaller mean absolute error with psi known (the Fisher information, by
  enumeration of all graphs of a node).
- *error of theta*: mean absolute error over the true edges, mean ± deviation over data sets; *other pairs*: the same
  over pairs without an edge.
- *psi learned*: the weights, $b$ and $s$ are learned too. *gaussian*: Gaussian noise on the counts instead.
- *rejected*: data sets in which the fit test rejects on 2,000 test pairs, at the 5% level.

`python -m benchmarks.observation.theta` makes the records.
"""
LEVEL = """
## The fit test

Share of data sets with a p-value up to 5%, ± its standard error. Five nodes, eight random edges.

- *right*: the model that generated the data, all parameters known; 200 pairs (100 of counts).
- *gaussian*: on counts with means below 5, the right graph and means with Gaussian noise of the right variance; 500
  pairs.
- *gaussian fit*: `tacit fit` with `observation.kind = "gaussian"` on 1,500 rows of counts with means below 5.

`python -m benchmarks.observation.rejections` makes the records.
"""
TAILS = """
## Intervals of `probability`

Complete fits. *heavy tails*: VARs of 8 nodes with t noise of three degrees of freedom; of ten edges five always act and
five with a probability between .4 and .9. The others are gated networks of the next section. Where a source is yes or
no, the data contain little information about how often an edge acts, and intervals are wide.

- *coverage*: 95% intervals of `probability` that contain the truth, over true edges, ± its standard error. Where an
  edge always acts, 1 is in nearly every interval.
- *bias* and *error*: mean of the estimate less the truth, and of its absolute value.
- *gaussian*: intervals with `observation.kind = "gaussian"`. They are wide, and the estimate is 1 for many gated
  edges, which gives the large bias.

`python -m benchmarks.observation.intervals` makes the records. Seeds `{seeds}`.
"""
RANKING = """
## Which edges exist

10 nodes (*mixed kinds*: 12), 500 rows, about 12 edges; *gated* edges act with a probability between .4 and .9 at every
step. *tacit* chooses the observation model from the data; the column *chosen* has the choice in most of the data sets.
*Gaussian* is tacit with Gaussian noise. *GLM* is one generalised linear model per node with the true family
(statsmodels; ranked by Wald statistics, listed by Benjamini and Hochberg at 10%). Average precision; listed and false
edges per data set at a false discovery rate of 10%; calibration error of `exists` over all pairs. Seeds
`{seeds}`{untouched}. `python -m benchmarks.observation --seed-set {seeds}`.
"""
CHOICE = """
## The choice of an observation model

Is the same kind chosen on resamples of the same table? Two resamples of each table: ten blocks of a tenth of its rows,
or as many experiments, drawn with replacement. Ten gene networks of gnw20, three of DREAM4, Lorenz-96, a VAR, a network
of each kind and one of mixed kinds, on which nothing was chosen. *before*: a choice for each node alone.

`python -m benchmarks.observation.choice` makes the records.
"""


def page() -> str:
    """Return the text of the page."""
    theta, rejections = read(RESULTS / "theta.json"), read(RESULTS / "rejections.json")
    parts = [HEAD, THETA, *_theta(theta), LEVEL, *_rejections(rejections)]
    seeds, tails = read_tails()
    parts += [
        TAILS.format(seeds=seeds),
        *_tails({name: one for name, one in tails.items() if NOT_AN_OPTION not in name}),
    ]
    seeds, records = read_methods()
    untouched = ", on which nothing was chosen" if seeds == "test" else ""
    parts += [RANKING.format(seeds=seeds, untouched=untouched), *_ranking(records)]
    parts += [CHOICE, *_choice(*(read(RESULTS / f"choice-{name}.json")["test"] for name in ("before", "after")))]
    return "\n".join(parts).rstrip() + "\n"


def full() -> str:
    """Return the tables of all intervals, and of every method on every system."""
    return "\n".join([*_tails(read_tails()[1], every=True), "", *_every_method(read_methods()[1])])


def read_tails() -> tuple[str, dict[str, Figures]]:
    """Return the seeds and the records of the intervals."""
    found = ((seeds, read(RESULTS / f"{seeds}-intervals.json")) for seeds in ("test", "choose"))
    return next(one for one in found if one[1])


def read_methods() -> tuple[str, dict[str, dict[str, Figures]]]:
    """Return the seeds and the records of the methods."""
    found = ((seeds, {name: read(path_of(seeds, name)) for name in METHODS}) for seeds in ("test", "choose"))
    return next(one for one in found if any(one[1].values()))


def _choice(before: dict[str, Figures], after: dict[str, Figures]) -> list[str]:
    lines = _head("tables", "number", "all nodes the same", "nodes the same", "before: all nodes", "nodes")
    groups = list(dict.fromkeys(row["group"] for row in after.values()))
    always = [name for name in groups if all(row["same"] == row["resamples"] for row in _of(name, before, after))]
    for names in [*([name] for name in groups if name not in always), always, groups]:
        cells = []
        for records in (after, before):
            rows = [row for name in names for row in _of(name, records)]
            same, number = (sum(row[key] for row in rows) for key in ("same", "resamples"))
            cells += [f"{same} of {number}", f"{statistics.mean(row['nodes'] for row in rows):.1%}"]
        label = "all" if names is groups else ", ".join(names)
        lines.append(_row(label, str(sum(len(_of(name, after)) for name in names)), *cells))
    return lines


def _of(group: str, *records: dict[str, Figures]) -> list[Figures]:
    return [row for one in records for row in one.values() if row["group"] == group]


def _theta(records: dict[str, Figures]) -> list[str]:
    lines = _head("model", "data sets", "bound", "error of theta", "other pairs", "rejected")
    for name, found in sorted(records.items(), key=lambda one: THETA_ORDER.index(one[0])):
        runs = found["runs"]
        errors = [run["error"] for run in runs]
        lines.append(
            _row(
                name,
                str(len(runs)),
                f"{found['bound']:.4f}",
                _spread(errors),
                _spread([run["error_none"] for run in runs]),
                f"{sum(run['p_value'] <= LEVEL_OF_TEST for run in runs)} of {len(runs)}",
            )
        )
    reasons = sorted({reason for found in records.values() for run in found["runs"] for reason in run["reasons"]})
    said = [f"`identify`: {reason}" for reason in reasons[:3]] or ["`identify` warns about no edge."]
    return [*lines, "", *said, *(_psi(name, found["runs"]) for name, found in records.items() if "learned" in name)]


def _psi(name: str, runs: list[Figures]) -> str:
    """What was learned of psi beside theta."""
    _, scale, *weights = np.mean([run["psi"] for run in runs], 0)
    _, true_scale, *true_weights = runs[0]["true_psi"]
    bias = statistics.mean(run["bias"] for run in runs)
    return (
        f"{name[0].upper()}{name[1:]}: $s$ is {scale:.2f} on average (true: {true_scale:g}), the first weight "
        f"{weights[0]:.3f} (true: {true_weights[0]:g}), and the bias of theta {bias:+.4f}."
    )


def _rejections(records: dict[str, Figures]) -> list[str]:
    lines = _head("data", "model", "data sets", "rejected")
    for kind in (*TESTED, "gaussian", "gaussian fit"):
        if kind in records:
            found, right = records[kind], kind in TESTED
            share = found["rejected"]
            cells = (kind if right else "poisson", "right" if right else kind, f"{found['sets']:,}")
            lines.append(_row(*cells, f"{share:.1%} ± {found['std_error']:.1%}"))
    return lines


def _by_rows(record: tuple[str, Figures]) -> tuple[str, int]:
    """Return what tables of intervals are sorted by."""
    system, rest = record[0].split(": ")
    return system, int(rest.split()[1])


def _tails(records: dict[str, Figures], every: bool = False) -> list[str]:
    lines = _head("system", "noise", "rows", "sets", "edges", "number", "coverage", "width", "bias", "error")
    for name, found in sorted(records.items(), key=_by_rows):
        system, rest = name.split(": ")
        kind, rows = rest.split()
        done = [row for row in found["systems"] if "failed" not in row]
        sets = f"{len(done)}" + (f", {found['failed']} failed" if found["failed"] else "")
        for part in ("gated", "always", "all") if every else ("gated", "always"):
            if part in found:
                figures = found[part]
                coverage = f"{figures['held']:.1%} ± {figures['std_error']:.1%}"
                cells = (f"{figures[key]:.3f}" for key in ("width", "error", "distance"))
                lines.append(_row(system, kind, f"{int(rows):,}", sets, part, str(figures["edges"]), coverage, *cells))
    return lines


def _ranking(records: dict[str, dict[str, Figures]]) -> list[str]:
    heads = ["precision: tacit", "Gaussian", "GLM", "edges", "tacit: listed", "false", "GLM: listed", "false"]
    lines = _head("system", "chosen", *heads, "calibration error")
    for kind in KINDS:
        own = records[TACIT].get(kind)
        if own is not None and not kind.startswith(NULL):
            ranks = (_ranks(records[name][kind], "aupr") if kind in records[name] else "-" for name in METHODS)
            lists = [
                _mean(records[name][kind], key, 1) if kind in records[name] else "-"
                for name in (TACIT, GLM)
                for key in ("listed", "false")
            ]
            chosen = max(own["chosen"], key=own["chosen"].__getitem__) if own.get("chosen") else "-"
            several = "one for each node" if "," in chosen else chosen
            error = f"{own['calibration_error']:.3f}"
            lines.append(_row(kind, several, *ranks, _mean(own, "edges", 1), *lists, error))
    return [*lines, "", *_summary(records)]


def _ranks(found: Figures, *keys: str) -> str:
    return " / ".join(_mean(found, key, 3) for key in keys) if len(values(found, keys[0])) else "-"


def _every_method(records: dict[str, dict[str, Figures]]) -> list[str]:
    lines = _head("system", "method", "AUROC / AP", "edges", "listed", "false", "calibration error", "data sets", "s")
    for kind, name, found in _rows(records):
        failed = sum("failed" in row for row in found["systems"])
        count = f"{len(found['systems']) - failed}" + (f", {failed} failed" if failed else "")
        error = found.get("calibration_error")
        lines.append(
            _row(
                kind,
                name,
                _ranks(found, "auroc", "aupr"),
                *(_mean(found, key, 1) for key in ("edges", "listed", "false")),
                "-" if error is None else f"{error:.3f}",
                count,
                _mean(found, "seconds", 1),
            )
        )
    return [*lines, "", *_choices(records[TACIT])]


def _summary(records: dict[str, dict[str, Figures]]) -> list[str]:
    """Differences over all systems with edges, and false edges over all without."""
    text = []
    for other in (GAUSSIAN, GLM):
        pairs = [
            mine["aupr"] - theirs["aupr"]
            for kind, found in records[TACIT].items()
            if kind in records[other] and not kind.startswith(NULL)
            for mine, theirs in zip(found["systems"], records[other][kind]["systems"], strict=False)
            if mine.get("aupr") is not None and theirs.get("aupr") is not None and mine["seed"] == theirs["seed"]
        ]
        if len(pairs) > 1:
            error = np.std(pairs, ddof=1) / len(pairs) ** 0.5
            text.append(
                f"Average precision of {TACIT} minus that of {other}, over {len(pairs)} data sets: "
                f"{np.mean(pairs):+.4f} ± {error:.4f}."
            )
    for name in METHODS:
        counts = [values(found, "false") for kind, found in records[name].items() if kind.startswith(NULL)]
        if counts:
            every = np.concatenate(counts)
            text.append(
                f"Without any edge {name} listed an edge in {int((every > 0).sum())} of {len(every)} data sets."
            )
    return [" ".join(text)] if text else []


def _choices(records: dict[str, Figures]) -> list[str]:
    lines = _head("system", "chosen (data sets)")
    for kind in KINDS:
        if kind in records and "chosen" in records[kind]:
            chosen = ", ".join(f"{name}: {count}" for name, count in records[kind]["chosen"].items())
            lines.append(_row(kind, chosen))
    return lines


def _rows(records: dict[str, dict[str, Figures]]) -> list[tuple[str, str, Figures]]:
    return [(kind, name, found[kind]) for kind in KINDS for name, found in records.items() if kind in found]


def _spread(numbers: list[float]) -> str:
    deviation = f" ± {statistics.stdev(numbers):.4f}" if len(numbers) > 1 else ""
    return f"{statistics.mean(numbers):.4f}{deviation}"


def _mean(found: Figures, key: str, digits: int = 2) -> str:
    each = values(found, key)
    return f"{each.mean():.{digits}f}" if len(each) else "-"


def _head(*cells: str) -> list[str]:
    return [_row(*cells), "|" + "---|" * len(cells)]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page, or print the full tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="print all intervals, and every method on every system")
    if parser.parse_args().full:
        print(full())
        return
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
