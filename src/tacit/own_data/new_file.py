"""A file that a user asked for by name: new, whole or not there, and never over another."""

from contextlib import nullcontext
from pathlib import Path

from tacit.errors import InputError
from tacit.whole_files import NO_SPACE, made, write_new


def write_asked_for(path: Path, data: bytes, *, option: str, other: str, folder: bool = False) -> None:
    """Write it; an :class:`InputError` names the ``option`` that asked for it and what ``other`` to choose.

    Its ``folder`` is made if asked for. A full disk is no fault of the name, and stays an :class:`OSError`.
    """
    try:
        with made(path.parent) if folder else nullcontext():
            write_new(path, data)
    except FileExistsError:
        raise InputError(f"{option} needs a new file, got {path}, which exists; choose another {other}") from None
    except OSError as error:
        if error.errno in NO_SPACE:
            raise
        raise InputError(f"{option} needs a file that can be written, got {path} ({error.strerror})") from None
