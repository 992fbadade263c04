"""Checksums of a record and of the files of its run, so that changed files are detected.

A sealed text is JSON with ``"sha256": "..."`` near its start: the checksum of the text with an empty value there.
``sed 's/"sha256": "[0-9a-f]*"/"sha256": ""/' record.json | sha256sum`` gives the same number.
"""

import hashlib
import json
from typing import Any

from tacit.records.record import RECORD

OPEN = '"sha256": ""'


def checksum(data: bytes) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(data).hexdigest()


def sealed(text: str) -> bytes:
    r"""Return a text with its empty checksum filled in.

    >>> data = sealed('{"sha256": "", "a": 1}')
    >>> read_sealed(data)["a"]
    1
    >>> read_sealed(data.replace(b"1}", b"2}"))
    Traceback (most recent call last):
    ...
    tacit.records.checksums.ChangedError: record.json
    """
    if OPEN not in text:
        raise ValueError("the text must have a place for its checksum")
    return text.replace(OPEN, _filled(checksum(text.encode())), 1).encode()


class ChangedError(ValueError):
    """A file that was changed; the message is its name."""


def read_sealed(data: bytes) -> dict[str, Any]:
    """Return the content of a sealed text; raise :class:`ChangedError` if its checksum does not match."""
    fields = read_object(data)
    found = fields.get("sha256")
    if not isinstance(found, str) or checksum(data.replace(_filled(found).encode(), OPEN.encode(), 1)) != found:
        raise ChangedError(RECORD)
    return fields


def read_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object in a file; raise :class:`ValueError` if there is none."""
    try:
        fields = json.loads(data, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")
    return fields


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a number of JSON")


def _filled(checksum: str) -> str:
    return f'"sha256": "{checksum}"'
