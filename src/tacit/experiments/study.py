"""The interface of a study: tasks that make records, and tables and figures drawn from the records."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure

from tacit.training import Listener as Listener  # the studies say it in one breath

Values = dict[str, Any]  # what a task found: plain numbers, texts and lists, as in a JSON file
Records = Mapping[str, Values]  # by name of the task


@dataclass(frozen=True)
class Options:
    """The size of a study: initialisations of each row, and whether it is a short trial."""

    seeds: int = 8
    quick: bool = False
    device: str = "cpu"
    data: str | None = None  # a folder or file of the user's, for studies on data that does not ship with the package

    @property
    def torch_device(self) -> torch.device:
        """The device as torch names it."""
        return torch.device(self.device)

    def for_record(self) -> Values:
        """Return the options as a record keeps them: of the data its name, not where it lies on this machine.

        >>> Options(seeds=2, data="somewhere/dream4").for_record()
        {'seeds': 2, 'quick': False, 'device': 'cpu', 'data': 'dream4'}
        """
        return {**vars(self), "data": None if self.data is None else Path(self.data).resolve().name}


Work = Callable[[Options, Listener], Values]


@dataclass(frozen=True)
class Task:
    """A piece of a study that needs no other: its name among them, and the work."""

    name: str
    run: Work


@dataclass(frozen=True)
class Table:
    """Rows of text under columns, with remarks below."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"**{self.title}**", "", _line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line(row) for row in self.rows]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"


class Study(ABC):
    """One table or figure of the paper."""

    name: ClassVar[str]
    title: ClassVar[str]
    needs_data: ClassVar[str | None] = None  # what --data has to name, for example "the folder of DREAM4"
    takes_data: ClassVar[bool] = False  # it can do without --data, but uses what it names

    @abstractmethod
    def tasks(self) -> list[Task]:
        """Return the independent pieces of work."""

    @abstractmethod
    def tables(self, records: Records) -> list[Table]:
        """Return the tables, each with the paper's value, ours, deviation and number of runs."""

    def figures(self, records: Records) -> dict[str, Figure]:
        """Return the figures by name; most studies have some."""
        del records
        return {}


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
