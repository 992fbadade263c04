"""The page docs/results/simultaneous.md, from the records alone; run ``python -m benchmarks.simultaneous.page``.

With ``--full`` the tables of every method on every kind, and of the settings of the peers, are printed instead.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.simultaneous.methods import METHODS, OFF, TACIT
from benchmarks.simultaneous.peers import PEERS
from benchmarks.simultaneous.records import RESULTS, read, values
from benchmarks.simultaneous.scores import GRAPHS, Figures
from benchmarks.simultaneous.systems import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "results" / "simultaneous.md"
WORDS = {
    "directed": "edge at any lag, directed",
    "undirected": "edge at any lag, undirected",
    "within": "edge at lag 0, directed",
    "within_undirected": "edge at lag 0, undirected",
}
HEAD = """# Effects within a step

tacit is compared with PCMCI+ (tigramite) and VARLiNGAM (lingam), on generated systems with and without edges at lag 0.
*tacit* is the evidence with `simultaneous = true`, and *option off* the evidence without it. There are 20 data sets of
each kind, on which nothing was chosen.

- *svar*: 10 nodes, 10 edges at lag 0 (weights .3 to .8) and 8 to 10 at lag 1 (.2 to .5), 500 or 2,000 rows.
- *lagged*: the same without edges at lag 0; with 15 nodes, 20 edges and 1,000 rows.
- *chain*: 30 gauges with travel times of .2 to 1.5 steps, interpolated between lags, or simulated at 1/20 step and
  sampled; 1,000 or 3,000 rows.
- *hidden driver*: edges at lag 1 only; an unseen series reaches three to five nodes within the step. 1,000 rows.
- *gates*: an edge acts with probability .3 to .9 at every step, at lag 0 and later. 2,000 rows.
- *mixed*: 5 to 20 nodes, 200 to 3,000 rows, random densities and noise; one in four without edges at lag 0.

`python -m benchmarks.simultaneous --seed-set test` makes the records, and `python -m benchmarks.simultaneous.page`
draws this page from them; with `--full` it prints every method on every kind, and the settings of the peers that were
tried. The generators are in `benchmarks/simultaneous/systems.py`.
"""
POOLED = """
## All kinds together

AUROC, means over the kinds. *VARLiNGAM, resampled* has 10 resamples; it is slow and was run on few kinds. Seconds are
those of one data set on one core of a shared machine.
"""
PAIRED = """
## Ranking of edges, kind by kind

AUROC of tacit, and in brackets that of the peer with the better mean. An undirected edge is a pair of nodes with an
edge in either direction. With Gaussian noise lagged parents, such as the own past of a node, make most directions
identifiable here. On systems that are only lagged the option has no cost. With a hidden driver it adds false edges at
lag 0.
"""
LISTS = """
## Listed pairs at lag 0, and calibration

Pairs per data set, in either direction: listed, and how many of them are false. tacit lists at a false discovery rate
of 10%, PCMCI+ what its graph has, VARLiNGAM what its pruning leaves; the last two do not control a rate. The
calibration error is that of `exists` of tacit, with ten bins of equal counts over all pairs of 20 data sets.
"""
SETTINGS = """
## Settings of the peers

They were chosen by AUROC on four data sets of each of three kinds with the seeds `choose`
(`python -m benchmarks.simultaneous.settings`); nothing was chosen on the chains. Taken: PCMCI+ with {alpha} and lags to
{pcmci}; VARLiNGAM with the number of lags up to {varlingam} that BIC chooses, {pruned}.
"""
Records = dict[str, dict[str, Figures]]


def page(seed_set: str = "test") -> str:
    """Return the text of the page."""
    records = {name: read(seed_set, name) for name in METHODS}
    parts = [HEAD, POOLED, *_pooled(records), PAIRED, *_paired(records), LISTS, *_lists(records)]
    return "\n".join([*parts, SETTINGS.format(**_chosen())]).rstrip() + "\n"


def full(seed_set: str = "test") -> str:
    """Return the tables of every method on every kind, and of the settings of the peers."""
    records = {name: read(seed_set, name) for name in METHODS}
    parts = [*_ranking(records), "", *_against_off(records), "", *_settings()]
    return "\n".join(parts)


def _pooled(records: Records) -> list[str]:
    lines = _head("method", "kinds", *WORDS.values(), "s")
    for name, found in records.items():
        means = [
            [each.mean() for one in found.values() if len(each := values(one, f"{graph}_auroc"))] for graph in GRAPHS
        ]
        seconds = np.mean([values(one, "seconds").mean() for one in found.values()])
        cells = (f"{np.mean(mean):.3f}" if mean else "-" for mean in means)
        lines.append(_row(name, str(len(found)), *cells, f"{seconds:.1f}"))
    return lines


def _ranking(records: Records) -> list[str]:
    lines = _head("kind", "method", *WORDS.values(), "data sets", "s")
    for kind, name, found in _rows(records):
        cells = [_both(found, graph) for graph in GRAPHS]
        seconds = f"{values(found, 'seconds').mean():.2f}"
        lines.append(_row(kind, name, *cells, _count(found), seconds))
    return lines


def _paired(records: Records) -> list[str]:
    lines, better = _head("kind", *WORDS.values(), "option off, directed"), []
    cells: dict[str, dict[str, str]] = {}
    for kind, graph, own, best, other, (mean, error) in paired(records):
        cells.setdefault(kind, {})[graph] = f"{own:.3f} ({best} {other:.3f})"
        if mean < -2 * error:
            better.append(f"{kind} ({best}, {WORDS[graph]}: {mean:+.3f} ± {error:.3f})")
    for kind, found in cells.items():
        off = _mean(records[OFF][kind], "directed_auroc", 3) if kind in records[OFF] else "-"
        lines.append(_row(kind, *(found.get(graph, "-") for graph in GRAPHS), off))
    said = "A peer is better by more than two paired standard errors on"
    return [*lines, "", f"{said}: {'; '.join(better) or 'none'}."]


def _lists(records: Records) -> list[str]:
    names = [TACIT, "PCMCI+", "VARLiNGAM"]
    heads = [f"{name}: {what}" for name in names for what in ("listed", "false")]
    lines = _head("kind", "true", *heads, "calibration error")
    for kind in (kind for kind in KINDS if kind in records[TACIT]):
        own = records[TACIT][kind]
        found = [records[name].get(kind) for name in names]
        cells = ["-" if one is None else _mean(one, key, 1) for one in found for key in ("listed", "false")]
        lines.append(_row(kind, _mean(own, "pairs", 1), *cells, _number(own.get("directed_calibration_error"))))
    return lines


def paired(
    records: Records,
) -> Iterator[tuple[str, str, float, str, float, tuple[float, float]]]:
    """Yield kind, edges, AUROC of tacit, the better peer and its AUROC, and the difference with its error."""
    for kind, ours in records[TACIT].items():
        for graph in GRAPHS:
            key = f"{graph}_auroc"
            peers = {name: records[name][kind] for name in PEERS if kind in records[name]}
            peers = {name: found for name, found in peers.items() if len(values(found, key))}
            if not peers or not len(values(ours, key)):
                continue
            best = max(peers, key=lambda name: values(peers[name], key).mean())
            own, other = (float(values(found, key).mean()) for found in (ours, peers[best]))
            yield kind, graph, own, best, other, difference(ours, peers[best], key)


def _against_off(records: Records) -> list[str]:
    lines = _head("kind", "AUROC", "average precision")
    for kind, pairs in against_off(records):
        lines.append(_row(kind, *(f"{mean:+.4f} ± {error:.4f}" for mean, error in pairs)))
    return lines


def against_off(records: Records) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield kind, and the differences of both scores to those without the option, each with its error."""
    for kind, ours in records[TACIT].items():
        if kind in records[OFF] and kind.startswith(("lagged", "hidden")):
            yield kind, [difference(ours, records[OFF][kind], f"directed_{key}") for key in ("auroc", "aupr")]


def _chosen() -> dict[str, str]:
    """Return the settings of the peers in words."""
    pcmci, varlingam = PEERS["PCMCI+"], PEERS["VARLiNGAM"]
    return {
        "alpha": f"alpha {pcmci.alpha}" if pcmci.alpha else "the alpha that it chooses",
        "pcmci": pcmci.lags,
        "varlingam": varlingam.lags,
        "pruned": "pruned" if varlingam.prune else "not pruned",
    }


def _settings() -> list[str]:
    record = json.loads((RESULTS / "settings.json").read_text(encoding="utf-8"))
    kinds = list(next(iter(record.values())))
    lines = _head("setting", *kinds, "s")
    for name, found in record.items():
        cells = [
            f"{found[kind]['directed_auroc']:.3f} / {found[kind]['undirected_auroc']:.3f}" if kind in found else "-"
            for kind in kinds
        ]
        lines.append(_row(name, *cells, f"{np.mean([one['seconds'] for one in found.values()]):.2f}"))
    return lines


def difference(ours: Figures, other: Figures, key: str) -> tuple[float, float]:
    """Return the mean difference over the data sets that both have, and its standard error."""
    mine, theirs = ({row["seed"]: row.get(key) for row in found["systems"]} for found in (ours, other))
    pairs = [mine[seed] - theirs[seed] for seed in mine if seed in theirs and None not in (mine[seed], theirs[seed])]
    return float(np.mean(pairs)), float(np.std(pairs, ddof=1) / len(pairs) ** 0.5) if len(pairs) > 1 else float("nan")


def _rows(records: Records) -> list[tuple[str, str, Figures]]:
    return [(kind, name, found[kind]) for kind in KINDS for name, found in records.items() if kind in found]


def _count(found: Figures) -> str:
    failed = sum("failed" in row for row in found["systems"])
    return f"{len(found['systems']) - failed}" + (f", {failed} failed" if failed else "")


def _both(found: Figures, graph: str) -> str:
    parts = [_mean(found, f"{graph}_{key}", 3) for key in ("auroc", "aupr")]
    return "-" if "-" in parts else " / ".join(parts)


def _mean(found: Figures, key: str, digits: int = 2) -> str:
    each = values(found, key)
    return f"{each.mean():.{digits}f}" if len(each) else "-"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _head(*cells: str) -> list[str]:
    return [_row(*cells), "|" + "---|" * len(cells)]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page, or print the full tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="print every method on every kind")
    if parser.parse_args().full:
        print(full())
        return
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
