"""Tutorials as notebooks: read from ``docs/tutorials/NAME.py``, executed once, and kept in ``.cache/tutorials``.

A tutorial is a script of cells (jupytext, py:percent). Its header may hold, under ``jupyter: tutorial:``,

``reads``      committed files or folders that it reads; they have the same paths in the folder where it runs
``thumbnail``  which picture the gallery shows, counted from 1; the last one if left out

A cell with the tag ``slow`` runs only if ``TACIT_SLOW_TUTORIALS`` is set.
"""

import asyncio
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "tutorials"
AT_A_TIME = 2
SLOW = "slow"
SHELL = "%%bash"
STYLE = Path(__file__).with_name("matplotlibrc")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class TutorialError(Exception):
    """A tutorial that cannot be shown."""


@dataclass(frozen=True)
class Tutorial:
    """A source file and the repository that it belongs to."""

    source: Path
    root: Path = ROOT
    slow: bool = False

    @property
    def name(self) -> str:
        """The name of its page."""
        return self.source.stem

    def notebook(self) -> Any:
        """Return the notebook of the source, not executed; what only jupytext needs is left out."""
        notebook = jupytext.read(self.source, fmt="py:percent")
        notebook.metadata.pop("jupytext", None)
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        return notebook

    def reads(self) -> list[Path]:
        """Return the committed files that it reads."""
        named = [self.root / path for path in self.notebook().metadata.get("tutorial", {}).get("reads", ())]
        for path in named:
            if not path.exists():
                raise TutorialError(f"{self.source.name}: reads must name files of the repository, got {path}")
        return [file for path in named for file in ([path] if path.is_file() else sorted(path.rglob("*")))]

    def key(self) -> str:
        """Return what changes with the code cells, the package, the versions, the files it reads and the style.

        It does not change with the text, so that a page can be reworded without running it again.
        """
        package = sorted(path for path in (self.root / "src").rglob("*") if path.suffix in (".py", ".npz", ".html"))
        files = [*package, self.root / "constraints.txt", *self.reads(), STYLE]
        found = hashlib.sha256(str(self.slow).encode())
        for cell in code_cells(self.notebook()):
            found.update(f"{cell.source}\n{cell.metadata.get('tags')}\n".encode())
        for path in filter(Path.is_file, files):
            found.update(hashlib.sha256(path.read_bytes()).digest())
        return found.hexdigest()[:16]

    def with_outputs_of(self, other: Any) -> Any:
        """Return the notebook of the source with the outputs of one that has the same code cells."""
        notebook = self.notebook()
        for cell, ran in zip(code_cells(notebook), code_cells(other), strict=True):
            cell.outputs, cell.execution_count = ran.outputs, ran.execution_count
        return notebook


def code_cells(notebook: Any) -> list[Any]:
    """Return the cells that hold code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def executed(tutorials: Iterable[Tutorial], cache: Path = CACHE) -> dict[str, Any]:
    """Return the executed notebooks by name: those of the cache, and the others after running them, two at a time."""
    tutorials = list(tutorials)
    kept = {tutorial.name: cache / f"{tutorial.name}-{tutorial.key()}.ipynb" for tutorial in tutorials}
    found = {name: nbformat.read(path, as_version=4) for name, path in kept.items() if path.is_file()}
    missing = [tutorial for tutorial in tutorials if tutorial.name not in found]
    cache.mkdir(parents=True, exist_ok=True)

    async def run_all() -> list[Any]:
        turn = asyncio.Semaphore(AT_A_TIME)
        return await asyncio.gather(*(run_one(tutorial, turn) for tutorial in missing), return_exceptions=True)

    async def run_one(tutorial: Tutorial, turn: asyncio.Semaphore) -> None:
        async with turn:
            notebook = await _run(tutorial)
        for old in cache.glob(f"{tutorial.name}-*.ipynb"):
            old.unlink()
        part = kept[tutorial.name].with_suffix(f".{os.getpid()}")
        nbformat.write(notebook, part)
        part.replace(kept[tutorial.name])
        found[tutorial.name] = notebook

    failed = [error for error in asyncio.run(run_all()) if error is not None]
    if failed:
        raise failed[0] if len(failed) == 1 else TutorialError("\n".join(map(str, failed)))
    return {tutorial.name: tutorial.with_outputs_of(found[tutorial.name]) for tutorial in tutorials}


async def _run(tutorial: Tutorial) -> Any:
    """Execute a notebook in a folder of its own, with one thread."""
    notebook = tutorial.notebook()
    with tempfile.TemporaryDirectory(prefix="tutorial-") as folder, tempfile.TemporaryDirectory() as sockets:
        for path in tutorial.reads():
            link = Path(folder, path.relative_to(tutorial.root))
            link.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():
                link.symlink_to(path)
        client = NotebookClient(
            notebook,
            timeout=None,
            kernel_name="python3",
            skip_cells_with_tag="" if tutorial.slow else SLOW,
            resources={"metadata": {"path": folder}},
            record_timing=False,
            coalesce_streams=True,
            config=Config(KernelManager={"transport": "ipc", "connection_file": f"{sockets}/kernel.json"}),
        )
        try:
            await client.async_execute(env=_environment(tutorial, sockets))
        except CellExecutionError as error:
            where = f"{tutorial.source.name}: {failed_cell(notebook)}"
            raise TutorialError(f"{where}: {error.ename}: {error.evalue}") from None
    clean_streams(tutorial.source.name, notebook)
    return notebook


def _environment(tutorial: Tutorial, own: str) -> dict[str, str]:
    """One thread, the style of the pictures, no history of the user's, and the ``tacit`` of this interpreter."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "MATPLOTLIBRC": str(STYLE),
        "IPYTHONDIR": own,
        "PYTHONPATH": os.pathsep.join([str(tutorial.root / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(
            os.pathsep
        ),
        "PYTHONWARNINGS": "ignore:IProgress not found",
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }


def name_of(notebook: Any, cell: Any) -> str:
    """Return how to find a cell: its number, the heading above it and its first line."""
    number = notebook.cells.index(cell)
    above = [line for one in notebook.cells[:number] if one.cell_type == "markdown" for line in one.source.splitlines()]
    heading = next((line.strip("# ") for line in reversed(above) if line.startswith("#")), "the top")
    code = sum(one.cell_type == "code" for one in notebook.cells[: number + 1])
    return f'code cell {code} below "{heading}" ({cell.source.splitlines()[0]})'


def failed_cell(notebook: Any) -> str:
    """Return the name of the cell that raised an exception."""
    for cell in notebook.cells:
        if any(output.output_type == "error" for output in cell.get("outputs", ())):
            return name_of(notebook, cell)
    return "no cell"


def clean_streams(source: str, notebook: Any) -> None:
    """Leave out colours, and the progress that commands show; refuse a notebook in which Python wrote a warning."""
    for cell in notebook.cells:
        for output in [one for one in cell.get("outputs", ()) if one.output_type == "stream"]:
            output.text = COLOUR.sub("", output.text)
            if output.name == "stderr" and cell.source.startswith(SHELL):
                cell.outputs.remove(output)
            elif output.name == "stderr":
                raise TutorialError(f"{source}: {name_of(notebook, cell)}: it must not warn, got {output.text.strip()}")
