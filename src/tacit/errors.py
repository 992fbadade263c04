"""What can go wrong, as two types: the user's input, and the computation."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A value from outside is not usable; the message names it, the need, what came and the remedy."""


class TrainingError(RuntimeError):
    """The computation itself broke down; the message says where."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest known word, or a list of them all.

    >>> did_you_mean("enrgy", ["mmd", "energy"])
    "; did you mean 'energy'?"
    >>> did_you_mean("zzz", ["mmd", "energy"])
    '; known are energy, mmd'
    """
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(known)}"


def require(condition: bool, message: str) -> None:
    """Raise :class:`InputError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise InputError(message)
