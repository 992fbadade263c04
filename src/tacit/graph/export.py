"""A learned graph for other tools: a table, a networkx graph, a PyG graph. Each edge goes from source to target."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tacit.errors import InputError, require
from tacit.graph.bernoulli import require_symmetric
from tacit.graph.nodes import require_names
from tacit.shapes import EdgeProbs

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data


def edge_table(edge_probs: EdgeProbs, nodes: Sequence[str]) -> "pandas.DataFrame":
    """Return every ordered pair as a row (source, target, probability), the likeliest first.

    Equal probabilities come in the order of the nodes, source before target.

    >>> edge_table(torch.tensor([[0.0, 0.75], [0.25, 0.0]]), ["a", "b"]).head(2).values.tolist()
    [['b', 'a', 0.75], ['a', 'b', 0.25]]
    """
    import pandas

    probs = _checked(edge_probs, nodes)
    by_source = probs.mT.flatten()  # row: source, column: target
    order = by_source.argsort(descending=True, stable=True)
    source, target = order // len(nodes), order % len(nodes)
    return pandas.DataFrame(
        {
            "source": [nodes[j] for j in source.tolist()],
            "target": [nodes[i] for i in target.tolist()],
            "probability": by_source[order].double().numpy(),
        }
    )


def to_networkx(
    edge_probs: EdgeProbs, nodes: Sequence[str], threshold: float = 0.0, *, symmetric: bool = False
) -> "networkx.DiGraph | networkx.Graph":
    """Return all nodes, and the edges whose probability is above the threshold, with an attribute ``probability``.

    With ``symmetric`` the edges have no direction.

    >>> to_networkx(torch.tensor([[0.0, 0.75], [0.25, 0.0]]), ["a", "b"], threshold=0.5).edges(data="probability")
    OutEdgeDataView([('b', 'a', 0.75)])
    """
    import networkx

    probs = _checked(edge_probs, nodes)
    if symmetric:
        require_symmetric("edge_probs", probs, "leave symmetric out")
        probs = probs.triu()
    graph = networkx.Graph() if symmetric else networkx.DiGraph()
    graph.add_nodes_from(nodes)
    source, target, above = _edges(probs, threshold)
    graph.add_edges_from(
        (nodes[j], nodes[i], {"probability": probability})
        for j, i, probability in zip(source.tolist(), target.tolist(), above.tolist(), strict=True)
    )
    return graph


def to_pyg(edge_probs: EdgeProbs, nodes: Sequence[str], threshold: float = 0.0) -> "Data":
    """Return ``edge_index`` (row 0 sends, row 1 receives) and ``edge_prob`` of the edges above the threshold.

    The names are in ``names``. An edge without direction is there both ways, as PyG wants it.
    """
    data = _pyg_data()
    source, target, above = _edges(_checked(edge_probs, nodes), threshold)
    graph: Data = data(
        edge_index=torch.stack([source, target]), edge_prob=above, num_nodes=len(nodes), names=list(nodes)
    )
    return graph


def _pyg_data() -> Any:
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise InputError("to_pyg needs torch_geometric, which is not installed; pip install 'tacit[pyg]'") from None
    return Data


def _edges(probs: EdgeProbs, threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return source, target and probability of each edge above the threshold, by source and then target."""
    require(
        isinstance(threshold, int | float) and 0 <= threshold <= 1,
        f"threshold needs a probability from 0 to 1, got {threshold!r}; pass for example 0.5",
    )
    source, target = (probs.mT > threshold).nonzero().unbind(1)
    return source, target, probs[target, source]


def _checked(edge_probs: EdgeProbs, nodes: Sequence[str]) -> EdgeProbs:
    require_names(nodes)
    require(
        isinstance(edge_probs, Tensor) and tuple(edge_probs.shape) == (len(nodes), len(nodes)),
        f"edge_probs needs a tensor of shape {(len(nodes), len(nodes))}, one row and column per node, got "
        f"{tuple(getattr(edge_probs, 'shape', ())) or type(edge_probs).__name__}; pass graph.edge_probs",
    )
    return edge_probs.detach().cpu()
