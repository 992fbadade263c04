"""Selection of the columns of a table by names and patterns."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from glob import escape

from tacit.data.cells import Table
from tacit.errors import did_you_mean, require


def matching(name: str, columns: Sequence[str], sep: str | None = None) -> list[str]:
    """Return the columns that match a name or a shell pattern, [] if there are none.

    With a separator, a name can be a column, a node, ``node:variable`` or a variable. Patterns ignore case.

    >>> columns = ["north_pm", "north_rain", "south_pm", "south_rain"]
    >>> matching("north", columns, "_"), matching("south:pm", columns, "_"), matching("rain", columns, "_")
    (['north_pm', 'north_rain'], ['south_pm'], ['north_rain', 'south_rain'])
    >>> matching("*_PM", columns)
    ['north_pm', 'south_pm']
    """
    levels = [{column: column for column in columns}]
    if sep is not None:
        parts = {column: column.split(sep) for column in columns if column.count(sep) == 1}
        levels += [{column: pick(*part) for column, part in parts.items()} for pick in _LEVELS]
    for known in levels:
        if found := [column for column, word in known.items() if word == name]:
            return found
    if is_pattern(name):
        for known in levels:
            if found := [column for column, word in known.items() if fnmatchcase(word.lower(), name.lower())]:
                return found
    return []


_LEVELS = (lambda node, _: node, lambda node, variable: f"{node}:{variable}", lambda _, variable: variable)


def is_pattern(name: str) -> bool:
    """Return whether a name has shell wildcards."""
    return any(letter in name for letter in "*?[")


def literal(name: str) -> str:
    """Return a pattern that matches only this name.

    >>> literal("level"), matching(literal("a[1]"), ["a1", "a[1]"])
    ('level', ['a[1]'])
    """
    return escape(name)


def chosen(
    table: Table, names: Sequence[str] | None, columns: Sequence[str], sep: str | None, *, piece: bool
) -> list[str]:
    """Return the named ``columns`` in the order of the table; all of them without names.

    A ``piece`` may lack some: nodes of other series, or nodes whose absence is reported later.
    """
    if names is None:
        return list(columns)
    require(
        len(names) > 0, f"{table.path}: columns must name at least one column, got none; name some, or leave it out"
    )
    found: set[str] = set()
    for name in names:
        fitting = matching(name, columns, sep)
        if not fitting and name in table.columns:
            raise table.refuse(
                f"columns names '{name}', which has another meaning (time, node, series, covariate); leave it out"
            )
        if not fitting and not piece:
            raise table.refuse(not_there("columns", name, columns))
        found |= set(fitting)
    return [column for column in columns if column in found]


def not_there(argument: str, name: str, columns: Sequence[str]) -> str:
    """Return the message for a name or pattern that matches no column."""
    if is_pattern(name):
        return f"{argument} has the pattern '{name}', which matches no column{did_you_mean(name, columns)}"
    return f"{argument} names the column '{name}', which does not exist{did_you_mean(name, columns)}"
