"""The roles of the columns of a table: times, nodes, values, covariates, and those that are not used."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from tacit.data.cells import Table
from tacit.data.conditions import Condition
from tacit.data.duplicates import Duplicates
from tacit.data.levels import Levels
from tacit.data.seasons import require_names
from tacit.data.selection import is_pattern, matching
from tacit.data.time_column import TIME_NAMES
from tacit.errors import require

Layout = Literal["auto", "wide", "long"]
TimeName = str | Literal[False] | None
NODE_NAMES = ("node", "node_id", "station", "station_id", "sensor", "sensor_id", "site", "location", "series")


@dataclass(frozen=True)
class Columns:
    """The roles of the columns of a table, for files and DataFrames."""

    layout: Layout = "auto"
    time: TimeName = None
    node: str | None = None
    value: str | Sequence[str] | None = None
    covariates: Sequence[str] = ()
    sep: str | None = None
    series: str | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    dayfirst: bool | None = None
    also_asked: Sequence[str] = ()
    where: str | None = None
    calendar: Sequence[str] = ()
    levels: Levels = field(default_factory=dict)
    labels: Sequence[str] = ()  # columns that the condition names
    duplicates: Duplicates | None = None  # rows with the same time; None: refused

    def __post_init__(self) -> None:
        require(
            self.layout in get_args(Layout),
            f"layout must be one of {', '.join(get_args(Layout))}, got {self.layout!r}; pick one",
        )
        require(
            self.duplicates in (None, *get_args(Duplicates)),
            f"duplicates must be one of {', '.join(get_args(Duplicates))}, got {self.duplicates!r}; pick one",
        )
        for name in ("covariates", "columns", "drop"):
            names = getattr(self, name)
            require(not isinstance(names, str), f"{name} must be a list of column names, got {names!r}; put it in [ ]")

    @property
    def values(self) -> list[str]:
        """The columns of values that ``value`` names, for a long table."""
        return [] if self.value is None else [self.value] if isinstance(self.value, str) else list(self.value)

    @property
    def asked(self) -> frozenset[str]:
        """Names of columns, nodes and variables that must be kept because the user named them."""
        names = (name for name in self.columns or () if not is_pattern(name))
        return frozenset((*names, *self.values, *self.also_asked))

    @property
    def named(self) -> dict[str, list[str]]:
        """The columns that have a role, by the name of the option."""
        one = {"time": None if self.time is False else self.time, "node": self.node, "series": self.series}
        roles = {role: [] if name is None else [name] for role, name in one.items()}
        return {**roles, "value": self.values, "covariates": [*self.covariates]}

    def uses(self, column: str, others: Sequence[str | None] = ()) -> bool:
        """Return whether a column is named by an option or a condition, or is one of ``others``."""
        named = [name for names in self.named.values() for name in names]
        return column in (*named, *(self.columns or ()), *self.labels, *others)

    def require_there(self, table: Table) -> None:
        """Refuse columns that do not exist or that have two roles."""
        for argument, names in self.named.items():
            for name in names:
                table.require_column(argument, name)
            require(
                argument == "series" or self.series not in names,
                f"{table.path}: series must name its own column, got '{self.series}', which is also {argument}; "
                "name another",
            )

    def with_labels(self, table: Table) -> "tuple[Columns, Condition | None]":
        """Return the roles with the columns that the condition names, and the condition."""
        if self.where is None:
            return self, None
        condition = Condition.read(self.where)
        return replace(self, labels=require_names(condition, table.columns, str(table.path))), condition

    def without_dropped(self, table: Table) -> tuple[Table, tuple[str, ...], set[str]]:
        """Return the table without the dropped columns, the names that are not columns, and the dropped columns.

        Labels of a condition are kept. A name that is not a column may be a node of a long table.
        """
        fitting = {name: matching(name, table.columns, self.sep) for name in self.drop}
        dropped = {column for columns in fitting.values() for column in columns}
        for argument, names in {**self.named, "columns": self.columns or ()}.items():
            for name in names:
                if name in dropped or name in self.drop:
                    raise table.refuse(f"drop names '{name}', which {argument} names too; keep one of them")
        left = [column for column in table.columns if column not in dropped]
        if not left:
            raise table.refuse("drop must leave columns to read, got the names of all; leave some out of drop")
        times = [column for column in table.columns if column.lower() in TIME_NAMES]
        if self.time is None and times and not set(times) & set(left):
            raise table.refuse(
                f"drop names '{times[0]}', the column of times; keep it, set time to another column, or set time to "
                "false to count rows"
            )
        return (
            table.without(dropped - {*self.labels}),
            tuple(name for name, columns in fitting.items() if not columns),
            dropped,
        )
