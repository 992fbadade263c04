"""The interface of a study: tasks that make records, tables and figures of them, and numbers that studies share."""

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from matplotlib.figure import Figure

from tacit.errors import InputError, TrainingError
from tacit.records import describe_device, versions
from tacit.training import Listener as Listener  # imported from here by the studies

OPTIMAL_NOTE = (
    "point errors: the paper's optimal values (0.158, 0.267) are 2% higher than those here, which use the mean and "
    "median of 1,000 graphs. With S graphs the MSE is higher by the factor 1 + 1/S, so the paper may have used fewer"
)

LOSS_METRICS = ("edge_prob_mae", "point_mae", "point_mse")
# The paper's loss table: mean and deviation of each metric over 8 runs.
LOSS_TABLE = {
    "literature_1_mae": ((0.087, 0.001), (0.270, 0.003), (0.180, 0.003)),
    "literature_1_mse": ((0.087, 0.001), (0.293, 0.001), (0.161, 0.002)),
    "literature_2_mae": ((0.086, 0.001), (0.270, 0.002), (0.176, 0.002)),
    "literature_2_mse": ((0.085, 0.001), (0.295, 0.001), (0.161, 0.002)),
    "elbo": ((0.082, 0.001), (0.310, 0.010), (0.191, 0.020)),
    "point_mse": ((0.025, 0.001), (0.271, 0.003), (0.161, 0.002)),
    "energy": ((0.010, 0.002), (0.269, 0.001), (0.159, 0.001)),
    "mmd": ((0.009, 0.001), (0.269, 0.001), (0.159, 0.001)),
}


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
Tasks = dict[str, Work]  # the independent parts of a study by name


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
    def tasks(self) -> Tasks:
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


Outcome = tuple[str, Values | Exception]  # of a task: its record, or the error it raised
Outcomes = Generator[Outcome, None, None]
RunTasks = Callable[[Study, Sequence[str], Options], Outcomes]


def do_task(study: Study, task: str, options: Options, listener: Listener | None = None) -> Values:
    """Run one task and return its record, with the device and versions of this process.

    >>> from tacit.experiments.theory import Counterexample
    >>> record = do_task(Counterexample(), "curves", Options(quick=True))
    >>> sorted(record)
    ['curves', 'device', 'options', 'seconds', 'versions']
    """
    start = time.perf_counter()
    values = study.tasks()[task](options, listener or Listener())
    return {
        **values,
        "options": options.for_record(),
        "seconds": time.perf_counter() - start,
        "device": describe_device(options.torch_device),
        "versions": versions(),
    }


def try_task(study: Study, task: str, options: Options) -> Outcome:
    """Return the task with its record, or with the error that it raised."""
    try:
        return task, do_task(study, task, options)
    except (InputError, TrainingError, OSError) as error:  # their message is enough, without a traceback
        error.add_note(f"in task {task} of {study.name}")
        return task, error
    except Exception as error:
        error.add_note(f"in task {task} of {study.name}, elsewhere:\n{traceback.format_exc()}")
        return task, error
