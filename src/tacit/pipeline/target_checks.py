"""Checks that the values of targets are possible for their observation model; messages name node and row."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from tacit.data import NamedPairs, Series
from tacit.errors import InputError
from tacit.observation import Support
from tacit.pipeline.sources import Source, about
from tacit.registry import OBSERVATIONS

Values = Float[np.ndarray, "row node channel"]
OTHER_KIND = 'or set another kind in [observation], for example "gaussian"'
ROUNDING = 1e-6


def require_values(
    source: Source, kinds: Sequence[str], targets: Sequence[str] | None, categories: Sequence[float] | None
) -> None:
    """Raise :class:`InputError` if a known target is not a possible value of its kind.

    ``kinds``       kinds of the nodes of the source, in their order
    ``categories``  values of ordered categories, None if they are not known yet
    """
    content = source.content
    values = source_values(content, targets)
    with about(source.name):
        for node, kind in enumerate(kinds):
            support = OBSERVATIONS[kind].support
            there = values[:, node]
            bad = ~np.isnan(there) & ~_possible(there, support, categories)
            for row, channel in np.argwhere(bad)[:1]:
                raise InputError(
                    f"node '{content.nodes[node]}' must have {_wanted(support, categories)} for kind '{kind}', got "
                    f"{there[row, channel]:.10g} at {_row_name(content, int(row))}; {_remedy(support)}"
                )


def source_values(content: NamedPairs | Series, targets: Sequence[str] | None) -> Values:
    """Return the targets in the units of the data, NaN if one is not known."""
    if isinstance(content, Series):
        names = content.channels if targets is None else [name for name in targets if name in content.channels]
        return content.values[:, :, [content.channels.index(name) for name in names]]
    pairs = content.pairs
    values: Values = pairs.targets.double().numpy()
    return values if pairs.observed is None else np.where(pairs.observed.numpy() > 0, values, np.nan)


def _possible(
    values: Float[np.ndarray, "row channel"], support: Support, categories: Sequence[float] | None
) -> Bool[np.ndarray, "row channel"]:
    """Return where a value is in the support."""
    possible: Bool[np.ndarray, "row channel"] = np.ones(values.shape, dtype=bool)
    if support == "counts":
        possible = (values >= 0) & (values == np.rint(values))
    if support == "two values":
        possible = np.isin(values, (0.0, 1.0))
    if support == "positive":
        possible = values > 0
    if support == "categories" and categories is not None:
        near = np.abs(values[..., None] - np.array(categories)) <= ROUNDING * (1 + np.abs(np.array(categories)))
        possible = near.any(-1)
    return possible


def _wanted(support: Support, categories: Sequence[float] | None) -> str:
    shown = ", ".join(f"{value:g}" for value in categories or ())
    return {
        "counts": "counts 0, 1, 2, ...",
        "two values": "0 and 1",
        "positive": "numbers above 0",
        "categories": f"the categories {shown}",
        "real": "numbers",
    }[support]


def _remedy(support: Support) -> str:
    if support == "categories":
        return "correct it, or list all of them, in order, as categories in [observation] of the fit"
    return f"correct it, {OTHER_KIND}"


def _row_name(content: NamedPairs | Series, row: int) -> str:
    """Return the time of a row, with its series if there are several."""
    if not isinstance(content, Series):
        return f"pair {row}"
    name = content.series_names[int(content.series_of_row[row])] if content.series_names else ""
    time = content.row_times[row]
    said = np.datetime_as_string(time, unit="auto") if isinstance(time, np.datetime64) else time
    return f"{said}" + (f" of series '{name}'" if name else "")
