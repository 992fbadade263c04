"""A learned graph for other tools: a table, a networkx graph, a PyG graph. Each edge goes from source to target."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from tacit.errors import InputError, require
from tacit.graph.bernoulli import require_symmetric
from tacit.graph.nodes import require_names
from tacit.graph.slots import Slots
from tacit.shapes import EdgeProbs

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

Attributes = Mapping[str, Shaped[Tensor, "node node"]]  # numbers or booleans by name, as in std_error or identifiable


def edge_table(
    edge_probs: EdgeProbs, nodes: Sequence[str], *, attributes: Attributes | None = None
) -> "pandas.DataFrame":
    """Return every ordered pair as a row (source, target, probability), the likeliest first.

    Equal probabilities come in the order of the nodes, source before target. Each of ``attributes``, a matrix with
    target row and source column as ``edge_probs``, is one more column.

    >>> edge_table(torch.tensor([[0.0, 0.75], [0.25, 0.0]]), ["a", "b"]).head(2).values.tolist()
    [['b', 'a', 0.75], ['a', 'b', 0.25]]
    """
    import pandas

    probs = _checked(edge_probs, nodes)
    extra = _checked_attributes(attributes, nodes)
    by_source = probs.mT.flatten()  # row: source, column: target
    order = by_source.argsort(descending=True, stable=True)
    source, target = order // len(nodes), order % len(nodes)
    return pandas.DataFrame(
        {
            "source": [nodes[j] for j in source.tolist()],
            "target": [nodes[i] for i in target.tolist()],
            "probability": by_source[order].double().numpy(),
            **{name: values.mT.flatten()[order].numpy() for name, values in extra.items()},
        }
    )


def listed_table(edge_probs: EdgeProbs, slots: Slots, nodes: Sequence[str]) -> "pandas.DataFrame":
    """Return the candidates of a table as rows (source, target, probability), the likeliest first; others are 0.

    >>> table = Slots.from_edges(torch.tensor([1, 0]), torch.tensor([0, 1]), num_nodes=2)
    >>> listed_table(torch.tensor([[0.25], [0.75]]), table, ["a", "b"]).values.tolist()
    [['a', 'b', 0.75], ['b', 'a', 0.25]]
    """
    import pandas

    require_names(nodes)
    slots, probs = slots.to("cpu"), edge_probs.detach().cpu()
    source, target = slots.edges()
    listed = probs[slots.used].double()
    order = listed.argsort(descending=True, stable=True)
    return pandas.DataFrame(
        {
            "source": [nodes[j] for j in source[order].tolist()],
            "target": [nodes[i] for i in target[order].tolist()],
            "probability": listed[order].numpy(),
        }
    )


def to_networkx(
    edge_probs: EdgeProbs,
    nodes: Sequence[str],
    threshold: float = 0.0,
    *,
    symmetric: bool = False,
    attributes: Attributes | None = None,
) -> "networkx.DiGraph | networkx.Graph":
    """Return all nodes, and the edges whose probability is above the threshold, with an attribute ``probability``.

    With ``symmetric`` the edges have no direction. Each of ``attributes``, a matrix with target row and source column
    as ``edge_probs``, is one more attribute of every edge.

    >>> probs = torch.tensor([[0.0, 0.75], [0.25, 0.0]])
    >>> to_networkx(probs, ["a", "b"], threshold=0.5).edges(data="probability")
    OutEdgeDataView([('b', 'a', 0.75)])
    >>> to_networkx(probs, ["a", "b"], 0.5, attributes={"std_error": probs / 8}).edges["b", "a"]
    {'probability': 0.75, 'std_error': 0.09375}
    """
    import networkx

    probs = _checked(edge_probs, nodes)
    extra = _checked_attributes(attributes, nodes)
    if symmetric:
        require_symmetric("edge_probs", probs, "leave symmetric out")
        for name, values in extra.items():
            both_missing = values.isnan() & values.mT.isnan()
            require_symmetric(f"attributes['{name}']", values.masked_fill(both_missing, 0), "leave symmetric out")
        probs = probs.triu()
    graph = networkx.Graph() if symmetric else networkx.DiGraph()
    graph.add_nodes_from(nodes)
    source, target, above = _edges(probs, threshold)
    columns = {"probability": above} | {name: values[target, source] for name, values in extra.items()}
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    graph.add_edges_from(
        (nodes[j], nodes[i], dict(zip(columns, row, strict=True)))
        for j, i, row in zip(source.tolist(), target.tolist(), rows, strict=True)
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


def _checked_attributes(attributes: Attributes | None, nodes: Sequence[str]) -> dict[str, Tensor]:
    """Return the attributes on the CPU; floats in double precision, as probabilities in a table."""
    checked = {}
    for name, values in (attributes or {}).items():
        require(
            name not in ("source", "target", "probability"),
            f"attributes needs names other than source, target and probability, got {name!r}; rename it",
        )
        require(
            isinstance(values, Tensor) and tuple(values.shape) == (len(nodes), len(nodes)),
            f"attributes[{name!r}] needs a tensor of shape {(len(nodes), len(nodes))}, one row and column per node, "
            f"got {tuple(getattr(values, 'shape', ())) or type(values).__name__}; use torch.as_tensor(values)",
        )
        values = values.detach().cpu()
        checked[name] = values.double() if values.is_floating_point() else values
    return checked
