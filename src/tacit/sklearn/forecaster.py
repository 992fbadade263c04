"""The estimator for time series: a table with a column per node and a row per time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.config import AssessmentOptions, DataOptions, GraphOptions, ModelConfig, TrainingOptions
from tacit.errors import InputError, require
from tacit.pipeline import (
    Source,
    about_depends_on,
    class_probabilities,
    effect_table,
    forecast_table,
    new_pairs,
    path_class_probabilities,
    path_predictions,
    path_samples,
    path_table,
    point_predictions,
    prediction_index,
    read_table,
    samples,
)
from tacit.sklearn.estimator import LatentGraphEstimator, has_classes, with_zeros
from tacit.sklearn.saved import to_python
from tacit.sklearn.tables import r_squared

if TYPE_CHECKING:
    import pandas as pd


class LatentGraphForecaster(LatentGraphEstimator):
    """Learn the graph behind time series, with a probability for every edge, and forecast.

    The table is a DataFrame with a column per node and an index of times, or with columns of two levels (node,
    variable). Several series over the same nodes have an index of two levels (instance, time), a column with their
    names (``series``), or are a list of tables; windows never cross from one series into another. NaN is a missing
    value. ``tacit fit`` gives the same result for the same table in a file.

    ``horizon``     number of steps ahead to predict; None: 1
    ``window``      number of past steps in the input; None: chosen from the number of rows
    ``targets``     variables to predict; None: all
    ``covariates``  columns that are known and shared by all nodes
    ``series``      name of the column with the series of each row

    All other parameters are those of :class:`~tacit.LatentGraphRegressor`. Series are split in time order: the first
    70% for training, the next 10% for validation, the rest for the test. Five or more series are split by whole series.

    >>> import pandas as pd
    >>> rng, rows = np.random.default_rng(0), np.zeros((400, 3))
    >>> for t in range(1, 400):
    ...     rows[t] = 0.5 * rows[t - 1] + [0.8 * rows[t - 1, 1], 0, 0] + 0.3 * rng.normal(size=3)
    >>> table = pd.DataFrame(rows, columns=["a", "b", "c"])
    >>> quick = TrainingOptions(replicas=1, epochs=10, compile=False)
    >>> model = LatentGraphForecaster(window=1, training=quick, assessment=AssessmentOptions(enabled=False)).fit(table)
    >>> model.listed_edges()[["source", "target"]].values.tolist()
    [['b', 'a']]
    >>> forecast = model.predict(table)
    >>> forecast.shape, int(forecast.index[-1])  # one step beyond the end
    ((400, 3), 400)
    """

    def __init__(
        self,
        *,
        horizon: int | None = None,
        window: int | None = None,
        targets: Any = None,
        covariates: Any = (),
        series: str | None = None,
        predictor: Any = "auto",
        observation: Any = "auto",
        loss: Any = None,
        density: float | None = None,
        candidates: Any = None,
        data: DataOptions | None = None,
        graph: GraphOptions | None = None,
        model: ModelConfig | None = None,
        training: TrainingOptions | None = None,
        assessment: AssessmentOptions | None = None,
        point: str | float = "mean",
        point_graphs: int = 1000,
        random_state: Any = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.horizon = horizon
        self.window = window
        self.targets = targets
        self.covariates = covariates
        self.series = series
        self.predictor = predictor
        self.observation = observation
        self.loss = loss
        self.density = density
        self.candidates = candidates
        self.data = data
        self.graph = graph
        self.model = model
        self.training = training
        self.assessment = assessment
        self.point = point
        self.point_graphs = point_graphs
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> "LatentGraphForecaster":  # noqa: N803 - scikit-learn's names
        """Fit the graph and the predictor to a table, and assess the result; each call starts from scratch."""
        del y
        self._learn(self._source(X, reset=True))
        self.n_features_in_ = len(self.nodes_)
        return self

    def predict(
        self,
        X: Any,  # noqa: N803
        point: str | float | None = None,
        *,
        steps: int | None = None,
        origin: Any = None,
    ) -> "pd.DataFrame":
        """Return point forecasts for each window of a table, indexed by the time of the target.

        The last row is ``horizon`` steps after the end of the table. Columns are like those of the table, and
        ``attrs["notes"]`` lists what was changed or left out, such as series that are too short.

        With ``steps`` the rows are the next ``steps`` times after the last observed row of each series, or after the
        row at time ``origin``. Samples of a step are inputs of the next one (see :meth:`forecast`).
        """
        import pandas as pd

        self._require_steps(steps, origin=origin)
        fitted, source = self._with_predictor(), self._source(X, reset=False)
        kind, graphs = to_python(self.point if point is None else point), to_python(self.point_graphs)
        how: dict[str, Any] = {"num_graphs": graphs, "seed": fitted.record.seed}
        if steps is None:
            found, new = point_predictions(fitted, source, kind, **how), new_pairs(fitted, source)
            index, notes = prediction_index(new.times, new.series, fitted.preparation.row_name), new.notes
        else:
            found, origins = path_predictions(fitted, source, to_python(steps), kind, origin=origin, **how)
            names = origins.series_names
            series = None if names is None else names.repeat(origins.steps)
            index, notes = prediction_index(origins.times.reshape(-1), series, "time"), origins.notes
        frame = pd.DataFrame(found.reshape(len(index), -1), index=index, columns=self._columns())
        frame.attrs["notes"] = list(notes)
        return frame

    @has_classes  # type: ignore[untyped-decorator]
    def predict_proba(
        self,
        X: Any,  # noqa: N803
        *,
        steps: int | None = None,
        origin: Any = None,
    ) -> np.ndarray:
        """Return the probability of each value in ``classes_``, as an array (windows, nodes[, targets], classes).

        Available if all targets are yes or no ("bernoulli") or ordered categories ("ordered"). With ``steps``
        these are the probabilities over paths, (series, steps, nodes[, targets], classes); see :meth:`forecast`.
        """
        self._require_steps(steps, origin=origin)
        fitted, source = self._with_predictor(), self._source(X, reset=False)
        how: dict[str, Any] = {"num_graphs": to_python(self.point_graphs), "seed": fitted.record.seed}
        if steps is None:
            found = class_probabilities(fitted, source, **how)
        else:
            found = path_class_probabilities(fitted, source, to_python(steps), origin=origin, **how)
        return with_zeros(found, flat=found.shape[-2] == 1)

    def sample(
        self,
        X: Any,  # noqa: N803
        num_samples: int = 100,
        random_state: Any = None,
        *,
        steps: int | None = None,
        origin: Any = None,
        every: int | None = None,
    ) -> np.ndarray:
        """Return samples of the targets, as an array (windows, samples, nodes[, targets]).

        With ``steps`` these are paths, (origins, samples, steps, nodes[, targets]); see :meth:`forecast`.
        """
        self._require_steps(steps, origin=origin, every=every)
        fitted, source = self._with_predictor(), self._source(X, reset=False)
        how: dict[str, Any] = {"num_samples": to_python(num_samples), "seed": self._seed(random_state)}
        if steps is None:
            found = samples(fitted, source, **how)
        else:
            found = path_samples(fitted, source, to_python(steps), origin=origin, every=to_python(every), **how)
        return found[..., 0] if found.shape[-1] == 1 else found

    def forecast(
        self,
        X: Any,  # noqa: N803
        num_samples: int = 0,
        *,
        steps: int | None = None,
        origin: Any = None,
        every: int | None = None,
    ) -> "pd.DataFrame":
        """Return the table of ``tacit predict``: mean, median, quantiles and samples, a row per target.

        ``steps``   number of steps of the forecast paths; None: one forecast after each window
        ``origin``  the time of the last row that a path uses; None: the last row with an observed value
        ``every``   also start a path every ``every`` rows after ``origin``, or after the first window without it
        """
        self._require_steps(steps, origin=origin, every=every)
        fitted, source = self._with_predictor(), self._source(X, reset=False)
        how: dict[str, Any] = {"num_samples": to_python(num_samples), "seed": fitted.record.seed}
        if steps is None:
            return forecast_table(fitted, source, **how)
        return path_table(fitted, source, to_python(steps), origin=origin, every=to_python(every), **how)

    def effect(
        self,
        changes: Mapping[str, float],
        X: Any = None,  # noqa: N803
        *,
        steps: int = 24,
        shape: str = "pulse",
        at: Any = None,
        level: float = 0.9,
        random_state: Any = None,
    ) -> "pd.DataFrame":
        """Return the response of every node to a change of some, a row per step and node, like ``tacit effect``.

        ``changes``  node -> number, for example ``{"creek": 1.0}``
        ``shape``    "pulse": the number is added to one value, and the node goes on from there; "step": it is added to
                     all later values, and the node does not respond to others; "value": the node is kept at the number
        ``X``        a table: the change is made in the last observed row of each series, or in the row at the time
                     ``at``, and the columns ``without`` and ``with`` are the mean paths
        ``level``    of the intervals

        ``attrs["condition"]`` says when it is the effect of an intervention, ``attrs["interval"]`` what the intervals
        contain; ``attrs["edges"]`` are the parts of the response that arrive by each direct edge.
        """
        fitted = self._with_predictor()
        source = None if X is None else self._source(X, reset=False)
        if not isinstance(changes, Mapping):
            raise InputError(f"changes must map nodes to numbers, got {changes!r}; pass for example {{'creek': 1.0}}")
        changes = {str(node): to_python(size) for node, size in dict(changes).items()}
        how: dict[str, Any] = {"steps": to_python(steps), "shape": shape, "at": at, "level": to_python(level)}
        return effect_table(fitted, changes, source, **how, seed=self._seed(random_state))

    @staticmethod
    def _require_steps(steps: int | None, **others: Any) -> None:
        """Refuse arguments that have no meaning without ``steps``."""
        for name, value in others.items():
            require(steps is not None or value is None, f"{name} requires steps; pass for example steps=24")

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return $R^2$ of :meth:`predict` for the known targets, averaged over nodes and variables."""
        del y
        fitted, source = self._with_predictor(), self._source(X, reset=False)
        pairs = new_pairs(fitted, source).pairs
        known = fitted.preparation.to_units(pairs.targets.double(), pairs)
        if pairs.observed is not None:
            known = known.masked_fill(pairs.observed == 0, np.nan)
        predictions = self.predict(X, "mean").to_numpy().reshape(known.shape)
        return r_squared(known.numpy(), predictions)

    def _source(self, X: Any, y: Any = None, *, reset: bool, covariates: Any = None) -> Source:  # noqa: N803
        del y
        require(
            covariates is None,
            "covariates must be columns of the table for a series; name them in the parameter covariates",
        )
        if reset:
            config = self._config()[0]
            with about_depends_on(config):
                return read_table(X, config.data)
        fitted = self._ready()
        with about_depends_on(fitted.config):
            source = read_table(X, fitted.config.data, piece=True, nodes=fitted.nodes)
        return fitted.preparation.completed(source)

    def _columns(self) -> Any:
        import pandas as pd

        preparation = self._ready().preparation
        names = preparation.target_names
        if len(names) == 1 and names[0] == "value":
            return list(preparation.nodes)
        return pd.MultiIndex.from_product([preparation.nodes, names], names=["node", "variable"])
