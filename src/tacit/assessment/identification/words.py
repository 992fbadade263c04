"""Descriptions of edges as text: groups such as all edges into a node are named, other edges are listed."""

from collections.abc import Callable, Sequence

from tacit.graph import NamedNodes
from tacit.shapes import EdgeMask

LISTED = 5


def count_of(number: int, thing: str) -> str:
    """Format a number with its noun.

    >>> count_of(1, "edge"), count_of(1200, "edge")
    ('1 edge', '1,200 edges')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def listed(words: Sequence[str]) -> str:
    """Join some words with commas, and add how many more there are.

    >>> listed(["a", "b"]), listed(list("abcdefgh"))
    ('a and b', 'a, b, c, d, e and 3 more')
    """
    shown = list(words[:LISTED]) if len(words) > LISTED + 1 else list(words)
    rest = len(words) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def count_edges(mask: EdgeMask, *, symmetric: bool) -> int:
    """Return the number of edges in a mask; pairs of a symmetric mask are counted once."""
    return int((mask.triu() if symmetric else mask).sum())


def describe_edges(mask: EdgeMask, learned: EdgeMask, nodes: NamedNodes) -> str:
    """Describe the edges of a mask: the whole diagonal, all into a node, all out of a node, and the rest one by one.

    >>> import torch
    >>> learned = torch.ones(3, 3, dtype=torch.bool)
    >>> describe_edges(torch.eye(3, dtype=torch.bool), learned, NamedNodes(("a", "b", "c")))
    "every node's edge to itself"
    >>> mask = torch.zeros(3, 3, dtype=torch.bool)
    >>> mask[1], mask[0, 2] = True, True
    >>> describe_edges(mask, learned, NamedNodes(("a", "b", "c")))
    "all edges into b, whose output ignores its inputs; 'c -> a'"
    """
    left, learned = mask.cpu().clone(), learned.cpu().clone()
    phrases = []
    own = learned.diagonal()
    if int(own.sum()) > 1 and bool((left.diagonal() == own).all()):
        phrases.append("every node's edge to itself")
        left.fill_diagonal_(False)
        learned.fill_diagonal_(False)
    if nodes.symmetric:
        phrases += _whole_lines(left, learned, nodes, lambda name: f"all edges of {name}")
        left = left.triu()
    else:
        reads = "all edges into {}, whose output ignores its inputs".format
        phrases += _whole_lines(left, learned, nodes, reads)
        phrases += _whole_lines(left.mT, learned.mT, nodes, "all edges out of {}, which change no prediction".format)
    places = left.nonzero().tolist()
    if places:
        phrases.append(listed([nodes.edge(source, target) for target, source in places]))
    return "; ".join(phrases)


def _whole_lines(left: EdgeMask, learned: EdgeMask, nodes: NamedNodes, phrase: Callable[[str], str]) -> list[str]:
    """Name the rows whose learned edges are all in the mask, and remove them from the mask."""
    whole = (learned.sum(1) > 1) & ((left & learned) == learned).all(1) & left.any(1)
    numbers: list[int] = whole.nonzero().flatten().tolist()
    for row in numbers:
        left[row] = learned[row] = False
        if nodes.symmetric:
            left[:, row] = learned[:, row] = False
    return [phrase(listed([nodes.names[row] for row in numbers]))] if numbers else []
