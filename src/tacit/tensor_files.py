r"""Text and tensors in one safetensors file, with a format number and a checksum; reading it runs no code.

The text is JSON in the header of the file. The checksum covers text, names, types, shapes and numbers, so a file that
is truncated, changed or not from tacit is refused.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from tacit.errors import InputError
from tacit.version import __version__


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name in messages, its format, and the remedy for a damaged file."""

    name: str
    format: int
    remedy: str

    def pack(self, text: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bytes:
        """Return the bytes of the file.

        >>> kind = Kind("note", 1, "write it again")
        >>> text, tensors = kind.unpack(kind.pack({"a": 1}, {"b": torch.zeros(2)}), "note.safetensors")
        >>> text, tensors["b"].tolist()
        ({'a': 1}, [0.0, 0.0])
        """
        there = {name: value.detach().to("cpu", copy=True).contiguous() for name, value in tensors.items()}
        written = json.dumps(text, default=lambda value: value.tolist())  # numbers of NumPy and torch
        metadata = {"tacit": __version__, "kind": self.name, "format": str(self.format), "text": written}
        return save(there, metadata | {"sha256": _checksum(written, there)})

    def unpack(self, data: bytes, where: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return text and tensors; raise :class:`InputError` for any other or damaged file."""
        try:
            metadata = header_of(data)
            is_one, found = metadata["kind"] == self.name, int(metadata["format"])
        except (ValueError, KeyError):
            raise InputError(
                f"{where} must be a {self.name} of tacit, but is damaged or not one; {self.remedy}"
            ) from None
        if not is_one:
            raise InputError(f"{where} is a {_short(metadata['kind'])} of tacit, not a {self.name}; {self.remedy}")
        if found != self.format:
            raise InputError(
                f"{where} has format {found} of tacit {_short(metadata.get('tacit', ''))}, this tacit reads format "
                f"{self.format} of a {self.name}; use the version that wrote it, or {self.remedy}"
            )
        try:
            tensors, written = load(data), metadata["text"]
            if _checksum(written, tensors) != metadata["sha256"]:
                raise ValueError("the checksum does not match")
            text = json.loads(written)
            if not isinstance(text, dict):
                raise ValueError("its text is not a JSON object")
            return text, tensors
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            raise InputError(f"{where} is a damaged {self.name} ({_line(error)}); {self.remedy}") from None

    def require_finite(self, tensors: Mapping[str, Tensor], where: str, infinite: Collection[str] = ()) -> None:
        """Refuse NaN and infinity; tensors named in ``infinite`` may have infinity."""
        for name, value in tensors.items():
            bad = value.isnan() if name in infinite else ~value.isfinite()
            if value.is_floating_point() and bool(bad.any()):
                what = "NaN" if bool(value.isnan().any()) else "infinity"
                raise InputError(f"{where} must be finite, got {what} in {name}; {self.remedy}")


def load(data: bytes) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file; raise ValueError if it is not one."""
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(data)
        return tensors
    except (
        SafetensorError,
        KeyError,
        AssertionError,
        RuntimeError,
        TypeError,
    ) as error:  # all that damaged files raise
        raise ValueError(_line(error)) from None


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """Return a safetensors file whose bytes depend only on its content; the library does not sort its header."""
    data: bytes = safetensors.torch.save(dict(tensors), dict(metadata))
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the numbers begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + data[end:]


def header_of(data: bytes) -> dict[str, str]:
    """Return the text entries in the header of a safetensors file; raise ValueError if there are none."""
    size = int.from_bytes(data[:8], "little")  # safetensors: length of the header, then JSON
    try:
        header = json.loads(data[8 : 8 + size])
    except RecursionError:
        raise ValueError("the header is nested too deeply") from None
    entries = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(entries, dict) or not all(isinstance(entry, str) for entry in entries.values()):
        raise ValueError("the header has no text")
    return entries


def digest(tensors: Iterable[Tensor]) -> str:
    """Return a checksum of types, shapes and numbers.

    >>> digest([torch.zeros(2)]) == digest([torch.zeros(2)]), digest([torch.zeros(2)]) == digest([torch.zeros(1, 2)])
    (True, False)
    """
    total = hashlib.sha256()
    for value in tensors:
        total.update(f"{value.dtype} {tuple(value.shape)} ".encode())
        flat = value.detach().cpu().reshape(-1)
        if flat.stride(0) != 1:  # a single number that was expanded
            flat = flat.clone(memory_format=torch.contiguous_format)
        total.update(flat.view(torch.uint8).numpy().data)
    return total.hexdigest()


def _checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    names = sorted(tensors)
    return hashlib.sha256(f"{text}\n{names}\n{digest(tensors[name] for name in names)}".encode()).hexdigest()


def _line(error: Exception) -> str:
    lacking = "lacks " if isinstance(error, KeyError) else ""
    return lacking + _short((str(error).strip() or type(error).__name__).splitlines()[0])


def _short(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:120])
