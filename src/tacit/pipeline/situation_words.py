"""How edges depend on the situation, and their regimes, in sentences."""

from collections.abc import Sequence

from tacit.records import EdgesBy


def none_tested(names: Sequence[str]) -> str:
    """Say why no edge was tested."""
    return (
        f"Whether edges depend on {_either(names)} was not tested: no listed edge acts at times (each interval reaches "
        "0 or 1)."
    )


def varying_sentence(
    names: Sequence[str],
    tested: int,
    varying: int,
    fdr: float,
    rows: EdgesBy | None,
    nodes: Sequence[str],
    arrow: str = "->",
) -> str:
    """Say how many of the tested edges vary, with the one that varies most as an example.

    >>> rows = EdgesBy(source=[0, 0], target=[1, 1], by=["hour"] * 2, value=["2", "14"], probability=[0.11, 0.92])
    >>> varying_sentence(["hour"], 5, 1, 0.1, rows, ["river", "lake"])
    '1 of 5 tested edges depends on hour (false discovery rate 10%): river -> lake acts with probability 0.92 at hour \
14 and 0.11 at hour 2.'
    >>> varying_sentence(["hour"], 12, 0, 0.1, None, [])
    'No edge depends on hour: 12 edges were tested at a false discovery rate of 10%.'
    """
    edges = f"{tested:,} edge{'' if tested == 1 else 's'}"
    if not varying or rows is None:
        were = "was" if tested == 1 else "were"
        return f"No edge depends on {_either(names)}: {edges} {were} tested at a false discovery rate of {fdr:.0%}."
    verb = "depends" if varying == 1 else "depend"
    counted = f"{varying:,} of {tested:,} tested edges {verb}" if tested > 1 else "The one tested edge depends"
    example = f"{': ' if varying == 1 else ', for example '}{_example(rows, nodes, arrow)}"
    return f"{counted} on {_either(names)} (false discovery rate {fdr:.0%}){example}."


def _example(rows: EdgesBy, nodes: Sequence[str], arrow: str) -> str:
    """Return the edge and the variable over which a probability varies most, where it is highest and lowest."""
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
