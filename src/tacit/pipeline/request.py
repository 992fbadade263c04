"""The arguments of ``tacit fit``, stored in ``call.json`` while the run is in progress, to resume it."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tacit.config import FitConfig
from tacit.errors import InputError, require
from tacit.pipeline.data_files import data_files
from tacit.records import CALL

FORMAT = 3


class Request(BaseModel):
    """The arguments of a call of ``tacit fit``; ``files`` are the files that it read, with their checksums."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    sources: list[str]
    config: dict[str, Any]
    seed: int
    device: str
    command: str
    folder: str
    files: dict[str, str]
    versions: dict[str, str]

    @classmethod
    def read(cls, directory: Path) -> "Request":
        """Read the call that a run wrote when it started."""
        path = directory / CALL
        try:
            text = path.read_text(encoding="utf-8")
            found = _Format.model_validate_json(text).format
            require(
                found == FORMAT,
                f"{path} has format {found}, this tacit reads format {FORMAT}; use the version that started the run",
            )
            call = cls.model_validate_json(text)
            FitConfig.model_validate(call.config)
            return call
        except (OSError, ValidationError, UnicodeDecodeError) as error:
            causes = error.errors() if isinstance(error, ValidationError) else []
            for cause in (found.get("ctx", {}).get("error") for found in causes):
                if isinstance(cause, InputError):  # a kind that is not registered here
                    raise cause from None
            raise InputError(f"{path} is damaged, so the run cannot be resumed; run the command again") from None

    def to_bytes(self) -> bytes:
        """Return the file that :meth:`read` reads."""
        return (self.model_dump_json(indent=2) + "\n").encode()

    def require_same_files(self) -> None:
        """Refuse to resume with other data than the run started with."""
        for name in data_files(self.sources):
            known = name in self.files or file_checksum(name) is None
            require(known, f"{name} was added since the run started; remove it, or fit again with another --out")
        for name, checksum in self.files.items():
            found = file_checksum(name)
            require(found is not None, f"{name} was removed, and the run cannot be resumed without it; put it back")
            require(
                found == checksum,
                f"{name} has changed since the run started; restore it, or fit again with another --out",
            )


class _Format(BaseModel):
    format: int


def files_read(sources: Sequence[str], config: FitConfig) -> dict[str, str]:
    """Return the files that a fit reads, with their checksums; data included in the package is not a file."""
    names = [*data_files(sources), config.data.y_file, config.graph.edges, config.graph.coordinates]
    found = {name: file_checksum(name) for name in names if name is not None}
    return {name: checksum for name, checksum in found.items() if checksum is not None}


def file_checksum(name: str) -> str | None:
    """Return the checksum of a file, or None if it is not a regular file: reading a pipe would empty it."""
    try:
        if not Path(name).is_file():
            return None
        with Path(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
