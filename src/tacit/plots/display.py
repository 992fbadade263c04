"""What all displays share: where their numbers come from, and the axes that they are drawn on.

New data beside a run directory may be files, as the command reads them, or tables and arrays, as an estimator does.
"""

import os
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from tacit.errors import InputError, require
from tacit.pipeline import Fitted, Source, evaluate, read_new
from tacit.records import Run, read_one_run
from tacit.sklearn import LatentGraphForecaster, LatentGraphRegressor, load

Estimator = LatentGraphForecaster | LatentGraphRegressor
RunPath = str | os.PathLike[str]
D = TypeVar("D", bound="Display")
R = TypeVar("R", bound="RunDisplay")


class Display:
    """A plot of a fitted estimator or of a run directory.

    ``from_estimator`` and ``from_run`` draw it, on new axes or on those that are passed as ``ax``, and return the
    display. ``ax_`` and ``figure_`` are the axes and their figure; :meth:`plot` draws it once more.
    """

    ax_: Axes
    figure_: Figure | SubFigure

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 6.4, 4.4

    def plot(self: D, ax: Axes | None = None) -> D:
        """Draw it on ``ax``, or on the axes of a new figure of pyplot; return the display."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=self.figsize, layout="constrained")
        require(
            isinstance(ax, Axes),
            f"ax must be one Axes of matplotlib, got {type(ax).__name__}; pass for example plt.gca()",
        )
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError


class RunDisplay(Display):
    """A plot that the record, the edges and the history of a run are enough for."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @classmethod
    def from_estimator(cls: type[R], estimator: Estimator, *, ax: Axes | None = None, **options: Any) -> R:
        """Draw a fitted estimator; ``options`` are the parameters of the class."""
        return cls(estimator_run(estimator), **options).plot(ax)

    @classmethod
    def made(cls: type[R], run: RunPath, **options: Any) -> R:
        """Return the display of a run directory; it is not drawn yet."""
        return cls(stored_run(run), **options)

    @classmethod
    def from_run(cls: type[R], run: RunPath, *, ax: Axes | None = None, **options: Any) -> R:
        """Draw a run directory, from its records alone; ``options`` are the parameters of the class."""
        return cls.made(run, **options).plot(ax)


def require_estimator(estimator: Any) -> Estimator:
    """Refuse what is no estimator of tacit."""
    if not isinstance(estimator, LatentGraphForecaster | LatentGraphRegressor):
        raise InputError(
            f"estimator must be a LatentGraphForecaster or LatentGraphRegressor, got {type(estimator).__name__}; "
            "pass a run directory to from_run"
        )
    return estimator


def estimator_run(estimator: Any) -> Run:
    """Return the records of a fitted estimator."""
    return require_estimator(estimator).run_


def stored_run(run: RunPath) -> Run:
    """Read a run directory; of a demo one of its two runs has to be chosen."""
    return read_one_run(Path(run))


def fitted_and_source(run: RunPath, data: Any, y: Any = None) -> tuple[Fitted, Source]:
    """Return the model of a run and the data that was passed: paths, a table, or x and y of pairs."""
    stored_run(run)  # of a demo the run has to be chosen
    estimator = load(Path(run))
    if isinstance(data, str | os.PathLike):
        data = [data]
    if isinstance(data, list | tuple) and data and all(isinstance(one, str | os.PathLike) for one in data):
        fitted = estimator._with_predictor()
        return fitted, read_new(fitted, [os.fspath(path) for path in data])
    return estimator._with_predictor(), estimator._source(data, y, reset=False)


def evaluated(run: RunPath, data: Any) -> dict[str, Any]:
    """Return the scores of a run on new data."""
    fitted, source = fitted_and_source(run, data)
    return evaluate(fitted, source, seed=fitted.record.seed)
