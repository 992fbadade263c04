"""A hook of mkdocs: parts of pages that the package knows best, in place of a comment ``<!-- generated: NAME -->``."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

MARK = re.compile(r"^<!-- generated: (.+) -->$", re.MULTILINE)


def config_file() -> str:
    """Return the file that ``tacit fit --init`` writes, as a block."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "choices.toml")
        call = [sys.executable, "-m", "tacit", "fit", "--init", path, "--quiet"]
        subprocess.run(call, capture_output=True, check=True)
        return f'```toml title="choices.toml"\n{path.read_text(encoding="utf-8").strip()}\n```'


def help_of(command: str) -> str:
    """Return what ``tacit COMMAND --help`` prints, as a block."""
    done = subprocess.run([sys.executable, "-m", *command.split()], capture_output=True, text=True, check=True)
    return f"```text\n{done.stdout.strip().replace('python -m tacit', 'tacit')}\n```"


PARTS: dict[str, Callable[[], str]] = {"the config file": config_file}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace every mark of a page."""
    return MARK.sub(_part, markdown)


def _part(match: re.Match[str]) -> str:
    if match[1].startswith("tacit ") and match[1].endswith(" --help"):
        return help_of(match[1])
    if match[1] not in PARTS:
        raise PluginError(f"a generated part must be a call of --help or {', '.join(PARTS)}, got {match[1]}")
    return PARTS[match[1]]()
