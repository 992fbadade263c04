"""Listed edges that act in one part of the table only, or change their sign: when, and a sentence that names them."""

from dataclasses import replace
from typing import Any

import numpy as np

from tacit.assessment.evidence import ABSENT, find_changes
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.evidence import RegressionEvidence, all_pairs
from tacit.pipeline.situation_options import TIME

NAMED = 5
ADVICE = f"Use --depends-on {TIME} to see how often they act over time."


def with_changes(
    evidence: RegressionEvidence, dataset: Dataset, fdr: float, depends_on: tuple[str, ...] = ()
) -> RegressionEvidence:
    """Return the evidence with the times at which listed edges change.

    Pairs without time, edges without direction and effects within a step have none. ``depends_on`` is the option.
    """
    pairs, rules = all_pairs(dataset.split), evidence.rules
    if pairs.times is None or rules.symmetric or evidence.within is not None:
        return evidence
    screened, preparation = evidence.found.screened, dataset.preparation
    first, sizes = find_changes(
        *evidence.beside(pairs, preparation),
        screened,
        evidence.of_candidates(evidence.listed(fdr)),
        evidence.found.believed,
        evidence.form,
        horizon=preparation.horizon,
        observation=evidence.observation,
    )
    if not (first >= 0).any():
        return evidence
    rows, places = (first >= 0).nonzero().unbind(1)
    source, target = screened.sources[rows, places].tolist(), screened.targets[rows].tolist()
    at = [moment(number, dated=dataset.dated) for number in pairs.times[first[rows, places]].tolist()]
    numbers = [[round(value, 3) for value in pair] for pair in sizes[rows, places].tolist()]
    changes = [
        {"source": j, "target": i, "at": time, "before": before, "after": after}
        for j, i, time, (before, after) in zip(source, target, at, numbers, strict=True)
    ]
    table = evidence.table
    found = table.index.find(np.array(source), np.array(target))
    changed = np.full(len(table), "", dtype=object)
    changed[found] = at
    groups = [""] * len(source) if table["group"] is None else table["group"][found].tolist()
    names = [
        f"{group or rules.nodes[j]} -> {rules.nodes[i]}" for group, j, i in zip(groups, source, target, strict=True)
    ]
    said = _sentence(changes, names, dated=dataset.dated, advised=TIME not in depends_on)
    return replace(
        evidence,
        table=table.updated(changed=changed),
        notes=(*evidence.notes, said),
        changes=tuple(changes),
    )


def moment(number: float, *, dated: bool) -> str:
    """Return a time as text: a date, with the time of day unless it is midnight, or a number.

    >>> moment(1709596800.0, dated=True), moment(1709600400.0, dated=True), moment(512.0, dated=False)
    ('2024-03-05', '2024-03-05T01:00:00', '512')
    """
    if not dated:
        return f"{number:.6g}"
    found = np.datetime64(round(number), "s")
    return str(found.astype("datetime64[D]") if found == found.astype("datetime64[D]") else found)


def _sentence(changes: list[dict[str, Any]], names: list[str], *, dated: bool, advised: bool) -> str:
    """Return which edges act in a part of the table, and which change their sign.

    >>> parts = [{"at": "512", "before": 2.0, "after": 0.1}, {"at": "90", "before": -1.0, "after": 1.2}]
    >>> _sentence(parts, ["a -> b", "b -> c"], dated=False, advised=False)
    '1 edge acts in a part of the table only: a -> b until time 512. 1 edge changes its sign: b -> c at time 90.'
    """
    partly, signs = list[str](), list[str]()
    for change, name in zip(changes, names, strict=True):
        at = change["at"] if dated else f"time {change['at']}"
        before, after = change["before"], change["after"]
        if before * after < 0 and min(abs(before), abs(after)) > ABSENT * max(abs(before), abs(after)):
            signs.append(f"{name} at {at}")
        else:
            partly.append(f"{name} {'until' if abs(before) > abs(after) else 'from'} {at}")
    said = []
    for found, one, several in (
        (partly, "acts in a part of the table only", "act in a part of the table only"),
        (signs, "changes its sign", "change their sign"),
    ):
        if found:
            count = f"1 edge {one}" if len(found) == 1 else f"{len(found):,} edges {several}"
            more = f"; and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
            said.append(f"{count}: {'; '.join(found[:NAMED])}{more}.")
    return " ".join([*said, *([ADVICE] if partly and advised else [])])
