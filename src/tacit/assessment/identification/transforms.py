"""Other graphs that may be equivalent: a learned predictor might compensate for the change of the graph."""

import torch

from tacit.graph import GraphDistribution
from tacit.shapes import EdgeMask, EdgeProbs

COMPLEMENT = "the complement graph"
WHOLE_COMPLEMENT = "the complement graph, self-loops included"
LOOPS_OFF = "the graph with self-loops off"
LOOPS_ON = "the graph with self-loops on"
CERTAIN = "the deterministic graph of the edges above 0.5"
COMPLEMENTS = (COMPLEMENT, WHOLE_COMPLEMENT)
# Graphs are equal if all of their probabilities differ by less than this.
SAME_GRAPH = 0.05


def other_graphs(graph: GraphDistribution) -> dict[str, EdgeProbs]:
    r"""Return named changes of the learned edges; changes without an effect are left out.

    They are the complement, $1 - \theta$, which a predictor can compensate by sums over all nodes; self-loops switched
    off or on, which a node's own path can replace; and the deterministic graph, because an edge that is always present
    with a smaller weight resembles an edge that acts at times.

    >>> from tacit.graph import BernoulliGraph
    >>> graph = BernoulliGraph(torch.tensor([[0.0, 0.25], [1.0, 0.0]]), fixed=torch.eye(2, dtype=torch.bool))
    >>> [probs.tolist() for probs in other_graphs(graph).values()]  # the complement, and without chance
    [[[0.0, 0.75], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]
    """
    graph.require_all_pairs("other_graphs")
    probs = graph.edge_probs.detach()
    itself = torch.eye(graph.num_nodes, dtype=torch.bool, device=probs.device)
    loops, others = ~graph.fixed & itself, ~graph.fixed & ~itself
    changed = {
        COMPLEMENT: torch.where(others, 1 - probs, probs),
        WHOLE_COMPLEMENT: torch.where(others | loops, 1 - probs, probs),
        LOOPS_OFF: torch.where(loops, 0.0, probs),
        LOOPS_ON: torch.where(loops, 1.0, probs),
        CERTAIN: torch.where(graph.fixed, probs, (probs > 0.5).to(probs.dtype)),
    }
    if not loops.any() or not others.any():
        del changed[WHOLE_COMPLEMENT]
    return {name: new for name, new in changed.items() if not same_graph(new, probs, ~graph.fixed)}


def same_graph(one: EdgeProbs, other: EdgeProbs, edges: EdgeMask) -> bool:
    """Return whether the probabilities of some edges are equal up to a tolerance."""
    return not bool(((one - other).abs() > SAME_GRAPH)[edges].any())
