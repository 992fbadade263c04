"""A commented config file to begin with, written from the choices themselves."""

from pathlib import Path
from typing import Any

from tacit.config import FitConfig
from tacit.errors import InputError, require

HEAD = """# Choices of `tacit fit DATA --config THIS-FILE`. A line that begins with # shows the default; where that is
# "chosen from the data", tacit chooses and says why. Files are looked for from where the command runs.
"""


def write_template(path: Path) -> None:
    """Write the file; one that exists is not touched."""
    require(not path.exists(), f"--init needs a new file, got {path}, which exists; choose another name")
    try:
        path.write_text(template(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--init needs a file that can be written, got {path} ({error.strerror})") from None


def template() -> str:
    """Return the text of the file."""
    lines = [HEAD]
    for section, field in FitConfig.model_fields.items():
        values = field.default
        lines.append(f"\n[{section}]")
        for key, entry in type(values).model_fields.items():
            if section == "model" and key in ("prior", "prior_weight", "likelihood_sd"):
                continue  # of tacit demo
            words = f"  # {entry.description}" if entry.description else ""
            lines.append(f"# {key} = {_shown(getattr(values, key))}{words}")
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    if value is None:
        return "(chosen from the data, or none)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_shown(entry) for entry in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
