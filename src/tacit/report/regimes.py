"""The regimes of a run: their weights in words, and their posterior over time, as the page embeds it."""

from typing import Any

import numpy as np
from jaxtyping import Float

from tacit.edges import REGIME
from tacit.records import Run
from tacit.report.drawing import COLOURS
from tacit.report.embedding import SMALL, packed
from tacit.report.situations import SituationTable

SHARES = 1000  # a probability of 1 as the page stores it
ALL = ["all"]  # names of the blocks where all edges share their regimes


def has_own_regimes(run: Run) -> bool:
    """Has each node regimes of its own?"""
    return bool(run.record.situations.get("blocks", ALL) != ALL)


def blocks_shown(run: Run, tables: list[SituationTable]) -> list[tuple[int, str]]:
    """Return number and name of the blocks of edges that have regimes: others have no edge in ``edges_by.csv``."""
    names = run.record.situations.get("blocks", [])
    if not has_own_regimes(run):
        return list(enumerate(names))
    targets = {int(node) for table in tables if table.kind == REGIME for node in table.target}
    return [(number, name) for number, name in enumerate(names) if number in targets]


def value_words(run: Run, table: SituationTable) -> list[str]:
    """Return the values that the control lists; regimes with their weights.

    Where each node has its own regimes, the smallest and the largest weight over the nodes.
    """
    weights = np.array(run.record.situations.get("weights") or [], dtype=float)
    if table.kind != REGIME or not weights.size:
        return list(table.labels) if table.kind != REGIME else [table.named(k) for k in range(len(table.labels))]
    if has_own_regimes(run):
        weights = weights[np.unique(table.target)]
    low, high = 100 * weights.min(0), 100 * weights.max(0)
    shares = [f"{a:.0f}%" if round(a) == round(b) else f"{a:.0f}% to {b:.0f}%" for a, b in zip(low, high, strict=True)]
    return [f"{table.named(k)} ({shares[int(label) - 1]})" for k, label in enumerate(table.labels)]


def packed_posterior(run: Run) -> dict[str, Any] | None:
    """Return the posterior of the regimes over time; None where there is none."""
    found = run.record.situations.get("posterior")
    if not found or not len(found.get("times", ())):
        return None
    probs: Float[np.ndarray, "time block regime"] = np.array(found["probs"], dtype=float)
    return {
        "times": found["times"],
        "series": found.get("series"),
        "parts": found.get("parts"),
        "blocks": run.record.situations["blocks"],
        "count": probs.shape[2],
        "scale": SHARES,
        "colours": list(COLOURS),
        "probs": packed(np.rint(SHARES * probs), SMALL),
    }


def situations_said(run: Run, tables: list[SituationTable]) -> list[str]:
    """Return sentences: how many edges vary with what, what regimes are, and what limits the answer."""
    situations = run.record.situations
    variables = [table.by for table in tables if table.kind != REGIME]
    said = []
    if variables:
        varying = len({ends for table in tables for ends in zip(table.source, table.target, strict=True)})
        tested, fdr = situations.get("tested"), situations.get("fdr")
        of = "" if not tested else f" of {_count(tested, 'tested edge')}"
        count = f"{varying:,}{of}" if of else _count(varying, "edge")
        rate = "" if fdr is None or not tested else f" (false discovery rate {100 * fdr:g}%)"
        said.append(f"{count} {'varies' if varying == 1 else 'vary'} with {' and '.join(variables)}{rate}.")
    if len(variables) > 1:
        said.append("The probabilities by one variable have the other variables at their average.")
    for table in tables:
        if table.kind == REGIME:
            said.append(_regimes_said(len(table.labels), own=has_own_regimes(run)))
    return said + list(situations.get("notes", []))


def _regimes_said(count: int, *, own: bool) -> str:
    if own:
        return (
            f"Each node has {count} regimes of its own for the edges into it: regime 1 of a node is its most frequent "
            "one, and regime 1 of two nodes need not hold at the same time."
        )
    return (
        f"The graph has {count} regimes: at each time one of them holds for all edges; regime 1 is the most frequent."
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
