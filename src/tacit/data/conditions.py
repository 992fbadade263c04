"""Conditions on the rows of a table, such as ``month in (6, 7, 8) and regime == "wet"``, and the targets they select.

A condition compares numbers, words and times with ``== != < <= > >= in`` and ``not in``, joins comparisons with
``and``, ``or`` and ``not``, and computes with ``+ - * / %``. Names are columns or parts of the date; a name with other
characters is written in backticks. No code is executed.
"""

import ast
import operator
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from tacit.data.background import NUMBERS, calendar_number
from tacit.data.series import Series, Times
from tacit.data.times import coming_times
from tacit.errors import InputError, did_you_mean, require

Rows = Bool[np.ndarray, " row"]
EXAMPLE = 'write for example month in (6, 7, 8) or regime == "wet"'
LONGEST = 2000  # characters
DEEPEST = 100  # levels of nesting
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
MOMENT = re.compile(r"\d{4}(-\d\d(-\d\d([ T]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?)?)?)?")
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
UNKNOWN_AHEAD = "where uses a column, which is not known after the last row: targets after it are included"
MOST_WORDS = 8  # values of a column that a message lists
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True)
class Condition:
    """A parsed condition, and the names in it.

    >>> summer = Condition.read("6 <= month <= 8 and regime != 'dry'")
    >>> summer.names
    ('month', 'regime')
    >>> columns = {"month": np.array([5.0, 6.0, 7.0]), "regime": np.array(["wet", "dry", "wet"], dtype=object)}
    >>> summer.holds(columns.__getitem__).tolist()
    [False, False, True]
    """

    text: str
    tree: ast.expr
    names: tuple[str, ...]
    columns: tuple[str, ...]  # the names as they are in the tree

    @classmethod
    def read(cls, text: str) -> "Condition":
        """Parse a text; anything outside this small language is refused, and the error gives its position."""
        require(len(text) <= LONGEST, f"where must have at most {LONGEST} characters, got {len(text):,}; shorten it")
        quoted: dict[str, str] = {}

        def placeholder(found: re.Match[str]) -> str:
            word = found.group()
            if not word.startswith("`"):
                return word
            return quoted.setdefault(word[1:-1], f"_{len(quoted)}_".ljust(len(word), "_"))

        plain = QUOTED.sub(placeholder, text.strip())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                tree = ast.parse(plain, mode="eval").body
            names = {column: name for name, column in quoted.items()}
            found = dict.fromkeys(_named(tree, text.strip()))
        except SyntaxError as error:
            place = (error.offset or len(plain) + 1) - 1  # at the end the parser gives no position
            equals = text.strip()[place : place + 1] == "="
            raise _unreadable(text.strip(), place, "equal is written ==" if equals else error.msg) from None
        except (ValueError, RecursionError, MemoryError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"where must be a condition, got one that cannot be read; {EXAMPLE}") from None
        require(bool(found), f"where must name a column or a part of the date, got '{text.strip()}'; {EXAMPLE}")
        return cls(text.strip(), tree, tuple(names.get(name, name) for name in found), tuple(found))

    def renamed(self, names: Mapping[str, str]) -> "Condition":
        """Return the same condition on columns with other names."""
        return replace(self, names=tuple(names.get(name, name) for name in self.names))

    def holds(self, column: Callable[[str], np.ndarray]) -> Rows:
        """Return whether the condition is true, for each row.

        ``column`` returns numbers, words (None if missing) or times. The condition is false in a row where a named
        column is missing.
        """
        columns = {}
        for place, name in zip(self.columns, self.names, strict=True):
            values = column(name)
            columns[place] = _Value(values, {"M": "time", "O": "text"}.get(values.dtype.kind, "number"), name)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = _evaluated(self.tree, columns)
        require(
            found.kind == "truth",
            f"where must be true or false, got {found.words}; compare it, for example {found.words} == 1",
        )
        there = [~missing(one.values) for one in columns.values()]
        chosen: Rows = np.logical_and.reduce([np.broadcast_to(found.values, len(there[0])), *there])
        return chosen


def _named(node: ast.expr, text: str, depth: int = 0) -> list[str]:
    """Return the names in a tree; refuse anything outside the language."""
    if depth > DEEPEST:
        raise _unreadable(text, node.col_offset, "it is nested too deeply")
    match node:
        case ast.Name(name):
            return [name]
        case ast.Constant(value) if isinstance(value, str | int | float):
            return []
        case ast.BoolOp(values=parts) | ast.Tuple(parts) | ast.List(parts) | ast.Set(parts):
            pass
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.UAdd(), one):
            parts = [one]
        case ast.BinOp(left, way, right) if type(way) in ARITHMETIC:
            parts = [left, right]
        case ast.Compare(left, ways, rest) if all(type(way) in COMPARISONS or _is_in(way) for way in ways):
            parts = [left, *rest]
        case _:
            raise _unreadable(text, node.col_offset, "only comparisons, and, or, not, in and + - * / % are known")
    return [name for part in parts for name in _named(part, text, depth + 1)]


def _unreadable(text: str, place: int, reason: str) -> InputError:
    where = f"at character {place + 1}, '{text[place : place + 20]}'" if place < len(text) else "at its end"
    return InputError(f"where must be a condition, got '{text}', which cannot be read {where} ({reason}); {EXAMPLE}")


@dataclass(frozen=True)
class _Value:
    values: Any
    kind: str  # number, text, time, truth or list
    words: str


def _evaluated(node: ast.expr, columns: Mapping[str, _Value]) -> _Value:
    """Return the value of a part of a tree."""

    def number(one: ast.expr) -> Any:
        found = _evaluated(one, columns)
        require(found.kind == "number", f"where must compute with numbers, got {found.words}; compare it instead")
        return found.values

    def truth(one: ast.expr) -> Any:
        found = _evaluated(one, columns)
        require(
            found.kind == "truth",
            f"where must join comparisons with and, or, not, got {found.words}; write for example {found.words} == 1",
        )
        return found.values

    match node:
        case ast.Name(name):
            return columns[name]
        case ast.Constant(str() | bool() as value):
            return _Value(str(value), "text", repr(value))
        case ast.Constant(int() | float() as value):
            try:
                return _Value(float(value), "number", repr(value))
            except OverflowError:
                words = "where must have numbers that fit in double precision, got a longer one; correct it"
                raise InputError(words) from None
        case ast.Tuple(parts) | ast.List(parts) | ast.Set(parts):
            return _Value([_evaluated(part, columns) for part in parts], "list", "a list")
        case ast.BoolOp(way, parts):
            join = np.logical_and if isinstance(way, ast.And) else np.logical_or
            return _Value(join.reduce([truth(part) for part in parts]), "truth", "a comparison")
        case ast.UnaryOp(ast.Not(), one):
            return _Value(np.logical_not(truth(one)), "truth", "a comparison")
        case ast.UnaryOp(way, one):
            return _Value(-number(one) if isinstance(way, ast.USub) else number(one), "number", "a number")
        case ast.BinOp(left, sign, right):
            return _Value(ARITHMETIC[type(sign)](number(left), number(right)), "number", "a number")
        case ast.Compare(left, ways, rest):
            terms = [_evaluated(part, columns) for part in (left, *rest)]
            found = [_compared(one, way, other) for one, way, other in zip(terms, ways, terms[1:], strict=False)]
            return _Value(np.logical_and.reduce(found), "truth", "a comparison")
    raise AssertionError(node)  # refused by the parser


def _compared(left: _Value, way: ast.cmpop, right: _Value) -> Any:
    if _is_in(way):
        require(right.kind == "list", f"where must have a list after in, got {right.words}; write in ({right.words},)")
        each = [_compared(left, ast.Eq(), one) for one in right.values]
        inside = np.logical_or.reduce(each) if each else np.False_
        return inside if isinstance(way, ast.In) else np.logical_not(inside)
    left, right = _as_time(left, right), _as_time(right, left)
    same = left.kind == right.kind and left.kind in ("number", "text", "time")
    if not same:
        one, other = (left, right) if isinstance(left.values, np.ndarray) else (right, left)
        note = f" ({NUMBERS[one.words]})" if one.words in NUMBERS and one.kind == "number" else ""
        kinds = {"number": "a number", "text": "a word in quotes", "time": 'a time such as "2026-03-01"'}
        need = kinds.get(one.kind, "a number, a word or a time")
        raise InputError(f"where must compare {one.words}{note} with {need}, got {other.words}; correct it")
    ordered = not isinstance(way, ast.Eq | ast.NotEq)
    require(
        not (ordered and left.kind == "text"),
        f"where must compare words with ==, != or in, got an order of {left.words} and {right.words}; correct it",
    )
    return COMPARISONS[type(way)](left.values, right.values)


def _as_time(one: _Value, other: _Value) -> _Value:
    """Return a text that is compared with a time as a time."""
    if other.kind != "time" or one.kind != "text" or isinstance(one.values, np.ndarray):
        return one
    try:
        require(MOMENT.fullmatch(one.values) is not None, "")
        return _Value(np.datetime64(one.values.replace(" ", "T")), "time", one.words)
    except ValueError:
        raise InputError(f"where must have times as YYYY-MM-DD HH:MM:SS, got {one.words}; correct it") from None


def missing(values: np.ndarray) -> Rows:
    """Return where a column has no value."""
    import pandas as pd

    return np.asarray(pd.isna(values), dtype=bool)


def _is_in(way: ast.cmpop) -> bool:
    return isinstance(way, ast.In | ast.NotIn)


def in_season(series: Series, where: str | None) -> Series:
    """Return a series in which only targets in rows that meet the condition are used.

    >>> times = np.arange("2026-01", "2027-01", dtype="datetime64[M]").astype("datetime64[s]")
    >>> series = in_season(Series(np.random.rand(12, 1, 1), nodes=("a",), times=times), "month in (6, 7, 8)")
    >>> series.times[chosen_rows(series)].astype("datetime64[M]").astype(str).tolist()
    ['2026-06', '2026-07', '2026-08']
    """
    return series if where is None else replace(series, where=Condition.read(where))


def require_names(condition: Condition, columns: Sequence[str], path: str) -> tuple[str, ...]:
    """Return the columns of a table that a condition uses; an unknown name is refused."""
    for name in condition.names:
        if name not in (*columns, *NUMBERS, "time", "series"):
            near = did_you_mean(name, (*NUMBERS, "time", *columns))
            raise InputError(f"{path}: where must name columns or parts of a date, got '{name}'{near}")
    return tuple(name for name in condition.names if name in columns)


def chosen_rows(series: Series) -> Rows:
    """Return whether the condition is true, for each row; true everywhere without a condition."""
    if series.where is None:
        return np.ones(len(series), dtype=bool)
    return series.where.holds(lambda name: _column_or_date(series, name))


def chosen_targets(series: Series, horizon: int) -> Rows:
    """Return whether the condition is true ``horizon`` steps after each row; true if this is unknown."""
    later = []
    for part in series.parts:
        times, beyond = coming_times(part.row_times, horizon), np.ones(horizon, dtype=bool)
        if part.where is not None and known_ahead(part):
            whose = np.repeat(part.labels.get("series", np.zeros(0, dtype=object))[-1:], horizon)
            after = {name: whose if name == "series" else _of_times(name, times) for name in part.where.names}
            beyond = part.where.holds(after.__getitem__)
        later.append(np.concatenate([chosen_rows(part), beyond])[horizon:])
    return np.concatenate(later)


def require_some(series: Series, chosen: Rows, what: str) -> None:
    """Refuse a condition that is never true; the message lists the values of its columns."""
    if series.where is None or chosen.any():
        return
    words = {name: sorted({*column} - {None}) for name, column in series.labels.items() if column.dtype == object}
    have = [f"{name} is {', '.join(some[:MOST_WORDS])}" for name, some in words.items() if name in series.where.names]
    hint = f" ({'; '.join(have)})" if have else ""
    raise InputError(
        f"where must be true for some {what}, but '{series.where.text}' is true for none of {len(chosen):,}{hint}; "
        "correct it, or pass other rows"
    )


def known_ahead(series: Series) -> bool:
    """Return whether the condition is known for future times: it uses only the date (and the series)."""
    names = () if series.where is None else series.where.names
    columns = (*series.labels, *series.covariate_names, *series.nodes)
    return all(name == "series" or name not in columns for name in names)


def _column_or_date(series: Series, name: str) -> np.ndarray:
    """Return the values of a name in a condition: a column if there is one, otherwise a part of the date."""
    if name in series.labels:
        return series.labels[name]
    if name in series.covariate_names and series.covariates is not None:
        return series.covariates[:, series.covariate_names.index(name)]
    if name in series.nodes and len(series.channels) == 1:
        return series.values[:, series.nodes.index(name), 0]
    known = (*NUMBERS, "time", *series.covariate_names, *series.nodes)
    if name == "series":
        raise InputError("where uses 'series', but there is one series without a name; leave it out")
    if name not in (*NUMBERS, "time"):
        raise InputError(f"where must name columns or parts of a date, got '{name}'{did_you_mean(name, known)}")
    return _of_times(name, series.row_times)


def _of_times(name: str, times: Times) -> np.ndarray:
    if name == "time":
        return times if times.dtype.kind == "M" else times.astype(np.float64)
    if times.dtype.kind != "M":
        raise InputError(
            f"where uses '{name}', a part of a date, but the times are numbers; write times as YYYY-MM-DD HH:MM:SS, "
            "or name a column"
        )
    return calendar_number(times, name)
