"""Options of the data, of the graph and of the assessment. A value that is left out is chosen from the data.

A key that is also an option of the command has its ``command``; the command, its help, the template of a config file
and the reference are made from these classes. This file loads no library but pydantic, for a fast ``--help``.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tacit.config.closed import Closed
from tacit.errors import InputError, did_you_mean, require


def command(metavar: str = "", *, flag: str = "") -> dict[str, Any]:
    """Make a key an option of the command; without a ``metavar`` it is a flag. ``flag`` replaces the name."""
    return {"metavar": metavar, "flag": flag}


def _listed(value: Any) -> Any:
    """Convert one name to a list of one."""
    return (value,) if isinstance(value, str) else value


def _written(value: Any) -> Any:
    """Convert a number to text."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _edges_of(value: Any) -> Any:
    """Convert a square boolean mask, true at [target, source], to a list of edges by position."""
    if "bool" not in str(getattr(value, "dtype", "")) or value.ndim != 2:
        return value
    rows = enumerate(value.tolist())
    return [(source, target) for target, row in rows for source, is_edge in enumerate(row) if is_edge]


def _regimes(value: Any) -> Any:
    """Refuse an invalid number of regimes."""
    number = isinstance(value, int) and not isinstance(value, bool) and 2 <= value <= MOST_REGIMES
    require(
        value in (None, "auto") or number,
        f"regimes must be an integer from 2 to {MOST_REGIMES}, or 'auto', got {value!r}; pass for example 2",
    )
    return value


def _backgrounds(value: Any) -> Any:
    """Split text such as "daily,trend" at its commas, and refuse names that are not known."""
    given = _listed(value)
    if not all(isinstance(one, str) for one in given):
        return value
    names = [part.strip() for one in given for part in one.split(",")]
    for position, name in enumerate(names):
        if name not in BACKGROUNDS:
            known = ", ".join(BACKGROUNDS)
            raise InputError(f"background must name some of {known}, got '{name}'{did_you_mean(name, BACKGROUNDS)}")
        require(name not in names[:position], f"background names '{name}' twice; name it once")
        require(
            len(names) == 1 or name not in ("auto", "none"),
            f"background must be '{name}' alone or names of terms, got {', '.join(names)}; keep one of them",
        )
    return tuple(names) or ("none",)


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Node = str | Annotated[int, Field(ge=0, strict=True)]  # by name or by position
Edge = tuple[Node, Node]  # (source, target)
Edges = Annotated[tuple[Edge, ...], BeforeValidator(_edges_of)]
BACKGROUNDS = ("auto", "none", "trend", "shift", "cycle", "hourly", "daily", "weekly", "yearly", "weekend", "hours")
SELECTION_KEYS = ("columns", "drop", "decimal")
EVENT_KEYS = ("bin", "end", "units")
TABLE_KEYS = (
    "layout",
    "time",
    "node",
    "value",
    "separator",
    "covariates",
    "levels",
    "series",
    "dayfirst",
    "duplicates",
    "events",
    *EVENT_KEYS,
    *SELECTION_KEYS,
    "y_file",
)
SERIES_KEYS = ("targets", "window", "horizon", "where", "calendar", "background", "scale_by", "cut_series")
MOST_REGIMES = 6
PAIRS_KEYS = ("shuffle", "scale", "y_file")


class DataOptions(Closed):
    """Format of the data, columns, windows and splits."""

    layout: Literal["auto", "wide", "long"] = Field("auto", description="wide: a column per node; long: a row per node")
    columns: Names | None = Field(
        None,
        description="columns of values to use, by name or pattern such as a,b or 'temp*'; all when left out",
        json_schema_extra=command("NAMES"),
    )
    drop: Names = Field(
        (),
        description="columns to ignore, by name or pattern such as a,b or 'unnamed*'; also nodes",
        json_schema_extra=command("NAMES"),
    )
    decimal: Literal[".", ","] = Field(
        ".",
        description="decimal mark of the numbers in a text file, a point or a comma",
        json_schema_extra=command("MARK"),
    )
    time: str | Literal[False] | None = Field(
        None, description="name of the time column; found when left out; false: each row is a step"
    )
    dayfirst: bool | None = Field(
        None,
        description="read dates such as 03/04/2021 with the day first; found when only one reading fits",
        json_schema_extra=command(),
    )
    duplicates: Literal["first", "last", "mean"] | None = Field(
        None,
        description="rows with the same time: use the first, the last or the mean; refused when left out",
        json_schema_extra=command("HOW"),
    )
    series: str | None = Field(
        None, description="name of the column with the series of each row", json_schema_extra=command("NAME")
    )
    events: bool = Field(
        False, description="a row per event: counts per bin, a node per type", json_schema_extra=command()
    )
    bin: Annotated[str | None, BeforeValidator(_written)] = Field(
        None,
        description="events: length of a bin, such as 30s or 10min, or a number; chosen when left out",
        json_schema_extra=command("LENGTH"),
    )
    end: str | None = Field(
        None,
        description="events: name of the column of ends; an event then counts in each bin that it covers",
        json_schema_extra=command("NAME"),
    )
    units: str | None = Field(
        None,
        description="events: CSV file of units, and of a neighbour in each row, whose events may act too",
        json_schema_extra=command("FILE"),
    )
    node: str | None = Field(
        None, description="name of the column of node names, in a long table; of types, with events"
    )
    value: str | tuple[str, ...] | None = Field(
        None, description="name or names of the columns of values, in a long table"
    )
    separator: str | None = Field(
        None, description='separates node and variable in wide column names, as in "north:pm25"'
    )
    covariates: Names = Field((), description="columns with known values that all nodes share; numbers or words")
    levels: dict[str, tuple[str, ...]] = Field(
        {}, description="levels of categorical covariates, the reference first; those of the table when left out"
    )
    calendar: Names = Field(
        (),
        description="parts of the date as covariates (sine and cosine), such as hour,weekday,month",
        json_schema_extra=command("PARTS"),
    )
    background: Annotated[tuple[str, ...], BeforeValidator(_backgrounds)] = Field(
        ("auto",),
        description="trends, shifts and cycles beside which edges are tested: auto, none, or names such as daily,trend",
        json_schema_extra=command("auto|none|NAMES"),
    )
    where: str | None = Field(
        None,
        description="use only targets in rows where this is true, such as 'month in (6, 7, 8)'",
        json_schema_extra=command("CONDITION"),
    )
    y_file: str | None = Field(
        None,
        description="table of the targets y, a column per node, if DATA is a table of the inputs x",
        json_schema_extra=command("FILE"),
    )
    targets: Names | None = Field(None, description="variables to predict; all of them when left out")
    window: int | None = Field(
        None, ge=1, description="number of past steps in the input", json_schema_extra=command("N")
    )
    horizon: int = Field(1, ge=1, description="number of steps ahead to predict", json_schema_extra=command("N"))
    shuffle: bool = Field(True, description="pairs without time are shuffled before they are split")
    scale: bool | None = Field(None, description="pairs: standardise inputs and targets; no for 'hops'")
    scale_by: Literal["auto", "all", "level", "series"] = Field(
        "auto", description="several series: one scale for all, a mean for each, or a mean and a deviation for each"
    )
    cut_series: bool = Field(
        False, description="several series: split each in time order, instead of splitting by whole series"
    )
    from_zero: Names = Field((), description="nodes whose values are not centred; counts and yes or no never are")
    train_fraction: float = Field(
        0.7, gt=0, lt=1, description="fraction of the pairs for training; the first ones of a series"
    )
    validation_fraction: float = Field(0.1, gt=0, lt=1, description="fraction for validation; the rest is for the test")

    @property
    def fractions(self) -> tuple[float, float]:
        """Fractions for training and validation, with a sum below 1."""
        both = self.train_fraction, self.validation_fraction
        require(
            sum(both) < 1,
            f"train_fraction and validation_fraction in [data] must have a sum below 1, got {both[0]:g} and "
            f"{both[1]:g}; lower one",
        )
        return both

    def require_unset(self, keys: tuple[str, ...], source: str, reason: str) -> None:
        """Refuse options that would be ignored."""
        for key in keys:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise InputError(f"{key} in [data] has no meaning for {source}, {reason}; leave it out")


class GraphOptions(Closed):
    """Known edges, candidate edges and priors."""

    edges: str | None = Field(
        None,
        description="CSV file of known edges: source,target,kind,probability,min_lag,max_lag",
        json_schema_extra=command("FILE"),
    )
    forbidden: Edges = Field((), description='edges that do not exist, as [["source", "target"]]')
    required: Edges = Field((), description="edges that always exist")
    candidates: tuple[Edge, ...] | None = Field(None, description="the only possible edges; all when left out")
    priors: tuple[tuple[Node, Node, float], ...] = Field(
        (), description='prior probabilities, as [["source", "target", 0.9]]'
    )
    symmetric: bool = Field(False, description="edges have no direction", json_schema_extra=command())
    simultaneous: bool = Field(
        False, description="edges may also act within a time step, at lag 0", json_schema_extra=command()
    )
    depends_on: Names = Field(
        (),
        description="what edge probabilities may depend on: parts of the date, columns, series, time, source, target",
        json_schema_extra=command("NAMES"),
    )
    regimes: Annotated[int | Literal["auto"] | None, BeforeValidator(_regimes)] = Field(
        None,
        description="number of regimes between which edges switch together; auto: chosen on the validation part",
        json_schema_extra=command("N|auto"),
    )
    blocks: Literal["rows", "all"] = Field(
        "rows", description="rows: separate regimes for the edges into each node; all: regimes of the whole graph"
    )
    self_loops: bool = Field(False, description="a node's own past is always an input; this adds a random self-loop")
    coordinates: str | None = Field(None, description="CSV: node and its two coordinates, for k_nearest and for maps")
    k_nearest: int | None = Field(
        None, ge=1, description="number of nearest nodes that are candidate sources of a node"
    )
    metric: Literal["great_circle", "euclidean"] = Field(
        "great_circle", description="great_circle: latitude, longitude"
    )
    k_correlated: int | None = Field(
        None, ge=1, description="number of candidate sources of a node, chosen by correlation"
    )
    layout: Literal["auto", "matrix", "table"] = Field(
        "auto", description="matrix: all pairs of nodes; table: only the candidates, for many nodes"
    )
    evidence: Literal["auto", "regression", "model", "none"] = Field(
        "auto", description="how edges are tested; model: for influences over several edges"
    )
    density: float | None = Field(
        None, gt=0, lt=1, description="prior fraction of edges that exist; estimated from the data if left out"
    )
    smallest_effect: float = Field(
        0.02,
        ge=0,
        lt=1,
        description="share of what the other parents and drivers of a target explain that an edge must explain; 0: any",
        json_schema_extra=command("SHARE"),
    )
    prior_weight: float | None = Field(
        None, gt=0, description="weight of the priors in training; set from the data if left out"
    )
    min_lag: int | None = Field(
        None, ge=0, description="smallest lag of an edge, in steps before the target; 0 only with simultaneous"
    )
    max_lag: int | None = Field(
        None, ge=0, description="largest lag of an edge; the window is at least as long; 0: only within the step"
    )


class AssessmentOptions(Closed):
    """Uncertainty, goodness of fit and comparisons."""

    enabled: bool = Field(True, description="false: only train and score")
    thorough: bool = Field(False, description="true: 32 replicas, 8 starts, a larger sandwich, and always controls")
    bootstrap_replicas: int | None = Field(
        None,
        ge=0,
        description="bootstrap replicas for standard errors; 0: none",
        json_schema_extra=command("N", flag="--std-errors"),
    )
    starts: int | None = Field(None, ge=0, description="further fits from other random starts, if replicas are trained")
    block: int | None = Field(None, ge=1, description="block length of the bootstrap, for series")
    fdr: float = Field(0.1, gt=0, lt=1, description="false discovery rate of the listed edges")
    controls: bool | None = Field(None, description="also train without edges and with all edges, to compare")

    @model_validator(mode="after")
    def _not_both(self) -> "AssessmentOptions":
        if self.thorough and not self.enabled:
            raise ValueError("thorough must be false where enabled is false, got true; leave one of them out")
        return self

    @property
    def replicas(self) -> int:
        """Number of bootstrap replicas; 0 if the assessment is off."""
        from tacit.assessment.uncertainty import FEWEST_REPLICAS

        require(
            self.bootstrap_replicas is None
            or self.bootstrap_replicas == 0
            or self.bootstrap_replicas >= FEWEST_REPLICAS,
            f"bootstrap_replicas in [assessment] must be 0 or at least {FEWEST_REPLICAS}, got "
            f"{self.bootstrap_replicas}; raise it",
        )
        return self.bootstrap_replicas or 0 if self.enabled else 0
