r"""The estimator for pairs (x, y).

$$A \sim P_\theta, \qquad \hat y = f_\psi(x, A)$$

``edge_probs_`` is $\theta$; rows are targets, columns are sources. A prediction is the mean (or median) of $f_\psi(x,
A)$ over many graphs.
"""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from tacit.config import AssessmentOptions, DataOptions, GraphOptions, ModelConfig, TrainingOptions
from tacit.data import covariate_table, pairs_from_arrays, with_covariates
from tacit.errors import require
from tacit.pipeline import (
    Fitted,
    PairsPreparation,
    Source,
    about_depends_on,
    class_probabilities,
    point_predictions,
    samples,
)
from tacit.sklearn.estimator import LatentGraphEstimator, has_classes, with_zeros
from tacit.sklearn.saved import to_python
from tacit.sklearn.tables import Table, r_squared, read_inputs, read_targets


class LatentGraphRegressor(RegressorMixin, LatentGraphEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learn the graph behind pairs (x, y), with a probability for every edge, and predict y.

    ``X`` has shape (pairs, nodes, channels), or (pairs, nodes) for one channel; ``y`` (pairs, nodes) or
    (pairs, nodes, channels). NaN is a missing value; "hops" and custom modules require a complete ``X``. Tables
    have a column per node, or two levels of columns, (node, channel). ``tacit fit`` gives the same result for the same
    pairs in an .npz file.

    ``predictor``     "auto", the name of a registered kind ("convolution", "filter", "hops", ...), ``PredictorOptions``
                      for its options, a ``torch.nn.Module`` (a copy is trained), or a function of ``num_nodes``,
                      ``in_channels``, ``channels`` that returns one
    ``observation``   the distribution of the targets around their prediction: "auto", "none", "gaussian" (one
                      deviation per node), "gaussian_input" (it depends on the input of the node), "poisson",
                      "bernoulli" or another registered name; a dict by node, such as ``{"a": "poisson", "*":
                      "gaussian"}``; or ``ObservationOptions``. With "none", noise in the data biases edge probabilities
    ``loss``          "energy", "mmd", "point_mse" or another registered name, or a loss object; None: that of
                      ``model``, by default the energy score
    ``density``       prior fraction of edges that exist; its weight depends on the noise and the amount of data
    ``candidates``    the only possible edges: pairs (source, target), a mask that is true at [target, source], or a
                      table such as that of ``tacit.graph.nearest_candidates``; None: all
    ``data``, ``graph``, ``model``, ``training``, ``assessment``  further options, as in the sections of a config file:
                      ``DataOptions``, ``GraphOptions``, ``ModelConfig``, ``TrainingOptions``, ``AssessmentOptions`` of
                      ``tacit.config``
    ``point``         what ``predict`` returns over ``point_graphs`` graphs: "mean", "median" or the level of a quantile
    ``random_state``  an integer for reproducible results; None: a different result each time
    ``device``        "auto", "cpu", "cuda" or "cuda:N"

    Pairs are shuffled and split into 70% for training, 10% for validation and 20% for the test (``DataOptions``).
    Standard errors, identifiability and the fit test are part of ``fit``; ``AssessmentOptions(enabled=False)`` leaves
    them out. ``sample_weight`` is not supported. Every fit starts from scratch.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 3))
    >>> y = x + 2 * x[:, [1, 1, 1]] * [1, 0, 0]  # node 0 reads node 1
    >>> quick = TrainingOptions(replicas=1, epochs=50, learning_rate=0.1, compile=False)
    >>> model = LatentGraphRegressor(training=quick, assessment=AssessmentOptions(enabled=False)).fit(x, y)
    >>> (model.edge_probs_ > 0.5).astype(int)
    array([[0, 1, 0],
           [0, 0, 0],
           [0, 0, 0]])
    >>> model.predict(x).shape, model.sample(x, num_samples=50).shape, model.score(x, y) > 0.9
    ((300, 3), (300, 50, 3), True)
    """

    def __init__(
        self,
        *,
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

    def fit(
        self,
        X: Any,  # noqa: N803 - scikit-learn's name, which it looks for
        y: Any,
        *,
        covariates: Any = None,
    ) -> "LatentGraphRegressor":
        """Fit the graph and the predictor to pairs, and assess the result; each call starts from scratch.

        ``covariates``  a DataFrame, or an array (pairs, covariates), of variables that edges may depend on; those in
                        ``depends_on`` of ``GraphOptions`` are used. Pass them to :meth:`predict` as well
        """
        inputs, targets = self._tables(X, y, reset=True)
        assert targets is not None
        self._learn(self._named(inputs, targets, None, covariates))
        self._channels, self._flat = inputs.channels, targets.flat  # set last: a refused fit changes nothing
        return self

    def predict(
        self,
        X: Any,  # noqa: N803
        point: str | float | None = None,
        *,
        covariates: Any = None,
    ) -> np.ndarray:
        """Return point predictions in the shape of ``y``; ``point`` defaults to that of the estimator.

        The mean of a yes-or-no target is its probability. Medians and quantiles of counts, yes-or-no targets and
        categories are values that the target can have.
        """
        fitted, source = self._with_predictor(), self._source(X, reset=False, covariates=covariates)
        kind, graphs = to_python(self.point if point is None else point), to_python(self.point_graphs)
        found = point_predictions(fitted, source, kind, num_graphs=graphs, seed=fitted.record.seed)
        return self._as_targets(found)

    @has_classes  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, covariates: Any = None) -> np.ndarray:  # noqa: N803
        """Return the probability of each value in ``classes_``, as an array (pairs, nodes[, channels], classes).

        Available if all targets are yes or no ("bernoulli") or ordered categories ("ordered").
        """
        fitted, source = self._with_predictor(), self._source(X, reset=False, covariates=covariates)
        graphs = to_python(self.point_graphs)
        found = class_probabilities(fitted, source, num_graphs=graphs, seed=fitted.record.seed)
        return with_zeros(found, flat=self._flat)

    def sample(
        self,
        X: Any,  # noqa: N803
        num_samples: int = 100,
        random_state: Any = None,
        *,
        covariates: Any = None,
    ) -> np.ndarray:
        """Return samples of the targets, as an array (pairs, samples, nodes[, channels]).

        All pairs share the graph of a sample.
        """
        fitted, source = self._with_predictor(), self._source(X, reset=False, covariates=covariates)
        seed = self._seed(random_state)
        return self._as_targets(samples(fitted, source, num_samples=to_python(num_samples), seed=seed))

    def score(self, X: Any, y: Any, *, covariates: Any = None) -> float:  # noqa: N803
        """Return $R^2$ of :meth:`predict`, averaged over nodes and channels; missing targets are left out."""
        self._ready()
        targets = self._tables(X, y, reset=False)[1]
        predictions = self.predict(X, covariates=covariates)
        assert targets is not None
        return r_squared(targets.values, predictions.reshape(*predictions.shape[:2], -1))

    @property
    def channels_(self) -> list[str] | None:
        """The names of the channels of ``X``, or None without names."""
        self._ready()
        return self._channels

    def _source(self, X: Any, y: Any = None, *, reset: bool, covariates: Any = None) -> Source:  # noqa: N803
        return self._named(*self._tables(X, y, reset=reset), None if reset else self._ready(), covariates)

    def _named(self, inputs: Table, targets: Table | None, fitted: Fitted | None, covariates: Any = None) -> Source:
        """Return pairs with the names of their nodes: those of the tables, or of the fit."""
        nodes = inputs.nodes or (None if targets is None else targets.nodes)
        if fitted is not None and nodes is None:
            nodes = list(fitted.nodes)
        channels = None if fitted is None else fitted.preparation.sizes.out_channels
        values = None if targets is None else targets.values
        named = pairs_from_arrays(inputs.values, values, nodes=nodes, out_channels=channels)
        config = self._config()[0] if fitted is None else fitted.config
        with about_depends_on(config):
            table = covariate_table(covariates, None, "covariates")
            named = with_covariates(named, table, config.data.covariates, config.data.levels)
        return Source("X and y" if targets is not None else "X", named, ("covariates", "levels"))

    def _tables(self, X: Any, y: Any, *, reset: bool) -> tuple[Table, Table | None]:  # noqa: N803
        """Read arrays and tables; after a fit they must have the same nodes and channels as in the fit."""
        inputs = read_inputs(self, X, reset=reset)
        targets = None if y is None and not reset else read_targets(self, y, inputs)
        if reset:
            return inputs, targets
        preparation = self._ready().preparation
        assert isinstance(preparation, PairsPreparation)
        sizes = preparation.in_channels, preparation.sizes.out_channels
        for name, table, expected in (("X", inputs, sizes[0]), ("y", targets, sizes[1])):
            got = expected if table is None else table.values.shape[2]
            require(
                expected == got,
                f"{name} must have {expected} channels per node as in fit, got {got}; pass the same channels",
            )
        require(
            self._channels is None or inputs.channels is None or self._channels == inputs.channels,
            f"X must have the channels of the fit in order, {self._channels}, got {inputs.channels}; reorder them",
        )
        return inputs, targets

    def _as_targets(self, values: np.ndarray) -> np.ndarray:
        """Return predictions or samples in the shape that targets had."""
        return values[..., 0] if self._flat else values

    def _extra(self) -> dict[str, Any]:
        return {**super()._extra(), "channels": self._channels, "flat": self._flat}

    def _take_extra(self, extra: dict[str, Any]) -> None:
        super()._take_extra(extra)
        self._channels, self._flat = extra["channels"], extra["flat"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags
