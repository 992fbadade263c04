r"""A linear filter whose edges may also act within a step, at lag 0.

$$y = (A \circ B_0)\, y + g(x, A) + e \qquad \Rightarrow \qquad y = M\, (g + e), \quad M = (I - A \circ B_0)^{-1}$$

$g$ is the prediction of :class:`~tacit.predictors.GraphFilter`. The gate $A_{ij}$ of an edge applies to both its weight
within the step and its lagged weights. The edges that may act within a step form no cycle, so $M$ exists under every
graph, and the equation of a node given its sources within the step is that of a filter with one more lag.
"""

import torch
from jaxtyping import Float, Shaped
from torch import Generator, Tensor, nn

from tacit.errors import InputError, require
from tacit.graph import AnyGraphs
from tacit.predictors.filter import Bias, EdgeWeights, GraphFilter, LinearParts, OwnWeights
from tacit.shapes import EdgeMask, Inputs, Observed, Outputs, Targets


class SimultaneousFilter(GraphFilter):
    """A linear filter of one target variable with weights within a step; it returns $M g$, then row $i$ of $M$.

    ``within``          (target node, source node): $B_0$
    ``within_allowed``  1 for edges that may act within the step; without cycles
    ``within_open``     1 for edges of which both directions fit the data; how often they act is not identifiable

    >>> predictor = SimultaneousFilter(num_nodes=5, window=3, num_features=2)
    >>> predictor(torch.randn(8, 5, 6), torch.ones(1, 4, 5, 5)).shape
    torch.Size([8, 4, 5, 6])
    """

    num_hops = None  # an effect can pass along any number of edges within a step
    edge_parameters = (*GraphFilter.edge_parameters, "within")
    edge_buffers = (*GraphFilter.edge_buffers, "within_allowed", "within_open")

    def __init__(
        self,
        num_nodes: int,
        window: int,
        num_features: int,
        *,
        residual: bool = True,
        known: int = 0,
        levels: int = 0,
    ) -> None:
        super().__init__(num_nodes, window, num_features, residual=residual, known=known, levels=levels)
        self.numbers_per_target = 1 + num_nodes
        self.within = nn.Parameter(torch.zeros(num_nodes, num_nodes))
        self.register_buffer("within_allowed", torch.zeros(num_nodes, num_nodes))
        self.register_buffer("within_open", torch.zeros(num_nodes, num_nodes))
        self.within_allowed: Tensor
        self.within_open: Tensor

    def allow_within(
        self, allowed: Shaped[Tensor, "node node"], open: Shaped[Tensor, "node node"] | None = None
    ) -> None:
        """Allow these edges to act within the step; a cycle raises an error. ``open`` marks undirected edges.

        >>> predictor = SimultaneousFilter(num_nodes=2, window=1, num_features=1)
        >>> predictor.allow_within(torch.tensor([[0, 1], [1, 0]]))
        Traceback (most recent call last):
        ...
        tacit.errors.InputError: allowed must have no cycle within a step, got one through node 0; remove one of its \
edges
        """
        require(
            tuple(allowed.shape) == tuple(self.within.shape),
            f"allowed must have shape {tuple(self.within.shape)}, got {tuple(allowed.shape)}; pass a number per edge",
        )
        sources_first(allowed)
        self.within_allowed = allowed.to(self.within)
        self.within_open = torch.zeros_like(self.within_allowed) if open is None else (allowed * open).to(self.within)

    @property
    def always(self) -> EdgeMask:
        """The edges that are assumed to act always, because how often they act is not identifiable."""
        return self.within_open > 0

    @property
    def allowed_columns(self) -> Float[Tensor, "node node read"]:
        """1 for the columns of :meth:`linear_parts` that an edge may use: the lags, then the step itself."""
        lags = self.allowed_inputs
        if lags is None:
            lags = self.within_allowed.new_ones(self.edge_weights.shape[:3])
        return torch.cat([lags, self.within_allowed[..., None]], 2)

    def with_weights(
        self, own: OwnWeights, edge_weights: EdgeWeights, bias: Bias | None = None, *, jitter: float = 0.0
    ) -> GraphFilter:
        """Return the filter with given weights; the additional last lag of ``edge_weights`` is the step itself."""
        lags, within = edge_weights.tensor_split([self.edge_weights.shape[2]], 2)
        warm = super().with_weights(own, lags, bias, jitter=jitter)
        if within.numel():
            parameter = warm.get_parameter("within")
            parameter.data = within.detach()[:, :, 0, 0].to(parameter) * self.within_allowed
        return warm

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return random weights for the lags and 0 within the step, or those of a warm start."""
        return {
            "within": torch.zeros_like(self.within, device=generator.device),
            **super().initial_parameters(generator),
        }

    def linear_parts(self, inputs: Inputs, targets: Targets | None = None) -> LinearParts | None:
        """Return the inputs of the equation of a node; with ``targets`` a source sends its target as well."""
        parts = super().linear_parts(inputs)
        if parts is None or targets is None:
            return parts
        return parts._replace(sent=torch.cat([parts.sent, targets], 2))

    def complete(self, observed: Observed) -> Observed:
        """Return 1 where the target of a node and those of all its sources within the step are observed."""
        missing = torch.einsum("ij,bjc->bic", self.within_allowed.to(observed), 1 - observed)
        return observed * (missing == 0)

    def mixing(self, graphs: Float[Tensor, "draw graph node node"]) -> Float[Tensor, "draw graph node node"]:
        r"""Return $M$ under each graph, row by row: $M_i = e_i + \sum_j A_{ij} B_{0,ij} M_j$."""
        weights, unit = graphs * (self.within * self.within_allowed), torch.eye(graphs.shape[-1]).to(graphs)
        rows = list(unit.expand_as(graphs).unbind(-2))
        for node, sources in sources_first(self.within_allowed):
            if sources:
                read = torch.stack([rows[source] for source in sources], -2)  # (draw, graph, source, node)
                rows[node] = unit[node] + (weights[..., node, sources].unsqueeze(-2) @ read).squeeze(-2)
        return torch.stack(rows, -2)

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        """Return mean and mixing of every target under each graph of its pair."""
        if not isinstance(graphs, Tensor):
            raise InputError("SimultaneousFilter requires graphs over all pairs of nodes, got a table; use a matrix")
        drift, mixing = super().forward(inputs, graphs), self.mixing(graphs)
        return torch.cat([mixing @ drift, mixing.expand(*drift.shape[:2], -1, -1)], -1)


def sources_first(edges: Shaped[Tensor, "node node"]) -> list[tuple[int, list[int]]]:
    """Return each node with its sources in topological order; raise an error if there is a cycle.

    >>> sources_first(torch.tensor([[0, 1], [0, 0]]))
    [(1, []), (0, [1])]
    """
    sources = [row.nonzero()[:, 0].tolist() for row in edges.detach().cpu()]
    order: list[int] = []
    while len(order) < len(sources):
        known = {*order}
        ready = [node for node, read in enumerate(sources) if node not in known and known.issuperset(read)]
        if not ready:
            first = next(node for node in range(len(sources)) if node not in known)
            raise InputError(
                f"allowed must have no cycle within a step, got one through node {first}; remove one of its edges"
            )
        order += ready
    return [(node, sources[node]) for node in order]
