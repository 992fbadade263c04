r"""The method with the manners of scikit-learn: ``fit``, ``predict``, ``sample``, ``score``.

$$A \sim P_\theta, \qquad \hat y = f_\psi(x, A)$$

``edge_probs_`` is $\theta$, row receives, column sends; a prediction is the mean (or median) of $f_\psi(x, A)$ over
many graphs.
"""

import warnings
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from tacit.evaluation import point_prediction
from tacit.sklearn.building import plain
from tacit.sklearn.score import r_squared
from tacit.sklearn.trust import Trust


class LatentGraphRegressor(RegressorMixin, Trust):  # type: ignore[misc]  # scikit-learn has no types
    """Learn which node reads which from pairs (x, y), with a probability for every edge, and predict y.

    ``X`` has shape (pairs, nodes, channels), or (pairs, nodes) for one channel; ``y`` (pairs, nodes) or
    (pairs, nodes, channels), with NaN where a target is missing. Tables have a column per node, or two levels of
    columns, (node, channel).

    ``predictor``     "convolution": layers of graph convolutions of widths ``hidden``, shared by all nodes, with a path
                      of each node's own that needs no edge. It is the default because it takes targets of any size and
                      sign, and because what differs between two edges is left to their probabilities alone.
                      "filter": linear, a weight for every edge, for relations of either sign. "hops": the paper's,
                      with ``num_hops`` hops and outputs in (-1, 1). Or a ``torch.nn.Module`` (a copy is trained), or a
                      function of ``num_nodes``, ``in_channels``, ``channels`` that makes one
    ``noise``         what the graph does not explain: "none", "node" (Gaussian, one deviation per node) or "input" (one
                      that follows the node's input). Without it edge probabilities are bent to explain noise as well.
                      "auto": "node" for "convolution" and "filter" with the losses "energy" and "mmd", else "none"
    ``loss``          "energy", "mmd", "point_mse" or another name of ``tacit.config.ModelConfig``, or a loss of tacit;
                      with its ``scope`` ("node" or "joint") and ``num_graphs`` per pair
    ``forbidden``, ``required``, ``candidates``  edges (source, target) by name or place, as in ``EdgeRules``; with
                      ``symmetric`` they have no direction, with ``self_loops`` a node may read itself as well.
                      For many nodes ``candidates`` may be a table, from ``tacit.graph.nearest_slots`` or others
    ``correlated``    instead of ``candidates``: so many others for each node, those whose inputs go most with its
                      targets in the training pairs
    ``layout``        "matrix": a number for every pair of nodes; "table": for the candidates alone. "auto": a table for
                      more than 200 nodes of which at most a quarter of all pairs are candidates
    ``prior``         what is believed of all edges, or of some ({(source, target): probability}), or a matrix (target
                      row, source column); it counts ``prior_weight`` times beside the loss of one pair
    ``epochs``        None: as many as make 2,000 steps, and ten at least
    ``predictor_rate``  learning rate of the predictor as a part of ``learning_rate``, which is that of the edges
    ``replicas``      starts, trained together; the best by loss on ``validation_fraction`` of the pairs is kept
    ``shuffle``       take validation pairs at random; False takes the last ones, for windows of a series
    ``scale``         train on inputs and targets of mean 0 and deviation 1. "auto": not with "hops" and not with a
                      module of your own, which see the numbers as they are
    ``point``         what ``predict`` returns over ``point_graphs`` graphs: "mean", "median" or the level of a quantile
    ``compile``       compile the step first: "auto" does so from 1,000 steps on

    Pairs have no weights: ``sample_weight`` is not accepted. The same ``seed`` gives the same result, and every fit
    starts afresh.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 3))
    >>> y = x + 2 * x[:, [1, 1, 1]] * [1, 0, 0]  # node 0 reads node 1
    >>> model = LatentGraphRegressor(replicas=1, epochs=50, learning_rate=0.1).fit(x, y)
    >>> (model.edge_probs_ > 0.5).astype(int)
    array([[0, 1, 0],
           [0, 0, 0],
           [0, 0, 0]])
    >>> model.predict(x).shape, model.sample(x, num_graphs=50).shape, model.score(x, y) > 0.9
    ((300, 3), (300, 50, 3), True)
    """

    def __init__(
        self,
        *,
        predictor: Any = "convolution",
        hidden: Any = (8,),
        num_hops: int = 2,
        noise: str = "auto",
        loss: Any = "energy",
        scope: str = "node",
        num_graphs: int = 16,
        forbidden: Any = (),
        required: Any = (),
        candidates: Any = None,
        correlated: int | None = None,
        layout: str = "auto",
        symmetric: bool = False,
        self_loops: bool = False,
        prior: Any = None,
        prior_weight: float = 1.0,
        epochs: int | None = None,
        batch_size: int = 128,
        learning_rate: float = 0.05,
        predictor_rate: float = 0.2,
        replicas: int = 8,
        validation_fraction: float = 0.1,
        shuffle: bool = True,
        scale: bool | str = "auto",
        point: str | float = "mean",
        point_graphs: int = 1000,
        seed: int = 0,
        device: str = "auto",
        compile: bool | str = "auto",
        verbose: bool = False,
    ) -> None:
        self.predictor = predictor
        self.hidden = hidden
        self.num_hops = num_hops
        self.noise = noise
        self.loss = loss
        self.scope = scope
        self.num_graphs = num_graphs
        self.forbidden = forbidden
        self.required = required
        self.candidates = candidates
        self.correlated = correlated
        self.layout = layout
        self.symmetric = symmetric
        self.self_loops = self_loops
        self.prior = prior
        self.prior_weight = prior_weight
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.predictor_rate = predictor_rate
        self.replicas = replicas
        self.validation_fraction = validation_fraction
        self.shuffle = shuffle
        self.scale = scale
        self.point = point
        self.point_graphs = point_graphs
        self.seed = seed
        self.device = device
        self.compile = compile
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> "LatentGraphRegressor":  # noqa: N803 - scikit-learn's name, which it looks for
        """Train all replicas from fresh starts and keep the best."""
        problem = self._problem(X, y)
        result = problem.train()
        self._fitted = problem.fitted(result)
        if result.interrupted:
            warnings.warn("stopped by the user: the model is half trained", ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X: Any, point: str | float | None = None) -> np.ndarray:  # noqa: N803
        """Return one number for every target, in the shape that ``y`` had; ``point`` None is that of the estimator."""
        kind = plain(self.point if point is None else point)
        noise = "left out" if kind == "mean" else "shared"
        fitted, inputs, graphs = self._with_predictor(), self._inputs(X), plain(self.point_graphs)
        parts = fitted.samples(inputs.values, graphs, plain(self.seed), noise=noise)
        return fitted.in_units_of_targets(torch.cat([point_prediction(part, kind) for part in parts]))

    def sample(self, X: Any, num_graphs: int = 100, seed: int | None = None) -> np.ndarray:  # noqa: N803
        """Return (pairs, graphs, nodes) or (pairs, graphs, nodes, channels): at each place one graph for all pairs."""
        fitted, inputs, seed = self._with_predictor(), self._inputs(X), plain(self.seed if seed is None else seed)
        parts = fitted.samples(inputs.values, plain(num_graphs), seed, noise="own")
        return fitted.in_units_of_targets(torch.cat(list(parts)))

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return $R^2$ of :meth:`predict`, the mean over nodes and channels; missing targets are left out."""
        self._ready()
        targets = self._targets(y, self._inputs(X)).values
        predictions = self.predict(X)
        return r_squared(targets, predictions.reshape(*predictions.shape[:2], -1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags
