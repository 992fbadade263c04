r"""Any convolution or model of PyTorch Geometric as a predictor.

$$\hat y_i = \Big[ x^{\text{new}}_i + \Big] \; U x_i + b + m(x, E(A))_i$$

$m$ is the module, called as ``module(x, edge_index)``; $U$ is the own path, a linear map that all nodes share. All
graphs of all pairs become one large graph of disconnected components, and the module is called once. Entry
$A_{ij} = 1$ is the edge with source $j$ and target $i$.

No locality is declared, so credit is global: most of these modules normalise over neighbours of neighbours. Do not use
layers that mix the nodes of a whole batch (batch norm, or pooling without ``batch``), because they would mix pairs and
graphs. The number of edges depends on the draw, so such a predictor is neither vectorised over replicas nor compiled.
"""

import math

import torch
from torch import Generator, Tensor, nn

from tacit.errors import require, require_package
from tacit.graph import AnyGraphs, CandidateEdges, disjoint_edges
from tacit.predictors.kinds import Options, PredictorKind, Sizes, one_width
from tacit.predictors.protocol import initial_parameters, uniform_within
from tacit.predictors.series import SeriesLayout
from tacit.registry import PREDICTORS
from tacit.shapes import Inputs, Samples


class PyGPredictor(nn.Module):
    """An own path per node plus a PyG module that takes ``(x, edge_index)``.

    ``window``, ``num_features`` and ``known`` are the sizes of the inputs, window * num_features + known numbers per
    node, as for the other predictors for series. For inputs that are not a series pass ``window=1, residual=False``.
    The module maps all inputs of a node to ``out_channels``.

    >>> class SumOfNeighbours(nn.Module):  # stands for a convolution of PyTorch Geometric
    ...     def forward(self, x, edge_index):
    ...         source, target = edge_index
    ...         return torch.zeros(len(x), 1).index_add(0, target, x[source, :1])
    >>> predictor = PyGPredictor(SumOfNeighbours(), window=1, num_features=2, residual=False)
    >>> inputs, graphs = torch.tensor([[[1.0, 0.0], [2.0, 0.0]]]), torch.tensor([[[[0.0, 1.0], [0.0, 0.0]]]])
    >>> predictor(inputs, graphs).flatten().tolist()  # node 0 reads node 1
    [2.0, 0.0]
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        window: int,
        num_features: int,
        out_channels: int = 1,
        residual: bool = True,
        known: int = 0,
    ) -> None:
        super().__init__()
        require(
            isinstance(module, nn.Module),
            f"module must be a module like GCNConv(12, 1), got {module!r}; build one",
        )
        cached = next((name for name, part in module.named_modules() if getattr(part, "cached", False) is True), None)
        require(
            cached is None,
            f"module must have layers without a cache, but {cached or type(module).__name__} has cached=True; build it "
            "with cached=False",
        )
        self.layout = SeriesLayout(window, num_features, out_channels, known)
        self.layout.require_residual(residual)
        self.module, self.residual, self.out_channels = module, residual, out_channels
        self.own = nn.Parameter(torch.zeros(self.layout.in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return random weights; those of the module come from its ``reset_parameters``."""
        fresh = {f"module.{name}": value for name, value in initial_parameters(self.module, generator).items()}
        bound = 1 / math.sqrt(self.layout.in_channels)
        for name, value in self.named_parameters(recurse=False):
            fresh[name] = uniform_within(value, bound, generator)
        return fresh

    def forward(self, inputs: Inputs, graphs: AnyGraphs) -> Samples:
        """Return the output of every pair under each of its graphs."""
        num_graphs = graphs.shape[1]
        copies = inputs[:, None].expand(-1, num_graphs, -1, -1)  # (batch, graph, node, channel)
        outputs = self.module(copies.flatten(0, 2), disjoint_edges(graphs, len(inputs)))
        pairs, num_graphs, nodes = copies.shape[:3]
        expected = (pairs * num_graphs * nodes, self.out_channels)
        got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        require(
            got == expected,
            f"{type(self.module).__name__} must return (nodes, out_channels) = {expected} for the {pairs} x "
            f"{num_graphs} x {nodes} nodes of all pairs and graphs, got {got}; check its out_channels, and that it "
            "keeps one row per node",
        )
        own = inputs @ self.own + self.bias  # (batch, node, channel)
        if self.residual:
            own = own + self.layout.newest(inputs)
        samples: Samples = outputs.reshape(*copies.shape[:3], self.out_channels) + own[:, None]
        return samples


def _kind(name: str) -> PredictorKind:
    """Return the kind of a model of PyG by the name of its class."""

    def build(sizes: Sizes, options: Options, _candidates: CandidateEdges | None, _observation: str) -> PyGPredictor:
        require_package("torch_geometric", f"predictor '{options.kind}'", "pyg")
        from torch_geometric.nn import models

        with torch.random.fork_rng(devices=[]):  # the constructor draws initial weights; a fit replaces them
            module: nn.Module = getattr(models, name)(
                sizes.in_channels, one_width(options), options.layers + 1, sizes.out_channels
            )
        return PyGPredictor(
            module,
            window=sizes.window,
            num_features=sizes.num_features,
            out_channels=sizes.out_channels,
            residual=bool(options.residual),
            known=sizes.known,
        )

    return PredictorKind(
        build,
        uses=("hidden", "layers", "residual"),
        predicts_change=True,
        observation="gaussian_input",
        num_layers=lambda options: options.layers + 1,
    )


for _name, _class in (("gcn", "GCN"), ("gin", "GIN"), ("gat", "GAT"), ("sage", "GraphSAGE")):
    PREDICTORS.add(_name, _kind(_class))
