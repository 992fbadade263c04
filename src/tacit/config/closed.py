"""Closed and frozen settings: unknown keys are refused, values may be registered names, and TOML files change them."""

import tomllib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from tacit.errors import InputError, did_you_mean, require
from tacit.registry import Registry

C = TypeVar("C", bound="Closed")


_inside: ContextVar[bool] = ContextVar("inside", default=False)  # another section or config is being checked


class Closed(BaseModel):
    """Base class of a section of settings: unknown keys are refused, and values cannot be changed later.

    The constructor raises :class:`InputError` for keys and values that are not possible:

    >>> from tacit.config import TrainingOptions
    >>> TrainingOptions(epoch=3)
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: TrainingOptions has no 'epoch'; did you mean 'epochs'?
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        if _inside.get():
            super().__init__(**values)
            return
        name, known = type(self).__name__, type(self).model_fields
        for key in values:
            require(key in known, f"{name} has no '{key}'{did_you_mean(key, known)}")
        token = _inside.set(True)
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            cause = first.get("ctx", {}).get("error")
            said = f"{first['msg'].lower()}, got {first['input']!r}; correct it, or leave it out"
            raise InputError(
                f"{key} of {name} is not usable: {cause if isinstance(cause, InputError) else said}"
            ) from None
        finally:
            _inside.reset(token)

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_true_for_a_number(cls, value: Any, about: Any) -> Any:
        field = cls.model_fields[about.field_name or ""]
        if isinstance(value, bool) and not any(word in str(field.annotation) for word in ("bool", str(value))):
            raise PydanticCustomError("number", "input should be a number or a word")
        return value

    @classmethod
    def model_validate(cls: type[C], *arguments: Any, **options: Any) -> C:
        """Validate values from a file; errors are those of pydantic, which give the location."""
        token = _inside.set(True)
        try:
            return super().model_validate(*arguments, **options)
        finally:
            _inside.reset(token)


def load_config(path: Path, base: C) -> C:
    """Return ``base`` updated with the values of a TOML file."""
    try:
        require(
            path.is_file() or not path.exists(),
            f"config must be a readable file, got {path}; check the path",
        )
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"config must be a readable file, got {path} ({error.strerror}); check the path") from None
    except RecursionError:
        raise InputError(f"config must be TOML, but {path} is nested too deeply; correct the file") from None
    except InputError:
        raise
    except ValueError as error:  # also for a number with thousands of digits, or an invalid date
        raise InputError(f"config must be TOML, but {path} is not: {error}; correct the file") from None
    return override(base, values)


def override(base: C, values: Mapping[str, Any]) -> C:
    """Return ``base`` with some values replaced; an unknown key is an error with a suggestion.

    >>> from tacit.config import DemoConfig
    >>> override(DemoConfig(), {"training": {"epoch": 3}})
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: unknown key 'epoch' in [training]; did you mean 'epochs'?
    """
    merged = base.model_dump()
    for section, entries in values.items():
        _require_known(section, merged, "the config")
        if not isinstance(entries, Mapping):
            raise InputError(f"[{section}] must be a table, got {entries!r}; write [{section}] above its keys")
        for key, value in entries.items():
            _require_known(key, merged[section], f"[{section}]")
            merged[section][key] = value
    try:
        return type(base).model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        section, *rest = (str(part) for part in first["loc"])
        key = rest[0] if rest else ""
        reason = first.get("ctx", {}).get("error")
        if isinstance(reason, InputError):  # from a check in tacit: its message is complete
            raise InputError(f"{key} in [{section}] is not usable: {reason}") from None
        default = merged_default(base, section, key)
        remedy = "leave it out" if default is None else f"the default is {default!r}"
        raise InputError(
            f"{key} in [{section}] is not usable: {first['msg'].lower()}, got {first['input']!r}; {remedy}"
        ) from None


def merged_default(base: BaseModel, section: str, key: str) -> Any:
    """Return the value that ``base`` has for a key of a section."""
    return getattr(getattr(base, section), key, None)


def _require_known(key: str, known: Mapping[str, Any], where: str) -> None:
    if key not in known:
        raise InputError(f"unknown key '{key}' in {where}{did_you_mean(key, known)}")


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
