"""Export of a learned graph as a table, a networkx graph or a PyG graph. Each edge goes from source to target."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from tacit.errors import InputError, require
from tacit.graph.bernoulli import require_symmetric
from tacit.graph.candidate_edges import CandidateEdges
from tacit.graph.nodes import require_names
from tacit.shapes import EdgeMask, EdgeProbs

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

Attributes = Mapping[str, Shaped[Tensor, "node node"]]  # numbers or booleans by name, as in std_error or identifiable
TableAttributes = Mapping[str, Shaped[Tensor, "row slot"]]
Exists = Float[Tensor, "node node"]


def edge_table(
    edge_probs: EdgeProbs, nodes: Sequence[str], *, exists: Exists | None = None, attributes: Attributes | None = None
) -> "pandas.DataFrame":
    """Return every ordered pair as a row (source, target, exists, probability), the likeliest first.

    Rows are sorted by ``exists``, if it is given, then by probability; NaN (unknown) comes last. Ties keep the order of
    the nodes, by source and then by target. Each of ``attributes`` is a matrix with target rows and source columns,
    like ``edge_probs``, and becomes one more column.

    >>> edge_table(torch.tensor([[0.0, 0.75], [0.25, 0.0]]), ["a", "b"]).head(2).values.tolist()
    [['b', 'a', 0.75], ['a', 'b', 0.25]]
    >>> exists = torch.tensor([[0.0, 0.5], [1.0, 0.0]])
    >>> edge_table(torch.tensor([[0.0, 0.75], [0.25, 0.0]]), ["a", "b"], exists=exists).head(2).values.tolist()
    [['a', 'b', 1.0, 0.25], ['b', 'a', 0.5, 0.75]]
    """
    probs = _checked("edge_probs", edge_probs, nodes)
    known = {} if exists is None else {"exists": _checked("exists", exists, nodes)}
    columns = {**known, "probability": probs, **_checked_attributes(attributes, nodes)}
    source, target = torch.ones_like(probs, dtype=torch.bool).nonzero().unbind(1)  # by source and then target
    return _table(nodes, source, target, {name: values[target, source] for name, values in columns.items()})


def listed_table(
    edge_probs: EdgeProbs,
    candidates: CandidateEdges,
    nodes: Sequence[str],
    *,
    attributes: TableAttributes | None = None,
) -> "pandas.DataFrame":
    """Return the candidates of a table as rows (source, target, probability), the likeliest first.

    Each of ``attributes``, in the shape of the table, is one more column; ``exists`` comes before the probability.

    >>> table = CandidateEdges.from_edges(torch.tensor([1, 0]), torch.tensor([0, 1]), num_nodes=2)
    >>> listed_table(torch.tensor([[0.25], [0.75]]), table, ["a", "b"]).values.tolist()
    [['a', 'b', 0.75], ['b', 'a', 0.25]]
    """
    require_names(nodes)
    candidates = candidates.to("cpu")
    source, target = candidates.edges()
    found = {name: values.detach().cpu()[candidates.used] for name, values in (attributes or {}).items()}
    first = {name: found.pop(name) for name in ("exists",) if name in found}
    probability = edge_probs.detach().cpu()[candidates.used]
    return _table(nodes, source, target, {**first, "probability": probability, **found})


def _table(nodes: Sequence[str], source: Tensor, target: Tensor, columns: dict[str, Tensor]) -> "pandas.DataFrame":
    """Return the edges as rows, sorted by ``exists`` if it is a column, then by probability."""
    import pandas

    order = torch.arange(len(source))
    for name in ("probability", "exists"):  # a stable sort by the last key first
        if name in columns:
            order = order[columns[name][order].nan_to_num(-1.0).argsort(descending=True, stable=True)]
    columns = {name: values.double() if values.is_floating_point() else values for name, values in columns.items()}
    return pandas.DataFrame(
        {
            "source": [nodes[j] for j in source[order].tolist()],
            "target": [nodes[i] for i in target[order].tolist()],
            **{name: values[order].numpy() for name, values in columns.items()},
        }
    )


def to_networkx(
    edge_probs: EdgeProbs,
    nodes: Sequence[str],
    threshold: float = 0.0,
    *,
    symmetric: bool = False,
    exists: Exists | None = None,
    chosen: EdgeMask | None = None,
    attributes: Attributes | None = None,
) -> "networkx.DiGraph | networkx.Graph":
    """Return a networkx graph of all nodes and of the edges above the threshold, or of the edges in ``chosen``.

    Edges have an attribute ``probability`` and, if it is given, ``exists``. The threshold applies to ``exists`` if it
    is given, else to the probability. NaN counts as 0. With ``symmetric`` the edges have no direction. Each of
    ``attributes`` is a matrix with target rows and source columns, like ``edge_probs``, and becomes one more attribute.

    >>> probs = torch.tensor([[0.0, 0.75], [0.25, 0.0]])
    >>> to_networkx(probs, ["a", "b"], threshold=0.5).edges(data="probability")
    OutEdgeDataView([('b', 'a', 0.75)])
    >>> to_networkx(probs, ["a", "b"], 0.5, attributes={"std_error": probs / 8}).edges["b", "a"]
    {'probability': 0.75, 'std_error': 0.09375}
    >>> to_networkx(probs, ["a", "b"], 0.5, exists=probs.mT).edges(data=True)
    OutEdgeDataView([('a', 'b', {'exists': 0.75, 'probability': 0.25})])
    """
    import networkx

    probs = _checked("edge_probs", edge_probs, nodes).nan_to_num(0.0)
    known = {} if exists is None else {"exists": _checked("exists", exists, nodes)}
    extra = _checked_attributes(attributes, nodes)
    above = _chosen(known.get("exists", probs), threshold, chosen)
    if symmetric:
        for name, values in {"edge_probs": probs, **known}.items():
            require_symmetric(name, values.nan_to_num(0.0), "leave symmetric out")
        for name, values in extra.items():
            both_missing = values.isnan() & values.mT.isnan()
            require_symmetric(f"attributes['{name}']", values.masked_fill(both_missing, 0), "leave symmetric out")
        above = above.triu()
    graph = networkx.Graph() if symmetric else networkx.DiGraph()
    graph.add_nodes_from(nodes)
    source, target = above.mT.nonzero().unbind(1)
    open_ones = extra["undirected"].bool() & edge_probs.isnan() if "undirected" in extra else torch.zeros_like(above)
    shown = probs.masked_fill(open_ones, torch.nan)  # how often they act is unknown
    columns = {name: values[target, source] for name, values in {**known, "probability": shown, **extra}.items()}
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    graph.add_edges_from(
        (nodes[j], nodes[i], dict(zip(columns, row, strict=True)))
        for j, i, row in zip(source.tolist(), target.tolist(), rows, strict=True)
    )
    return graph


def to_pyg(
    edge_probs: EdgeProbs,
    nodes: Sequence[str],
    threshold: float = 0.0,
    *,
    exists: Exists | None = None,
    effect: Exists | None = None,
    lag: Exists | None = None,
    within_step: Exists | None = None,
    undirected: EdgeMask | None = None,
    chosen: EdgeMask | None = None,
) -> "Data":
    """Return ``edge_index`` (row 0: sources, row 1: targets) and ``edge_prob`` of the edges above the threshold.

    Edges are selected as in :func:`to_networkx`. ``edge_exists``, ``edge_effect``, ``edge_lag``, ``edge_within_step``
    and ``edge_undirected`` are included if they are known, and ``names`` are the names of the nodes. An undirected edge
    is listed in both directions, as PyG expects.
    """
    data = _pyg_data()
    probs = _checked("edge_probs", edge_probs, nodes)
    columns = {"edge_prob": probs.nan_to_num(0.0)}
    optional = {
        "exists": exists,
        "effect": effect,
        "lag": lag,
        "within_step": within_step,
    }
    columns |= {f"edge_{name}": _checked(name, one, nodes) for name, one in optional.items() if one is not None}
    above = _chosen(columns.get("edge_exists", columns["edge_prob"]), threshold, chosen)
    source, target = above.mT.nonzero().unbind(1)
    if undirected is not None:  # how often these act is unknown
        columns["edge_undirected"] = undirected.cpu()
        columns["edge_prob"] = torch.where(columns["edge_undirected"] & probs.isnan(), probs, columns["edge_prob"])
    found = {name: values[target, source] for name, values in columns.items()}
    graph: Data = data(edge_index=torch.stack([source, target]), **found, num_nodes=len(nodes), names=list(nodes))
    return graph


def _pyg_data() -> Any:
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise InputError("to_pyg requires torch_geometric, which is not installed; pip install 'tacit[pyg]'") from None
    return Data


def _chosen(values: EdgeProbs, threshold: float, chosen: EdgeMask | None) -> EdgeMask:
    """Return a mask of the edges above the threshold, or of the chosen edges."""
    require(
        isinstance(threshold, int | float) and 0 <= threshold <= 1,
        f"threshold must be a probability from 0 to 1, got {threshold!r}; pass for example 0.5",
    )
    return values > threshold if chosen is None else chosen.cpu()


def _checked(name: str, values: EdgeProbs, nodes: Sequence[str]) -> EdgeProbs:
    require_names(nodes)
    require(
        isinstance(values, Tensor) and tuple(values.shape) == (len(nodes), len(nodes)),
        f"{name} must be a tensor of shape {(len(nodes), len(nodes))}, one row and column per node, got "
        f"{tuple(getattr(values, 'shape', ())) or type(values).__name__}; pass graph.edge_probs",
    )
    return values.detach().cpu()


def _checked_attributes(attributes: Attributes | None, nodes: Sequence[str]) -> dict[str, Tensor]:
    """Return the attributes on the CPU; floats in double precision, like the probabilities in a table."""
    checked = {}
    for name, values in (attributes or {}).items():
        require(
            name not in ("source", "target", "exists", "probability"),
            f"attributes must have names other than source, target, exists and probability, got {name!r}; rename it",
        )
        require(
            isinstance(values, Tensor) and tuple(values.shape) == (len(nodes), len(nodes)),
            f"attributes[{name!r}] must be a tensor of shape {(len(nodes), len(nodes))}, one row and column per node, "
            f"got {tuple(getattr(values, 'shape', ())) or type(values).__name__}; use torch.as_tensor(values)",
        )
        values = values.detach().cpu()
        checked[name] = values.double() if values.is_floating_point() else values
    return checked
