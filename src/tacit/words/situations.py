"""How edges depend on the situation, and their regimes, in sentences for the answer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.edges import EdgesBy

if TYPE_CHECKING:
    from tacit.assessment.regimes import RegimeFit


def none_tested(names: Sequence[str], listed: int, *, intervals: bool) -> str:
    """Return why no edge was tested.

    >>> none_tested(["hour"], 3, intervals=True)
    'Whether edges depend on hour was not tested: no listed edge acts at times (each interval reaches 0 or 1).'
    """
    near = "each interval reaches 0 or 1" if intervals else "each probability is near 0 or 1"
    why = f"no listed edge acts at times ({near})" if listed else "no edge is listed"
    return f"Whether edges depend on {_either(names)} was not tested: {why}."


def varying_sentence(
    names: Sequence[str],
    tested: int,
    varying: int,
    fdr: float,
    rows: EdgesBy | None,
    nodes: Sequence[str],
    arrow: str = "->",
) -> str:
    """Return how many of the tested edges vary, or were trained to, with the one that varies most as an example.

    >>> rows = EdgesBy(source=[0, 0], target=[1, 1], by=["hour"] * 2, value=["2", "14"], probability=[0.11, 0.92])
    >>> varying_sentence(["hour"], 5, 1, 0.1, rows, ["river", "lake"])
    '1 of 5 tested edges depends on hour (false discovery rate 10%): river -> lake acts with probability 0.92 at hour \
14 and 0.11 at hour 2.'
    >>> varying_sentence(["hour"], 12, 0, 0.1, None, [])
    'No edge depends on hour: 12 edges were tested at a false discovery rate of 10%.'
    >>> varying_sentence(["hour"], 0, 1, 0.1, rows, ["river", "lake"]).partition(",")[0]
    '1 edge was trained to depend on hour'
    """
    if rows is not None and not tested:
        edges = f"{varying:,} edge{' was' if varying == 1 else 's were'}"
        return f"{edges} trained to depend on {_either(names)}, for example {_example(rows, nodes, arrow)}."
    edges = f"{tested:,} edge{'' if tested == 1 else 's'}"
    if not varying or rows is None:
        were = "was" if tested == 1 else "were"
        return f"No edge depends on {_either(names)}: {edges} {were} tested at a false discovery rate of {fdr:.0%}."
    verb = "depends" if varying == 1 else "depend"
    counted = f"{varying:,} of {tested:,} tested edges {verb}" if tested > 1 else "The one tested edge depends"
    example = f"{': ' if varying == 1 else ', for example '}{_example(rows, nodes, arrow)}"
    return f"{counted} on {_either(names)} (false discovery rate {fdr:.0%}){example}."


def _example(rows: EdgesBy, nodes: Sequence[str], arrow: str) -> str:
    """Return the edge and variable whose probability varies most, with its highest and lowest value."""
    groups: dict[tuple[int, int, str], list[tuple[float, str]]] = {}
    for source, target, by, value, probability in zip(
        rows.source, rows.target, rows.by, rows.value, rows.probability, strict=True
    ):
        groups.setdefault((source, target, by), []).append((probability or 0.0, value))
    (source, target, by), found = max(groups.items(), key=lambda one: max(one[1])[0] - min(one[1])[0])
    high, low = max(found), min(found)
    return (
        f"{nodes[source]} {arrow} {nodes[target]} acts with probability {high[0]:.2f} at {by} {high[1]} and "
        f"{low[0]:.2f} at {by} {low[1]}"
    )


def _either(names: Sequence[str]) -> str:
    """Return names as in "hour, wind or season"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


NO_BLOCK = {
    "rows": "Regimes were not looked for: no node has two listed edges, and a single edge has no regimes.",
    "all": "Regimes were not looked for: fewer than two edges are listed, and a single edge has no regimes.",
}


NO_GATES = {
    "rows": "Regimes were not looked for: no node has two listed edges that act at times.",
    "all": "Regimes were not looked for: fewer than two listed edges act at times.",
}


def one_regime(found: "RegimeFit") -> str:
    """Return that one regime is enough, and by how much two are better."""
    step = found.steps[-1]
    change = "lower, which is less than two standard errors" if step.difference.mean < 0 else "higher"
    size = f"{abs(step.difference.mean):.2g} +- {step.difference.std_error:.2g}"
    return f"One regime is enough: with {step.num_regimes} the validation loss is {size} {change}."


def _listed(words: Sequence[str]) -> str:
    """Return words as in "a, b and c"."""
    return " and ".join(", ".join(words).rsplit(", ", 1))


def regime_sentence(
    rows: EdgesBy, weights: Sequence[Sequence[float]], blocks: Sequence[str], nodes: Sequence[str], arrow: str = "->"
) -> str:
    """Return the number of regimes, their weights, and two edges that differ between them.

    >>> rows = EdgesBy(source=[0, 0, 1, 1], target=[2] * 4, by=["regime"] * 4, value=["1", "2"] * 2,
    ...     probability=[0.9, 0.1, 0.8, 0.2])
    >>> regime_sentence(rows, [[0.7, 0.3]], ["all"], ["a", "b", "c"])
    '2 regimes were found, with weights 0.70 and 0.30. For example a -> c acts with probability 0.90 in regime 1 and \
0.10 in regime 2, and b -> c with 0.80 and 0.20.'
    """
    count = len(weights[0])
    edges = [
        (rows.source[at], rows.target[at], [value or 0.0 for value in rows.probability[at : at + count]])
        for at in range(0, len(rows), count)
    ]
    whole = len(blocks) == 1 and blocks[0] == "all"

    def spread(edge: tuple[int, int, list[float]]) -> float:
        return max(edge[2]) - min(edge[2])

    groups: dict[int, list[tuple[int, int, list[float]]]] = {}
    for edge in sorted(edges, key=spread, reverse=True):
        groups.setdefault(0 if whole else edge[1], []).append(edge)
    block, best = max(groups.items(), key=lambda one: spread(one[1][1]))
    (source, target, first), (other, its, second) = best[:2]
    said = _listed([f"{weight:.2f}" for weight in weights[block]])
    each = _listed([f"{value:.2f} in regime {number}" for number, value in enumerate(first, 1)])
    others = _listed([f"{value:.2f}" for value in second])
    where = f", with weights {said}" if whole else " of the edges into each node"
    example = "For example" if whole else f"For example at {nodes[block]} (weights {said})"
    return (
        f"{count} regimes were found{where}. {example} {nodes[source]} {arrow} {nodes[target]} acts with probability "
        f"{each}, and {nodes[other]} {arrow} {nodes[its]} with {others}."
    )
