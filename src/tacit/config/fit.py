"""All options of a fit. A value that is left out (None, or "auto") is chosen from the data.

The same classes are the sections of the config file of ``tacit fit`` and the option objects of the estimators.
"""

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from tacit.assessment.uncertainty import FEWEST_REPLICAS
from tacit.config.closed import Closed, RegisteredName, RegisteredNames
from tacit.config.model import ModelConfig
from tacit.errors import InputError, did_you_mean, require
from tacit.predictors import PredictorKind
from tacit.registry import OBSERVATIONS, PREDICTORS

LARGEST_COUNT = 100_000  # numbers in an exact sum, for each target and graph
OWN = "own"  # the kind of a predictor or loss that was passed as an object


def _listed(value: Any) -> Any:
    """Convert one name to a list of one."""
    return (value,) if isinstance(value, str) else value


def _edges_of(value: Any) -> Any:
    """Convert a square boolean mask, true at [target, source], to a list of edges by position."""
    if "bool" not in str(getattr(value, "dtype", "")) or value.ndim != 2:
        return value
    rows = enumerate(value.tolist())
    return [(source, target) for target, row in rows for source, is_edge in enumerate(row) if is_edge]


def _in_order(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    """Refuse categories that are not two or more increasing numbers."""
    if values is not None:
        shown = ", ".join(f"{value:g}" for value in values) or "none"
        require(
            len(values) > 1 and all(low < high for low, high in pairwise(values)),
            f"categories must be two or more increasing numbers, got {shown}; write for example [1, 2, 3]",
        )
    return values


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
Width = Annotated[int, Field(ge=1)]
Node = str | Annotated[int, Field(ge=0, strict=True)]  # by name or by position
Edge = tuple[Node, Node]  # (source, target)
Edges = Annotated[tuple[Edge, ...], BeforeValidator(_edges_of)]
BACKGROUNDS = ("auto", "none", "trend", "shift", "cycle", "hourly", "daily", "weekly", "yearly", "weekend", "hours")
SELECTION_KEYS = ("columns", "drop", "decimal")
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
    *SELECTION_KEYS,
    "y_file",
)
SERIES_KEYS = ("targets", "window", "horizon", "where", "calendar", "background", "scale_by", "cut_series")
MOST_REGIMES = 6
PAIRS_KEYS = ("shuffle", "scale", "y_file")


class DataOptions(Closed):
    """Format of the data, columns, windows and splits."""

    layout: Literal["auto", "wide", "long"] = Field("auto", description="wide: a column per node; long: a row per node")
    columns: Names | None = Field(None, description="columns of values to use, by name or pattern; all when left out")
    drop: Names = Field((), description='columns to ignore, by name or pattern such as "unnamed*"; also nodes')
    decimal: Literal[".", ","] = Field(".", description="decimal point of the numbers in a text file")
    time: str | Literal[False] | None = Field(
        None, description="name of the time column; found when left out; false: each row is a step"
    )
    dayfirst: bool | None = Field(None, description="03/04/2021 is the 3rd of April; found when only one reading fits")
    duplicates: Literal["first", "last", "mean"] | None = Field(
        None, description="rows with the same time: use the first, the last or the mean; refused when left out"
    )
    series: str | None = Field(None, description="name of the column with the series of each row")
    node: str | None = Field(None, description="name of the column of node names, in a long table")
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
    calendar: Names = Field((), description="parts of the date as covariates (sine, cosine): hour, weekday, month, ...")
    background: Annotated[tuple[str, ...], BeforeValidator(_backgrounds)] = Field(
        ("auto",),
        description="trends, shifts and cycles of the nodes: auto, none, or names such as daily, trend",
    )
    where: str | None = Field(
        None, description='use only targets in rows where this is true, such as "month in (6, 7, 8)"'
    )
    y_file: str | None = Field(None, description="table of y, a column per node, if DATA is a table of x")
    targets: Names | None = Field(None, description="variables to predict; all of them when left out")
    window: int | None = Field(None, ge=1, description="number of past steps in the input")
    horizon: int = Field(1, ge=1, description="number of steps ahead to predict")
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

    edges: str | None = Field(None, description="CSV of rules: source,target,kind,probability,min_lag,max_lag")
    forbidden: Edges = Field((), description='edges that do not exist, as [["source", "target"]]')
    required: Edges = Field((), description="edges that always exist")
    candidates: tuple[Edge, ...] | None = Field(None, description="the only possible edges; all when left out")
    priors: tuple[tuple[Node, Node, float], ...] = Field(
        (), description='prior probabilities, as [["source", "target", 0.9]]'
    )
    symmetric: bool = Field(False, description="edges have no direction")
    simultaneous: bool = Field(False, description="edges may also act within a step, at lag 0")
    depends_on: Names = Field(
        (),
        description="what edge probabilities may depend on: hour, month, ..., columns, series, time, source, target",
    )
    regimes: Annotated[int | Literal["auto"] | None, BeforeValidator(_regimes)] = Field(
        None, description="number of regimes between which edges switch together; auto: chosen on the validation part"
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


class PredictorOptions(Closed):
    """The model that predicts from inputs and a graph."""

    kind: Annotated[str, AfterValidator(RegisteredName(PREDICTORS, also=("auto", OWN)))] = Field(
        "auto", description="a registered name; chosen from the data by default"
    )
    hidden: Width | tuple[Width, ...] = Field(32, description="width of hidden layers")
    layers: int = Field(1, ge=1, le=100, description="hidden graph layers; each extends the reach by one edge")
    num_hops: int = Field(2, ge=1, le=100, description="for 'hops': maximum number of edges on a path of influence")
    activation: Literal["linear", "tanh"] = Field("linear", description="activation of the filter")
    residual: bool | None = Field(None, description="predict the change from the last value; yes for series")
    warm_start: bool | None = Field(None, description="start from a ridge regression; yes for the linear filter")
    options: dict[str, Any] = Field({}, description="options of a registered kind")

    def require_used(self, kind: PredictorKind) -> None:
        """Refuse options that the kind of predictor would ignore."""
        for key in type(self).model_fields:
            value = getattr(self, key)
            if key != "kind" and key not in kind.uses and value not in (False, type(self).model_fields[key].default):
                used = f"which uses {', '.join(kind.uses)}" if kind.uses else "which uses none of these"
                raise InputError(f"{key} in [predictor] is not for '{self.kind}', {used}; leave it out")
        require(
            not self.warm_start or self.activation == "linear",
            "warm_start in [predictor] requires activation 'linear', got 'tanh'; leave it out",
        )


class ObservationOptions(Closed):
    """The noise of the targets."""

    kind: Annotated[str | dict[str, str], AfterValidator(RegisteredNames(OBSERVATIONS, also=("auto",)))] = Field(
        "auto", description='a registered name, or a table by node such as {a = "poisson", "*" = "gaussian"}'
    )
    categories: Annotated[tuple[float, ...] | None, AfterValidator(_in_order)] = Field(
        None, description="'ordered': all values in increasing order; those of the training part when left out"
    )
    largest_count: int | None = Field(
        None, ge=1, le=LARGEST_COUNT, description="counts: largest count in exact sums; from the data if left out"
    )


class TrainingOptions(Closed):
    """Length of the training, learning rates and random starts."""

    epochs: int | None = Field(None, ge=1, le=1_000_000, description="passes over the training pairs")
    batch_size: int | None = Field(None, ge=1, description="pairs per step")
    learning_rate: float = Field(
        0.05, gt=0, le=100, description="learning rate of the edges; decays to 0 along a cosine"
    )
    predictor_learning_rate: float | None = Field(None, gt=0, le=100, description="learning rate of the predictor")
    replicas: int | None = Field(
        None, ge=1, description="random starts; the one with the lowest validation loss is kept"
    )
    patience: int | None = Field(None, ge=1, description="epochs without improvement before training stops")
    compile: bool | None = Field(None, description="compile the training step; faster for long training")


class AssessmentOptions(Closed):
    """Uncertainty, goodness of fit and comparisons."""

    enabled: bool = Field(True, description="false: only train and score")
    thorough: bool = Field(False, description="true: 32 replicas, 8 starts, a larger sandwich, and always controls")
    bootstrap_replicas: int | None = Field(None, ge=0, description="bootstrap replicas for standard errors; 0: none")
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
        require(
            self.bootstrap_replicas is None
            or self.bootstrap_replicas == 0
            or self.bootstrap_replicas >= FEWEST_REPLICAS,
            f"bootstrap_replicas in [assessment] must be 0 or at least {FEWEST_REPLICAS}, got "
            f"{self.bootstrap_replicas}; raise it",
        )
        return self.bootstrap_replicas or 0 if self.enabled else 0


class FitConfig(Closed):
    """All options of a fit."""

    data: DataOptions = DataOptions()
    graph: GraphOptions = GraphOptions()
    predictor: PredictorOptions = PredictorOptions()
    observation: ObservationOptions = ObservationOptions()
    model: ModelConfig = ModelConfig()
    training: TrainingOptions = TrainingOptions()
    assessment: AssessmentOptions = AssessmentOptions()
