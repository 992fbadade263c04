"""What the effect of a change means: under which condition it is an intervention, and what its intervals contain."""

from collections.abc import Sequence

from tacit.assessment.evidence import CORRELATED, DRIVER

IF = (
    "This is the effect of an intervention only if no common driver outside the table acts on {nodes} and on other "
    "nodes"
)
STEP = ", and effects take at least one step of the table"
NOT_TESTED = "this run did not test for common drivers"
NOT_KNOWN = "this run does not say whether the fit found signs of them: it is an older one"
NO_SIGN = "the fit found no sign of {what}"
ONLY = "the fit did not test for {what}"
WHAT = {DRIVER: "such drivers", CORRELATED: "residuals that are correlated within a step"}
SIGNS = {
    DRIVER: "the fit found a shared driver outside the table",
    CORRELATED: "residuals of the fit are correlated within a step, which a common driver or faster effects cause",
}
WEIGHTS = "the uncertainty of the weights and of how often edges act, {exist}"
EXIST = "and of which edges exist ({count} uncertain, each drawn with its probability)"
ALL_CERTAIN = "and of which edges exist, all of which are certain"
NOT_EXIST = "not that of which edges exist, which was not tested"
GRAPHS = "the uncertainty of which edges exist ({count} uncertain, each drawn with its probability), not of the weights"
NO_WEIGHTS = (
    "There are no intervals: this model has no uncertainty of its weights, and which edges exist was not tested."
)
NONE = "There are no intervals: this model has no uncertainty of its weights, and no uncertain edge."


def condition(
    nodes: Sequence[str],
    signs: Sequence[str] | None,
    *,
    tested: Sequence[str] | None = None,
    assessed: bool = False,
    within: bool = False,
) -> str:
    """Return under which condition an effect is that of an intervention, and what the fit found about it.

    ``signs``     names of the findings of the evidence; None if they are not known
    ``tested``    names of the signs that were looked for; None if that is not known
    ``assessed``  whether edges were tested; ``within``: whether the model has effects within a step

    >>> condition(["creek"], [], tested=[DRIVER]).rpartition("; ")[2]
    'the fit found no sign of such drivers, and the fit did not test for residuals that are correlated within a step.'
    """
    start = IF.format(nodes=" and ".join(nodes)) + ("" if within else STEP)
    if signs is None or (tested is None and not signs):
        return f"{start}; {NOT_KNOWN if assessed else NOT_TESTED}."
    found = [words for name, words in SIGNS.items() if name in signs]
    clear = [what for name, what in WHAT.items() if name in (tested or ()) and name not in signs]
    left = [what for name, what in WHAT.items() if tested is not None and name not in tested and name not in signs]
    if within:
        left = [what for what in left if what != WHAT[CORRELATED]]  # they are effects of the model
    found += [NO_SIGN.format(what=" or of ".join(clear))] if clear else []
    found += [ONLY.format(what=" or for ".join(left))] if left else []
    return f"{start}; {', and '.join(found)}."


def interval_words(level: float, uncertain: int, *, weights: bool, tested: bool) -> str:
    """Return what the intervals contain, or why there are none.

    ``uncertain``  number of edges that may not exist; ``tested``: whether that was found
    ``weights``    whether the uncertainty of the weights is known

    >>> interval_words(0.9, 0, weights=True, tested=False)
    '90% intervals contain the uncertainty of the weights and of how often edges act, not that of which edges exist, \
which was not tested.'
    """
    if not weights:
        return (
            f"{level:.0%} intervals contain {GRAPHS.format(count=uncertain)}."
            if uncertain
            else NONE
            if tested
            else NO_WEIGHTS
        )
    exist = (EXIST.format(count=uncertain) if uncertain else ALL_CERTAIN) if tested else NOT_EXIST
    return f"{level:.0%} intervals contain {WEIGHTS.format(exist=exist)}."
