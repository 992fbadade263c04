"""Registry of the losses, estimators, graph distributions, predictors and observation models that a config can name.

A kind is registered by one line in the file that defines it; other packages register kinds in the same way:

>>> import tacit
>>> tacit.register("loss", "twice", lambda options: None)  # doctest: +SKIP

An installed package can register kinds in a module that it lists under the entry point group ``tacit.kinds``. The
module is imported when an unknown name is looked up, or when all names are listed.
"""

import importlib.metadata
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tacit.errors import InputError, did_you_mean

ENTRY_POINTS = "tacit.kinds"
T = TypeVar("T")


class Registry:
    """A mapping from names to registered kinds.

    >>> fruits = Registry("fruit")
    >>> fruits.add("apple", "an apple")
    >>> fruits["apple"], "pear" in fruits
    ('an apple', False)
    >>> fruits["aple"]
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: fruit must be a registered name (apple), got 'aple'; did you mean 'apple'? To add one, \
call tacit.register("fruit", "aple", ...)
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._kinds: dict[str, Any] = {}

    def add(self, name: str, kind: Any) -> None:
        """Register a kind under a new name."""
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"the name of a {self.what} must be an identifier, got {name!r}; use letters and _")
        if self._kinds.setdefault(name, kind) is not kind:
            raise InputError(f"{self.what} '{name}' is registered already; choose another name")

    def remove(self, name: str) -> None:
        """Remove a name; for tests."""
        del self._kinds[name]

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            near = did_you_mean(str(name), self._kinds)
            raise InputError(
                f"{self.what} must be a registered name ({', '.join(sorted(self._kinds))}), got '{name}'"
                f"{near if near.endswith('?') else '.'} "
                f'To add one, call tacit.register("{self.what}", "{name}", ...)'
            )
        return self._kinds[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._kinds:
            _load_entry_points()
        return name in self._kinds

    def __iter__(self) -> Iterator[str]:
        _load_entry_points()
        return iter(sorted(self._kinds))


LOSSES = Registry("loss")
ESTIMATORS = Registry("estimator")
GRAPHS = Registry("graph")
PREDICTORS = Registry("predictor")
OBSERVATIONS = Registry("observation")
REGISTRIES = {registry.what: registry for registry in (LOSSES, ESTIMATORS, GRAPHS, PREDICTORS, OBSERVATIONS)}


def register(what: str, name: str, kind: T | None = None) -> Callable[[T], T] | T:
    """Register a ``kind`` of ``what`` ("loss", "estimator", "graph", "predictor" or "observation") under a name.

    Without ``kind`` it returns a decorator. docs/how-to/extending.md describes what a kind must provide.
    """
    if what not in REGISTRIES:
        raise InputError(f"what must be one of {', '.join(REGISTRIES)}, got '{what}'{did_you_mean(what, REGISTRIES)}")

    def add(kind: T) -> T:
        REGISTRIES[what].add(name, kind)
        return kind

    return add if kind is None else add(kind)


_loaded: list[str] = []  # names of the entry points that were imported


def _load_entry_points() -> None:
    """Import the modules that installed packages list under the entry point group, once."""
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        if point.name in _loaded:
            continue
        _loaded.append(point.name)
        try:
            point.load()
        except Exception as error:
            line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(f"entry point '{point.name}' of {ENTRY_POINTS} cannot be imported ({line})") from None
