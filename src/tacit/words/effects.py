"""What the effect of a change means: under which condition it is an intervention, and what its intervals contain."""

from collections.abc import Sequence

from tacit.assessment.evidence import CORRELATED, DRIVER

IF = (
    "This is the effect of an intervention only if no common driver outside the table acts on {nodes} and on other "
    "nodes, and effects take at least one step of the table"
)
NOT_TESTED = "this run did not test for common drivers"
NO_SIGN = "the fit found no sign of either"
SIGNS = {
    DRIVER: "the fit found a shared driver outside the table",
    CORRELATED: "residuals of the fit are correlated within a step, which a common driver or faster effects cause",
}
WEIGHTS = "the uncertainty of the weights and of how often edges act, {exist}"
EXIST = "and of which edges exist ({count} uncertain, each drawn with its probability)"
ALL_CERTAIN = "and of which edges exist, all of which are certain"
NOT_EXIST = "not that of which edges exist, which was not tested"
GRAPHS = "the uncertainty of which edges exist ({count} uncertain, each drawn with its probability), not of the weights"
NONE = "There are no intervals: this model has no uncertainty of its weights, and no uncertain edge."


def condition(nodes: Sequence[str], signs: Sequence[str] | None) -> str:
    """Return under which condition an effect is that of an intervention, and what the fit found about it.

    ``signs``  names of the findings of the evidence; None if there was no test for common drivers

    >>> condition(["creek"], []).rpartition(";")[2]
    ' the fit found no sign of either.'
    """
    found = [NOT_TESTED] if signs is None else [words for name, words in SIGNS.items() if name in signs] or [NO_SIGN]
    return f"{IF.format(nodes=' and '.join(nodes))}; {', and '.join(found)}."


def interval_words(level: float, uncertain: int, *, weights: bool, tested: bool) -> str:
    """Return what the intervals contain, or why there are none.

    ``uncertain``  number of edges that may not exist; ``tested``: whether that was found
    ``weights``    whether the uncertainty of the weights is known

    >>> interval_words(0.9, 0, weights=True, tested=False)
    '90% intervals contain the uncertainty of the weights and of how often edges act, not that of which edges exist, \
which was not tested.'
    """
    if not weights:
        return f"{level:.0%} intervals contain {GRAPHS.format(count=uncertain)}." if uncertain else NONE
    exist = (EXIST.format(count=uncertain) if uncertain else ALL_CERTAIN) if tested else NOT_EXIST
    return f"{level:.0%} intervals contain {WEIGHTS.format(exist=exist)}."
