"""Checks of a fit: losses during training, and the calibration of edge probabilities and forecast intervals."""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from matplotlib.axes import Axes

from tacit.errors import InputError, require
from tacit.plots.display import Estimator, RunDisplay, RunPath, estimator_run, evaluated, require_estimator, stored_run
from tacit.records import Run, listed_in
from tacit.report import (
    coverage_on,
    draw_curve,
    rank_shares,
    ranks_on,
    reliability_on,
    reliability_points,
    training_curves,
)

Kind = Literal["edges", "intervals", "ranks"]
C = TypeVar("C", bound="CalibrationDisplay")
COVERAGE = "coverage_"  # in front of the level, among the scores
REMEDIES = {
    "edges": "kind 'edges' requires the true edge probabilities, got none; pass truth=, or kind='intervals'",
    "intervals": "kind 'intervals' requires forecast scores, which this run does not have; pass kind='ranks'",
    "ranks": "kind 'ranks' requires the fit test, which was left out of this fit; fit with the assessment enabled, "
    "or pass data",
}


class CalibrationDisplay(RunDisplay):
    """Are probabilities as large as they should be? Points on the dashed line are calibrated.

    ``kind``   "edges": learned against true edge probabilities, in bins whose area grows with the number of edges;
               small points and lines are single edges and their 95% intervals. "intervals": the share of observed
               values inside the 50%, 80% and 95% forecast intervals; bars are the range over the nodes. "ranks": how
               often each rank of the observed value among samples occurs, a line per node (a PIT histogram). None:
               "edges" where the truth is known, else "intervals"
    ``truth``  the true edge probabilities, target rows and source columns; those of a demo are in its record

    Intervals and ranks are those of the test part of the fit, or of new data that is passed to ``from_estimator`` or
    ``from_run``.
    """

    def __init__(
        self,
        run: Run,
        *,
        kind: Kind | None = None,
        truth: Any = None,
        scores: Mapping[str, Any] | None = None,
    ) -> None:
        if truth is not None:
            probs, nodes = np.asarray(truth, dtype=float), len(run.record.node_names)
            require(
                probs.shape == (nodes, nodes),
                f"truth must have a row per target and a column per source, ({nodes}, {nodes}), got {probs.shape}; "
                "pass a probability for each ordered pair",
            )
            record = run.record.model_copy(update={"true_edge_probs": probs.tolist()})
            run = run.model_copy(update={"record": record, "edges": listed_in(record, run.edges)})
        super().__init__(run)
        known = self.run.record.true_edge_probs is not None
        self.kind = kind or ("edges" if known and scores is None else "intervals")
        require(
            self.kind in get_args(Kind),
            f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}; pass 'intervals'",
        )
        record = self.run.record
        found: dict[str, Any] = {name: getattr(record, name) for name in ("metrics", "by_node", "goodness")}
        found |= scores or {}
        self.bins = reliability_points(self.run) if self.kind == "edges" else None
        self.coverage = coverage_of(found["metrics"], found["by_node"]) if self.kind == "intervals" else []
        self.ranks = rank_shares(found["goodness"]) if self.kind == "ranks" else {}
        if not (self.bins or self.coverage or self.ranks):
            raise InputError(REMEDIES[self.kind])

    @classmethod
    def from_estimator(
        cls: type[C],
        estimator: Estimator,
        X: Any = None,  # noqa: N803
        y: Any = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> C:
        """Draw a fitted estimator; with ``X`` (and ``y`` of pairs) the forecasts of this data."""
        run = estimator_run(estimator)
        scores = None if X is None else require_estimator(estimator).evaluate(X, y)
        return cls(run, scores=scores, **options).plot(ax)

    @classmethod
    def made(cls: type[C], run: RunPath, data: Any = None, **options: Any) -> C:
        """Return the display of a run directory; it is not drawn yet."""
        return cls(stored_run(run), scores=None if data is None else evaluated(run, data), **options)

    @classmethod
    def from_run(cls: type[C], run: RunPath, data: Any = None, *, ax: Axes | None = None, **options: Any) -> C:
        """Draw a run directory; with ``data``, a file or a table, the forecasts of this data."""
        return cls.made(run, data, **options).plot(ax)

    @property
    def figsize(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 4.8, 4.4

    def _draw(self, ax: Axes) -> None:
        if self.bins is not None:
            edges = self.run.edges.each_once()  # small and pale, with their intervals
            ax.scatter(edges.acts, edges["truth"], s=5, color="0.6", linewidths=0, zorder=2)
            if "low" in edges:
                ax.hlines(edges["truth"], edges["low"], edges["high"], color="0.6", lw=0.8)
            reliability_on(ax, self.bins)
        elif self.coverage:
            coverage_on(ax, self.coverage)
        else:
            ranks_on(ax, self.ranks)


def coverage_of(metrics: Mapping[str, float], by_node: Mapping[str, Mapping[str, float]]) -> list[dict[str, float]]:
    """Return nominal and observed coverage of each interval level, and the range of the latter over the nodes.

    >>> coverage_of({"coverage_0.8": 0.79, "crps": 0.1}, {"coverage_0.8": {"a": 0.75, "b": 0.83}})
    [{'nominal': 0.8, 'covered': 0.79, 'low': 0.75, 'high': 0.83}]
    """
    found = []
    for name in sorted(name for name in metrics if name.startswith(COVERAGE)):
        nodes = [metrics[name], *by_node.get(name, {}).values()]
        nominal = float(name.removeprefix(COVERAGE))
        found.append({"nominal": nominal, "covered": metrics[name], "low": min(nodes), "high": max(nodes)})
    return found


CLOSED_FORM = (
    "this fit has no training history: it was computed in closed form, without epochs; to train by gradients set an "
    "option of [training], such as TrainingOptions(epochs=20) or --set training.epochs=20"
)


class TrainingDisplay(RunDisplay):
    """A number after each epoch: a line for each replica, the kept one in colour, dropped ones up to their end.

    ``metric``  "validation_loss", "train_loss", or of a demo "edge_prob_mae", the error of the edge probabilities;
                dashed: the value of the true model, where it is known
    """

    def __init__(self, run: Run, *, metric: str = "validation_loss") -> None:
        super().__init__(run)
        found = {curve.key: curve for curve in training_curves(run)}
        if not found:
            raise InputError(CLOSED_FORM)
        require(metric in found, f"metric must be one of {', '.join(found)}, got {metric!r}; pass one of these")
        self.metric, self.curve = metric, found[metric]

    def _draw(self, ax: Axes) -> None:
        draw_curve(ax, self.curve, self.run.record.best_replica)
