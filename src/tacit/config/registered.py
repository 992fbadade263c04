"""Validators of config keys whose value is a registered name."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic.fields import FieldInfo

from tacit.errors import InputError
from tacit.registry import Registry


@dataclass(frozen=True)
class RegisteredName:
    """Validator of a name: ``Annotated[str, AfterValidator(RegisteredName(LOSSES))]``; ``also`` are further words.

    >>> from tacit.registry import LOSSES
    >>> RegisteredName(LOSSES, ("auto",))("auto")
    'auto'
    """

    registry: Registry
    also: tuple[str, ...] = ()

    def __call__(self, name: str) -> str:
        """Return the name, or raise :class:`InputError` with those that are registered."""
        if name not in self.also:
            self.registry[name]
        return name

    def __iter__(self) -> Iterator[str]:
        yield from self.also
        yield from self.registry


class RegisteredNames(RegisteredName):
    """Validator of a name, or of a table of names by node; ``also`` words are not allowed in a table.

    >>> from tacit.registry import LOSSES
    >>> RegisteredNames(LOSSES, ("auto",))({"a": "energy", "*": "mmd"})
    {'a': 'energy', '*': 'mmd'}
    """

    def __call__(self, name: str | dict[str, str]) -> str | dict[str, str]:  # type: ignore[override]
        """Return the names, or raise :class:`InputError` with those that are registered."""
        if isinstance(name, str):
            return super().__call__(name)
        if not name:
            raise InputError('a table by node must name a node, got none; write for example {a = "poisson"}')
        for one in name.values():
            self.registry[one]
        return name


def registered_names(field: FieldInfo) -> tuple[str, ...]:
    """Return the names that a field of a config accepts; empty if it is not a registered name."""
    checks = [getattr(entry, "func", None) for entry in field.metadata]
    return tuple(name for check in checks if isinstance(check, RegisteredName) for name in check)


def unused_by(registry: Registry, chosen: str, key: str) -> str | None:
    """Return the kinds that use a key, as text, if the ``chosen`` kind does not use it; otherwise None.

    >>> from tacit.losses import MMD
    >>> from tacit.registry import LOSSES
    >>> unused_by(LOSSES, "energy", "kernel"), unused_by(LOSSES, "mmd", "kernel")
    ("loss 'mmd'", None)
    """
    users = [name for name in registry if key in getattr(registry[name], "uses", ())]
    if not users or chosen in users:
        return None
    return f"{registry.what} " + " or ".join(f"'{name}'" for name in users)
