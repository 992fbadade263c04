"""The page docs/results/simultaneous.md, from the records alone; run ``python -m benchmarks.simultaneous.page``."""

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

This page compares tacit with PCMCI+ (tigramite) and VARLiNGAM (lingam), on generated systems with edges at lag 0 and on
systems without such edges. `tacit` is the evidence with `simultaneous = true`, and `tacit, option off` the evidence
without it. There are 20 data sets of each kind, with the seeds `test`, on which nothing was chosen. `python -m
benchmarks.simultaneous --seed-set test` makes the records, and `python -m benchmarks.simultaneous.page` draws this page
from them. The generators are in `benchmarks/simultaneous/systems.py`.

- *svar*: 10 nodes, 10 edges at lag 0 (weights .3 to .8) and 8 to 10 at lag 1 (.2 to .5), 500 or 2,000 rows; the
  noise is named, `scales` is Gaussian with deviations between .5 and 2. *own*: the weights of the own past lie between
  0 and .8 instead of .4.
- *lagged*: the same without edges at lag 0; with 15 nodes, 20 edges and 1,000 rows.
- *chain*: 30 gauges with travel times of .2 to 1.5 steps, interpolated between lags, or simulated at 1/20 step and
  sampled; 1,000 or 3,000 rows.
- *hidden driver*: edges at lag 1 only; an unseen series reaches three to five nodes within the step. 1,000 rows.
- *gates*: an edge acts with probability .3 to .9 at every step, at lag 0 and later. 2,000 rows.
- *mixed*: 5 to 20 nodes, 200 to 3,000 rows, random densities and noise; one in four without edges at lag 0.
"""
RANKING = """
## Ranking of edges

AUROC / average precision, mean over data sets. An undirected edge is a pair of nodes with an edge in either direction.
With Gaussian noise the direction at lag 0 is identifiable only where lagged parents give it; the own past of a node is
such a parent, so that most directions are identifiable here. Seconds are those of one data set on one core of a shared
machine. *failed*: the method raised an error; the other figures leave these out. A kind without a line of a method was
not run with it.
"""
PAIRED = """
## Against the better peer

AUROC of tacit minus that of the peer with the better mean, ± the paired standard error over data sets. Negative: the
peer is better.
"""
LISTS = """
## Listed pairs at lag 0, and calibration

Pairs per data set, in either direction. tacit lists at a false discovery rate of 10%, PCMCI+ what its graph has,
VARLiNGAM what its pruning leaves; the last two do not control a rate. The last three columns are calibration errors: of
`exists`, of edges in either direction, and of edges at lag 0, with ten bins of equal counts over all pairs of 20 data
sets.
"""
LAGGED = """
## Systems without effects within a step

AUROC and average precision of directed edges with the option minus those without it, ± the paired standard error. The
option has no cost on systems that are only lagged. With a hidden driver it adds false edges at lag 0.
"""
SETTINGS = """
## Settings of the peers

AUROC at any lag, directed / undirected, on four data sets of each kind with the seeds `choose`
(`python -m benchmarks.simultaneous.settings`). Nothing was chosen on the chains.
{chosen}
"""
CHOSEN = """Taken: PCMCI+ with {alpha} and lags to {pcmci}; VARLiNGAM with the number of lags up to {varlingam} that BIC
chooses, {pruned}. *VARLiNGAM, resampled* has 10 resamples; it is slow and was run on few kinds."""


def page(seed_set: str = "test") -> str:
    """Return the text of the page."""
    records = {name: read(seed_set, name) for name in METHODS}
    parts = [HEAD, RANKING, *_ranking(records), LISTS, *_lists(records)]
    if records[TACIT]:
        parts += [PAIRED, *_paired(records), LAGGED, *_against_off(records)]
    return "\n".join([*parts, *_settings()]).rstrip() + "\n"


def _ranking(records: dict[str, dict[str, Figures]]) -> list[str]:
    lines = _head("kind", "method", *WORDS.values(), "data sets", "s")
    for kind, name, found in _rows(records):
        cells = [_both(found, graph) for graph in GRAPHS]
        seconds = f"{values(found, 'seconds').mean():.2f}"
        lines.append(_row(kind, name, *cells, _count(found), seconds))
    return lines


def _lists(records: dict[str, dict[str, Figures]]) -> list[str]:
    errors = [f"{graph}_calibration_error" for graph in ("directed", "undirected", "within")]
    lines = _head("kind", "method", "true", "listed", "false", "`exists`", "either direction", "lag 0")
    for kind, name, found in _rows(records):
        if name != OFF:
            cells = [_mean(found, key) for key in ("pairs", "listed", "false")]
            lines.append(_row(kind, name, *cells, *(_number(found.get(key)) for key in errors)))
        else:
            lines.append(_row(kind, name, *["-"] * 3, _number(found.get(errors[0])), "-", "-"))
    return lines


def _paired(records: dict[str, dict[str, Figures]]) -> list[str]:
    lines, better = _head("kind", "edges", "tacit", "better peer", "its AUROC", "difference"), []
    for kind, graph, own, best, other, (mean, error) in paired(records):
        lines.append(_row(kind, WORDS[graph], f"{own:.3f}", best, f"{other:.3f}", f"{mean:+.4f} ± {error:.4f}"))
        if mean < -2 * error:
            better.append(f"{kind} ({best}, {WORDS[graph]})")
    return [*lines, "", f"A peer is better by more than two standard errors on: {'; '.join(better) or 'none'}."]


def paired(
    records: dict[str, dict[str, Figures]],
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


def _against_off(records: dict[str, dict[str, Figures]]) -> list[str]:
    lines = _head("kind", "AUROC", "average precision")
    for kind, pairs in against_off(records):
        lines.append(_row(kind, *(f"{mean:+.4f} ± {error:.4f}" for mean, error in pairs)))
    return lines


def against_off(records: dict[str, dict[str, Figures]]) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield kind, and the differences of both scores to those without the option, each with its error."""
    for kind, ours in records[TACIT].items():
        if kind in records[OFF] and kind.startswith(("lagged", "hidden")):
            yield kind, [difference(ours, records[OFF][kind], f"directed_{key}") for key in ("auroc", "aupr")]


def _settings() -> list[str]:
    path = RESULTS / "settings.json"
    if not path.is_file():
        return []
    record = json.loads(path.read_text(encoding="utf-8"))
    pcmci, varlingam = PEERS["PCMCI+"], PEERS["VARLiNGAM"]
    chosen = CHOSEN.format(
        alpha=f"alpha {pcmci.alpha}" if pcmci.alpha else "the alpha that it chooses",
        pcmci=pcmci.lags,
        varlingam=varlingam.lags,
        pruned="pruned" if varlingam.prune else "not pruned",
    )
    kinds = list(next(iter(record.values())))
    lines = [SETTINGS.format(chosen=chosen), *_head("setting", *kinds, "s")]
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


def _rows(records: dict[str, dict[str, Figures]]) -> list[tuple[str, str, Figures]]:
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
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
