"""A fan chart: the observed values of a node, and the median and the 50%, 80% and 95% intervals of its forecasts."""

from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

from tacit.errors import InputError
from tacit.pipeline import Fan, fan_of, kept_fan
from tacit.plots.display import Display, Estimator, RunPath, fitted_and_source, require_estimator, stored_run
from tacit.records import Run
from tacit.report import FORECAST_COLOUR

F = TypeVar("F", bound="ForecastDisplay")
SHARES = {0.95: 0.2, 0.8: 0.4, 0.5: 0.65}  # level of an interval -> share of the colour, the rest is white
NO_DATA = (
    "no forecasts were kept of this fit; pass data, a table in the format of the training data: "
    "from_run(RUN, data=...), or tacit plot RUN forecast --data FILE"
)


class ForecastDisplay(Display):
    """The fan chart of one node, for new data or for the end of the test part, of which a run keeps the forecasts.

    Each forecast uses the rows before it. With ``steps`` the chart is one path of so many steps after the end of the
    table, or after the row at the time ``origin``. Pairs have no order: they are sorted by the median.

    ``node``      name of the node; None: the first
    ``variable``  name of the variable, where nodes have several; None: the first
    ``series``    name of the series, where there are several; None: the first
    ``last``      number of forecasts shown, the last ones; with ``steps`` the number of observed values before them
    """

    def __init__(self, fan: Fan) -> None:
        self.fan = fan

    @classmethod
    def from_estimator(
        cls: type[F],
        estimator: Estimator,
        X: Any = None,  # noqa: N803
        y: Any = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> F:
        """Draw the forecasts of a table, or of pairs ``X`` and ``y``; None: those that were kept of the test part.

        ``options`` are ``node``, ``variable``, ``series``, ``last``, ``steps`` and ``origin``.
        """
        own = require_estimator(estimator)
        if X is None:
            return cls(_kept(own.run_, options)).plot(ax)
        return cls(fan_of(own._with_predictor(), own._source(X, y, reset=False), **options)).plot(ax)

    @classmethod
    def made(cls: type[F], run: RunPath, data: Any = None, y: Any = None, **options: Any) -> F:
        """Return the display of a run directory; it is not drawn yet."""
        if data is None:
            return cls(_kept(stored_run(run), options))
        return cls(fan_of(*fitted_and_source(run, data, y), **options))

    @classmethod
    def from_run(
        cls: type[F], run: RunPath, data: Any = None, y: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> F:
        """Draw the forecasts of a run directory for ``data``: a file, several, a table, or x and ``y`` of pairs.

        Without ``data`` the chart shows the forecasts that the run keeps.

        ``options`` are those of :meth:`from_estimator`.
        """
        return cls.made(run, data, y, **options).plot(ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 8.0, 3.6

    def _draw(self, ax: Axes) -> None:
        fan = self.fan
        x, order = fan.times, np.arange(len(fan.times))
        observed_x, observed = fan.observed_times, fan.observed
        if not fan.has_times:
            x, order = order, np.argsort(fan.quantile(0.5), kind="stable")
            observed_x, observed = x, observed[order]
        style: dict[str, Any] = {"ls": "-", "lw": 0.6} if fan.has_times else {"ls": "none"}
        ax.plot(observed_x, observed, color="black", marker="o", markersize=2.2, zorder=3, label="observed", **style)
        ax.plot(x, fan.quantile(0.5)[order], color=FORECAST_COLOUR, lw=1.4, zorder=2.5, label="median")
        for level, share in SHARES.items():
            low, high = (fan.quantile(0.5 + side * level / 2)[order] for side in (-1, 1))
            colour = share * np.array(to_rgb(FORECAST_COLOUR)) + 1 - share
            ax.fill_between(x, low, high, color=colour, linewidth=0, label=f"{level:.0%} interval")
        ax.set_title(fan.title, parse_math=False, loc="right")
        ax.set_xlabel(fan.row_name if fan.has_times else "pairs, by the median of their forecast")
        ax.set_ylabel("" if fan.variable == "value" else fan.variable, parse_math=False)
        ax.legend(frameon=False, fontsize=7, ncols=5, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)
        if np.issubdtype(fan.times.dtype, np.datetime64):
            locator = AutoDateLocator()  # type: ignore[no-untyped-call]
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _kept(run: Run, options: dict[str, Any]) -> Fan:
    """Return the forecasts that a run keeps; an error where it keeps none."""
    if run.forecasts is None:
        raise InputError(NO_DATA)
    return kept_fan(run.forecasts, run.record.node_names, **options)
