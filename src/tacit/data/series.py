"""A series on nodes: what a table of a user becomes, whatever file it came from."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from tacit.errors import InputError, require

Values = Float[np.ndarray, "time node channel"]
Times = Shaped[np.ndarray, " time"]
LARGEST = 1e15  # of a number, and of the inverse of a spread: training is in single precision, and squares must fit
RESCALE = "write the numbers in another unit, and leave a cell empty that stands for a missing value"


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers per time, node and variable, one row per step of an even grid; NaN where nothing was observed.

    ``covariates`` are known numbers that all nodes share, such as the hour of the day; they have no gaps.
    ``coordinates`` are two numbers per node, such as latitude and longitude. ``notes`` say what a reader changed.
    A node that is never observed or never moves is refused, unless the series is a ``piece``: one of several
    experiments, or new rows to predict from, where that may happen.

    >>> series = Series(np.array([[[1.0], [2.0]], [[3.0], [np.nan]], [[2.0], [5.0]]]), nodes=("a", "b"))
    >>> len(series), series.num_missing, series.channels
    (3, 1, ('value',))
    """

    values: Values
    nodes: tuple[str, ...]
    channels: tuple[str, ...] = ("value",)
    times: Times | None = None
    covariates: Float[np.ndarray, "time covariate"] | None = None
    covariate_names: tuple[str, ...] = ()
    coordinates: Float[np.ndarray, "node 2"] | None = None
    notes: tuple[str, ...] = ()
    piece: bool = False

    def __post_init__(self) -> None:
        self._require_shapes()
        require(all(self.nodes), "a node has no name; name every column of the table, and every node")
        require_unique("nodes", self.nodes)
        require_unique("channels", self.channels)
        self._require_numbers()
        if not self.piece:
            self._require_movement()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def num_missing(self) -> int:
        """Number of values that are not there."""
        return int(np.isnan(self.values).sum())

    @property
    def row_times(self) -> Times:
        """The time of every row; the rows are counted from 0 where no times are known."""
        return np.arange(len(self)) if self.times is None else self.times

    def _require_shapes(self) -> None:
        _require_floats("values", self.values, 3, "(time, node, channel)", "add the missing axis")
        time, node, channel = self.values.shape
        require(time > 0, "values needs at least one row, got none")
        for name, words, need in (("nodes", self.nodes, node), ("channels", self.channels, channel)):
            require(
                len(words) == need,
                f"{name} needs one name for each of the {need} in values, got {len(words)}; name them all",
            )
        if self.times is not None:
            require(
                self.times.shape == (time,),
                f"times needs one time for each of the {time} rows of values, got shape {self.times.shape}",
            )
        shape = (time, len(self.covariate_names)) if self.covariate_names else None
        if self.covariates is not None:
            _require_floats("covariates", self.covariates, 2, "(time, covariate)", "add the missing axis")
        got = None if self.covariates is None else self.covariates.shape
        require(
            got == shape,
            f"covariates needs {time} rows and one column for each of covariate_names {self.covariate_names}, "
            f"got shape {got}; pass both or neither",
        )
        if self.coordinates is not None:
            _require_floats("coordinates", self.coordinates, 2, "(node, 2)", "pass two numbers per node")
            require(
                self.coordinates.shape == (node, 2),
                f"coordinates needs shape {(node, 2)}, two numbers per node, got {self.coordinates.shape}",
            )

    def _require_numbers(self) -> None:
        for bad, need, remedy in (
            (np.isinf(self.values), "finite numbers, or NaN for missing", "correct or remove it"),
            (np.abs(self.values) > LARGEST, f"numbers of at most {LARGEST:g}", f"correct it, or {RESCALE}"),
        ):
            places = np.argwhere(bad)
            if len(places):
                row, node, channel = (int(i) for i in places[0])
                raise InputError(
                    f"values needs {need}, got {self.values[row, node, channel]} for {self._name(node, channel)} in "
                    f"row {row} ({len(places)} such values); {remedy}"
                )
        if self.covariates is not None:
            for row, column in np.argwhere(~(np.abs(self.covariates) <= LARGEST))[:1]:
                number = self.covariates[row, column]
                need, remedy = (
                    (f"numbers of at most {LARGEST:g}", RESCALE)
                    if np.isfinite(number)
                    else ("finite numbers", "fill it in")
                )
                raise InputError(
                    f"covariates needs {need}, got {number} for '{self.covariate_names[column]}' in row {row}; {remedy}"
                )
        if self.coordinates is not None:
            for node in np.flatnonzero(~np.isfinite(self.coordinates).all(axis=1))[:1]:
                raise InputError(f"coordinates needs two finite numbers for node '{self.nodes[node]}'; fill them in")

    def _require_movement(self) -> None:
        """Refuse what is never observed or always the same."""
        empty = np.argwhere(np.isnan(self.values).all(axis=0))
        if len(empty):
            raise InputError(f"{self._name(*empty[0].tolist())} is missing at every time; leave it out")
        constant = np.argwhere(np.nanmax(self.values, axis=0) == np.nanmin(self.values, axis=0))
        if len(constant):
            node, channel = constant[0].tolist()
            raise InputError(
                f"{self._name(node, channel)} is constant ({np.nanmax(self.values[:, node, channel])} wherever it is "
                "observed), so nothing can be learned about it; leave it out"
            )

    def _name(self, node: int, channel: int) -> str:
        variable = f" (variable '{self.channels[channel]}')" if len(self.channels) > 1 else ""
        return f"node '{self.nodes[node]}'{variable}"


def require_unique(name: str, words: tuple[str, ...]) -> None:
    """Raise :class:`InputError` when a name comes twice.

    >>> require_unique("nodes", ("a", "b", "a"))
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: nodes needs different names, got 'a' twice; rename one
    """
    seen: set[str] = set()
    for word in words:
        require(word not in seen, f"{name} needs different names, got '{word}' twice; rename one")
        seen.add(word)


def _require_floats(name: str, values: object, num_axes: int, shape: str, remedy: str) -> None:
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        got = getattr(values, "dtype", type(values).__name__)
        raise InputError(f"{name} needs a numpy array of float64, got {got}; use np.asarray(values, dtype=float)")
    require(values.ndim == num_axes, f"{name} needs shape {shape}, got {values.shape}; {remedy}")
