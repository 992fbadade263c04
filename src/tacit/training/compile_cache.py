"""The directory of compiled programs: in the user's cache directory, so that a second run does not compile again."""

import os
from pathlib import Path

VARIABLE = "TORCHINDUCTOR_CACHE_DIR"  # read by torch when it first compiles or differentiates
NOT_KEPT = (
    "compiled programs cannot be cached in {directory}, so every run compiles them again; set " + VARIABLE + " to a "
    "directory that can be written and whose path has no spaces"
)


def keep_compiled() -> str | None:
    """Set a directory for compiled programs, unless the user set one; return a note if it cannot be written.

    It is ``$XDG_CACHE_HOME/tacit/compiled``, or ``~/.cache/tacit/compiled``. If that cannot be written, or if its path
    has spaces, which the C++ compiler does not support, torch's own directory below ``/tmp`` is used. Torch identifies
    a program by its source, the versions and the processor.
    """
    directory = Path(os.environ.get(VARIABLE) or _usual())
    try:
        usable = not any(letter.isspace() for letter in str(directory.absolute()))
        if usable:
            directory.mkdir(parents=True, exist_ok=True)
            usable = os.access(directory, os.W_OK | os.X_OK)
    except OSError:
        usable = False
    if usable:
        os.environ[VARIABLE] = str(directory)
        return None
    os.environ.pop(VARIABLE, None)
    return NOT_KEPT.format(directory=directory)


def _usual() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "tacit" / "compiled"
