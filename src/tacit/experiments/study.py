"""The interface of a study: tasks that make records, and tables and figures drawn from the records."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure

from tacit.training import Listener as Listener  # imported from here by the studies

Values = dict[str, Any]  # results of a task: numbers, strings and lists, as in a JSON file
Records = Mapping[str, Values]  # by name of the task


@dataclass(frozen=True)
class Options:
    """The size of a study: initialisations of each row, and whether it is a short trial."""

    seeds: int = 8
    quick: bool = False
    device: str = "cpu"
    data: str | None = None  # a folder or file with data that is not included in the package

    @property
    def torch_device(self) -> torch.device:
        """The device as torch names it."""
        return torch.device(self.device)

    def for_record(self) -> Values:
        """Return the options for a record, with the name of the data instead of its path.

        >>> Options(seeds=2, data="somewhere/dream4").for_record()
        {'seeds': 2, 'quick': False, 'device': 'cpu', 'data': 'dream4'}
        """
        return {**vars(self), "data": None if self.data is None else Path(self.data).resolve().name}


Work = Callable[[Options, Listener], Values]


@dataclass(frozen=True)
class Task:
    """An independent part of a study: its name and its work."""

    name: str
    run: Work


@dataclass(frozen=True)
class Table:
    """A table of text with column names and notes."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"**{self.title}**", "", _line(self.columns), "|" + "---|" * len(self.columns)]
        lines += [_line(row) for row in self.rows]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"


class Study(ABC):
    """One table or figure of the paper."""

    name: ClassVar[str]
    title: ClassVar[str]
    needs_data: ClassVar[str | None] = None  # description of the data for --data, for example "the folder of DREAM4"
    takes_data: ClassVar[bool] = False  # whether it uses --data if it is given

    @abstractmethod
    def tasks(self) -> list[Task]:
        """Return the independent tasks."""

    @abstractmethod
    def tables(self, records: Records) -> list[Table]:
        """Return the tables, each with the paper's value, ours, deviation and number of runs."""

    def figures(self, records: Records) -> dict[str, Figure]:
        """Return the figures by name; most studies have some."""
        del records
        return {}


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
