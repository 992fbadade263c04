"""The exceptions of tacit: bad input, a failed computation, and lost processes."""

import difflib
from collections.abc import Iterable
from importlib.util import find_spec

LISTED = 20  # known words in a message; the others are counted
LONGEST = 300  # characters of a message
BEFORE_COMMANDS = ("resume with ", "draw its report with ")


class InputError(ValueError):
    """Invalid input; the message names the argument, the requirement, the value and the remedy."""


class TrainingError(RuntimeError):
    """A failed computation; the message says where."""


class ReportError(RuntimeError):
    """The run is complete and its report could not be drawn; the message gives the command that draws it."""


class ProcessesError(RuntimeError):
    """Lost connection between processes that train together; the message gives the remedy.

    ``in_step``  true if the processes can still synchronise: the error occurred before a training
    """

    in_step = False


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest known word, or a list of the known words.

    >>> did_you_mean("enrgy", ["mmd", "energy"])
    "; did you mean 'energy'?"
    >>> did_you_mean("zzz", ["mmd", "energy"])
    '; known are energy, mmd'
    >>> did_you_mean("zzz", [f"node {number:02}" for number in range(100)])[-28:]
    'node 18, node 19 and 80 more'
    """
    known = sorted(known)
    near = [one for one in known if one.lower() == word.lower()] or difflib.get_close_matches(word, known, n=1)
    if near:
        return f"; did you mean '{near[0]}'?"
    more = f" and {len(known) - LISTED:,} more" if len(known) > LISTED else ""
    return f"; known are {', '.join(known[:LISTED])}{more}"


def one_line(text: str) -> str:
    """Return a text as one line of limited length without control characters.

    Messages quote user input, which may contain anything. The middle of a long text is left out, because the problem is
    at its beginning and the remedy at its end; a command at the end is not shortened.

    >>> one_line("column 'a\\x1b[31m'\\n  is \\udcff")
    "column 'a\\\\x1b[31m' is \\\\udcff"
    >>> len(one_line("x" * 10_000)), one_line("x" * 10_000 + "; resume with 'this'")[-30:]
    (300, "xxxxxxxxxx; resume with 'this'")
    """
    words = " ".join(text.split())
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)
    start = max(shown.rfind(words) for words in BEFORE_COMMANDS)
    what, way = (shown[:start], shown[start:]) if start >= 0 else (shown, "")
    limit = max(LONGEST - len(way), LONGEST // 2)
    if len(what) > limit:
        tail = limit // 3
        what = f"{what[: limit - tail - 5]} ... {what[-tail:]}"
    return what + way


def require_int(name: str, value: object, low: int = 1) -> None:
    """Raise :class:`InputError` unless ``value`` is an integer of at least ``low``.

    >>> require_int("epochs", 2.5)
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: epochs must be an integer of at least 1, got 2.5
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise InputError(f"{name} must be an integer of at least {low}, got {value!r}")


def require_positive(name: str, value: object, example: float) -> None:
    """Raise :class:`InputError` unless ``value`` is a finite number above 0.

    >>> require_positive("sd", "wide", 0.1)
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: sd must be positive, got 'wide'; pass for example 0.1
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value < float("inf"):  # type: ignore[operator]
        raise InputError(f"{name} must be positive, got {value!r}; pass for example {example}")


def require(condition: bool, message: str) -> None:
    """Raise :class:`InputError` with ``message`` unless ``condition`` is true."""
    if not condition:
        raise InputError(message)


def require_package(package: str, what: str, extra: str) -> None:
    """Raise :class:`InputError` unless an optional package is installed; ``extra`` of tacit installs it.

    >>> require_package("openpyxl_of_old", "reading .xlsx", "excel")
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: reading .xlsx requires openpyxl_of_old, which is not installed; pip install 'tacit[excel]'
    """
    if find_spec(package) is None:
        raise InputError(f"{what} requires {package}, which is not installed; pip install 'tacit[{extra}]'")
