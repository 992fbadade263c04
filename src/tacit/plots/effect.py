"""Impulse responses: how the nodes respond over time to a change of some, with intervals."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from matplotlib.axes import Axes

from tacit.errors import InputError, did_you_mean, require_int
from tacit.plots.display import Display, Estimator, RunPath, require_estimator
from tacit.sklearn import LatentGraphForecaster, load

if TYPE_CHECKING:
    import pandas as pd

E = TypeVar("E", bound="EffectDisplay")
PALE = 0.18  # of an interval


class EffectDisplay(Display):
    """The response of each node to a change: its mean, and its interval as a band.

    ``table``   what ``effect`` of a forecaster returned, for one series
    ``nodes``   names of the nodes that are drawn; None: the ``most`` with the largest responses, after the changed ones
    """

    def __init__(self, table: "pd.DataFrame", *, nodes: Sequence[str] | None = None, most: int = 6) -> None:
        require_int("most", most)
        if "series" in table and table["series"].nunique() > 1:
            raise InputError("table must be of one series; choose one, for example table[table.series == 'a']")
        sizes = table["response"].abs().groupby(table["node"], sort=False).max().sort_values(ascending=False)
        if nodes is None:
            nodes = list(sizes[sizes > 0].index[:most])
        for node in nodes:
            if node not in sizes:
                raise InputError(
                    f"nodes must be among those of the table, got {node!r}{did_you_mean(node, sizes.index)}"
                )
        self.table, self.nodes = table, list(nodes)

    @classmethod
    def from_estimator(
        cls: type[E],
        estimator: Estimator,
        changes: Mapping[str, float],
        X: Any = None,  # noqa: N803
        *,
        ax: Axes | None = None,
        nodes: Sequence[str] | None = None,
        most: int = 6,
        **options: Any,
    ) -> E:
        """Draw the effect of some changes; ``options`` are those of ``effect`` of the forecaster."""
        own = require_estimator(estimator)
        if not isinstance(own, LatentGraphForecaster):
            raise InputError(
                "an effect over time requires a LatentGraphForecaster, got a LatentGraphRegressor; fit a table of times"
            )
        return cls(own.effect(changes, X, **options), nodes=nodes, most=most).plot(ax)

    @classmethod
    def from_run(
        cls: type[E],
        run: RunPath,
        changes: Mapping[str, float],
        data: Any = None,
        *,
        ax: Axes | None = None,
        **how: Any,
    ) -> E:
        """Draw the effect of some changes in a run directory; ``how`` are the options of :meth:`from_estimator`."""
        return cls.from_estimator(load(Path(run)), changes, data, ax=ax, **how)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 6.4, 3.6

    def _draw(self, ax: Axes) -> None:
        ax.axhline(0, color="0.8", lw=0.8, zorder=0)
        for node in self.nodes:
            rows = self.table[self.table["node"] == node]
            (line,) = ax.plot(rows["step"], rows["response"], lw=1.4, marker="o", markersize=2.5, label=str(node))
            if np.isfinite(rows["low"]).all():
                ax.fill_between(rows["step"], rows["low"], rows["high"], color=line.get_color(), alpha=PALE, lw=0)
        ax.set_xlabel("steps after the change")
        ax.set_ylabel("response")
        if self.nodes:
            legend = ax.legend(frameon=False, fontsize=8)
            for text in legend.get_texts():
                text.set_parse_math(False)
