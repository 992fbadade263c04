r"""A filter over lags with separate weights for every edge: effects of either sign in one model.

$$\hat y_i = \Big[ x^{\text{new}}_i + \Big] \; \sigma\Big( b_i + U_i\, x_i + \sum_j A_{ij}\, W_{ij}\, \bar x_j \Big)$$

$x_i$ are all inputs of node $i$: its window, and the columns known at the time of the target. $\bar x_j$ is the part of
node $j$'s window that it sends along edges: the lags of the target variables, or of the first ``sent_features``
features. By default flags are not sent, and known columns never are, so that an edge has few weights. The gate $A_{ij}$
determines whether the edge is present, and $W_{ij}$ is its effect. A message shared by all edges could not model both
activation and repression.

The own path $U_i$ is always active and not gated by $A_{ii}$. A self-loop, if the graph allows any, adds
$A_{ii} W_{ii} \bar x_i$ and is redundant with the own path: exclude the diagonal.
"""

import copy
import math
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float, Shaped
from torch import Generator, Tensor, nn

from tacit.errors import require, require_int
from tacit.graph import AnyGraphs, CandidateEdges, layout_of, weigh_edges
from tacit.predictors.kinds import Options, PredictorKind, Sizes
from tacit.predictors.protocol import uniform_within
from tacit.predictors.series import SeriesLayout
from tacit.registry import PREDICTORS
from tacit.shapes import EdgeMask, Inputs, Observed, Outputs, Targets

FilterActivation = Literal["linear", "tanh"]
OwnWeights = Float[Tensor, "node in_channel channel"]
EdgeWeights = Float[Tensor, "row slot sent channel"]
Bias = Float[Tensor, "node channel"]


class LinearParts(NamedTuple):
    r"""The inputs of a prediction that is linear in its weights.

    $$\hat y_i = o_i + b_i + U_i\, x_i + \sum_j A_{ij}\, W_{ij}\, \bar x_j$$

    ``offset`` is $o$, ``own`` is $x$ and ``sent`` is $\bar x$.
    """

    offset: Targets
    own: Inputs
    sent: Inputs


class GraphFilter(nn.Module):
    """A linear filter: a weight per edge and lag times the edge's gate, plus an own path per node without a gate.

    ``own``           (node, window * num_features + known, out_channels): $U$
    ``edge_weights``  (target node, source node, window * sent_features, out_channels): $W$; the third axis is
                      ``lag * sent_features + feature``, the oldest lag first
    ``bias``          (node, out_channels): $b$
    ``allowed``       1 for weights that are learned, 0 for weights that are always 0; None if all are learned

    >>> predictor = GraphFilter(num_nodes=5, window=3, num_features=2)
    >>> predictor(torch.randn(8, 5, 6), torch.ones(1, 4, 5, 5)).shape
    torch.Size([8, 4, 5, 1])
    """

    num_hops: int | None = 1
    edge_parameters: tuple[str, ...] = ("edge_weights",)
    edge_buffers: tuple[str, ...] = ("allowed",)

    def __init__(
        self,
        num_nodes: int,
        window: int,
        num_features: int,
        out_channels: int = 1,
        *,
        activation: FilterActivation = "linear",
        residual: bool = True,
        sent_features: int | None = None,
        candidates: CandidateEdges | None = None,
        known: int = 0,
        levels: int = 0,
    ) -> None:
        """Build the filter with all weights 0; a fit starts at random weights, or see :meth:`with_weights`.

        With ``candidates`` there is a weight for each slot of the table instead of each pair of nodes.
        """
        super().__init__()
        require_int("num_nodes", num_nodes)
        self.layout = SeriesLayout(window, num_features, out_channels, known, levels)
        self.layout.require_residual(residual)
        self.sent_features = min(out_channels, num_features) if sent_features is None else sent_features
        require_int("sent_features", self.sent_features)
        require(
            self.sent_features <= num_features,
            f"sent_features must be at most num_features={num_features}, got {sent_features}; lower it",
        )
        require(
            activation in get_args(FilterActivation),
            f"activation must be one of {', '.join(get_args(FilterActivation))}, got '{activation}'; use 'linear'",
        )
        self.activation, self.residual = activation, residual
        self.jitter: float | None = None
        self.own = nn.Parameter(torch.zeros(num_nodes, self.layout.in_channels, out_channels))
        edges = layout_of(num_nodes, candidates).shape
        self.edge_weights = nn.Parameter(torch.zeros(*edges, window * self.sent_features, out_channels))
        self.bias = nn.Parameter(torch.zeros(num_nodes, out_channels))
        self.register_buffer("allowed", None)
        self.allowed: Tensor | None

    def restrict_lags(self, allowed: Shaped[Tensor, "row slot lag"]) -> None:
        """Fix the weights of an edge to 0 at lags that are not allowed; the oldest lag comes first.

        >>> predictor = GraphFilter(num_nodes=2, window=2, num_features=1)
        >>> predictor.restrict_lags(torch.tensor([[[1, 1], [0, 1]], [[1, 1], [1, 1]]]))
        >>> fresh = predictor.initial_parameters(Generator().manual_seed(0))["edge_weights"]
        >>> fresh[0, 1, :, 0].ne(0).tolist(), fresh[1, 0, :, 0].ne(0).tolist()
        ([False, True], [True, True])
        """
        shape = (*self.edge_weights.shape[:2], self.layout.window)
        require(
            tuple(allowed.shape) == shape,
            f"allowed must have shape {shape}, a number per edge and lag, got {tuple(allowed.shape)}; correct it",
        )
        self.allowed = allowed.to(self.edge_weights)
        with torch.no_grad():
            self.edge_weights.copy_(self._restricted(self.edge_weights))

    @property
    def allowed_inputs(self) -> Float[Tensor, "row slot sent"] | None:
        """1 for the values of its source that an edge may use, 0 for the others; None if it may use all."""
        return None if self.allowed is None else self.allowed.repeat_interleave(self.sent_features, 2)

    @property
    def allowed_columns(self) -> Float[Tensor, "row slot read"] | None:
        """1 for the columns ``sent`` of :meth:`linear_parts` that an edge may use; None if it may use all."""
        return self.allowed_inputs

    @property
    def always(self) -> EdgeMask | None:
        """The edges that are assumed to act always, independent of the data; None if there are none."""
        return None

    def complete(self, observed: Observed) -> Observed:
        """Return 1 where all values in the equation of a node are observed, that is, its target."""
        return observed

    def _restricted(self, weights: EdgeWeights) -> EdgeWeights:
        """Return the edge weights with 0 at the lags that are not allowed."""
        allowed = self.allowed_inputs
        return weights if allowed is None else weights * allowed.to(weights)[..., None]

    def with_weights(
        self, own: OwnWeights, edge_weights: EdgeWeights, bias: Bias | None = None, *, jitter: float = 0.0
    ) -> "GraphFilter":
        """Return the filter with given weights, for example from a regression; replicas start near them.

        Each replica adds normal noise to every weight, with standard deviation ``jitter`` times the root mean square of
        that parameter.
        """
        warm = copy.deepcopy(self)
        bias = torch.zeros_like(self.bias) if bias is None else bias
        given = {"own": own, "edge_weights": self._restricted(edge_weights), "bias": bias}
        for name, value in given.items():
            parameter = warm.get_parameter(name)
            require(
                value.shape == parameter.shape,
                f"{name} must have shape {tuple(parameter.shape)}, got {tuple(value.shape)}; see GraphFilter for the "
                "axes",
            )
            parameter.data = value.detach().clone().to(parameter)
        warm.jitter = jitter
        return warm

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return random weights, or those of a warm start."""
        if self.jitter is not None:
            moved = {name: value.detach() for name, value in self.named_parameters()}
            for name, value in moved.items() if self.jitter else ():
                normals = torch.randn(value.shape, generator=generator, device=generator.device, dtype=value.dtype)
                moved[name] = value + self.jitter * value.square().mean().sqrt() * normals.to(value.device)
            return moved | {"edge_weights": self._restricted(moved["edge_weights"])}
        return self.random_parameters(generator)

    def random_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return random weights, uniform within 1 / sqrt(number of inputs), also for a warm start."""
        _, sources, sent, _ = self.edge_weights.shape
        return {
            "own": uniform_within(self.own, 1 / math.sqrt(self.layout.in_channels), generator),
            "edge_weights": self._restricted(
                uniform_within(self.edge_weights, 1 / math.sqrt(sources * sent), generator)
            ),
            "bias": torch.zeros_like(self.bias, device=generator.device),
        }

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        """Return the output of every pair under each of its graphs."""
        require(
            tuple(graphs.shape[-2:]) == tuple(self.edge_weights.shape[-4:-2]),
            f"edge_weights must have a weight for each of {tuple(graphs.shape[-2:])} edges of the graph, got "
            f"{tuple(self.edge_weights.shape[-4:-2])}; build GraphFilter with candidates=graph.candidates",
        )
        read = self.read(inputs)
        sent = self.layout.lags(read)[..., : self.sent_features].flatten(2)  # (batch, node, sent)
        weights = self._restricted(self.edge_weights)
        own = torch.einsum("bik,ikc->bic", read, self.own) + self.bias
        total = own[:, None] + weigh_edges(graphs, sent, weights)
        change = torch.tanh(total) if self.activation == "tanh" else total
        return change + self.layout.newest(inputs)[:, None] if self.residual else change

    def linear_parts(self, inputs: Inputs, targets: Targets | None = None) -> LinearParts | None:
        """Return the inputs of a linear filter, or None with another activation; ``targets`` are not used."""
        del targets
        if self.activation != "linear":
            return None
        newest = self.layout.newest(inputs)
        read = self.read(inputs)
        sent = self.layout.lags(read)[..., : self.sent_features].flatten(2)
        return LinearParts(newest if self.residual else torch.zeros_like(newest), read, sent)

    def read(self, inputs: Inputs) -> Inputs:
        """Return the inputs as the weights use them: relative to the level of a node, if it has one.

        A filter that predicts the change from the last value does not use the level itself. Values then return to
        their level, and the level is a random walk.
        """
        read = self.layout.relative(inputs)
        if self.layout.levels and self.residual:
            read = torch.nn.functional.pad(read[..., : -self.layout.levels], (0, self.layout.levels))
        return read


def _sent(sizes: Sizes) -> int:
    """Return how many numbers a source sends: its lags, or all of its features for data without time."""
    return sizes.window * (sizes.num_features if sizes.window == 1 else min(sizes.out_channels, sizes.num_features))


def _build(sizes: Sizes, options: Options, candidates: CandidateEdges | None, _observation: str) -> GraphFilter:
    return GraphFilter(
        sizes.num_nodes,
        sizes.window,
        sizes.num_features,
        sizes.out_channels,
        activation=options.activation,
        residual=bool(options.residual),
        sent_features=sizes.num_features if sizes.window == 1 else None,
        candidates=candidates,
        known=sizes.known,
        levels=sizes.levels,
    )


PREDICTORS.add(
    "filter",
    PredictorKind(
        _build,
        uses=("activation", "residual", "warm_start"),
        predicts_change=True,
        warm_start=True,
        background=True,
        learning_rate=0.01,
        replicas=4,
        quick=True,
        compiles=True,
        lag_ranges=True,
        gated_by_inputs=True,
        edge_weights=lambda sizes: _sent(sizes) * sizes.out_channels,
        edge_channels=lambda sizes, _: _sent(sizes),
    ),
)
