"""How many pairs are predicted at once."""

from tacit.predictors import num_hops_of
from tacit.training import LatentGraphModel

PAIRS = 64  # they share their graphs, so that the number is part of the result
# Over a table of candidates, numbers at once: 2^27 floats are half a gigabyte. A pair is taken to need for every graph
# WIDTH numbers of each node, and with two hops or more of each slot.
MOST_NUMBERS = 2**27
WIDTH = 32


def pairs_at_once(model: LatentGraphModel, num_graphs: int) -> int:
    """Return how many pairs share their graphs: 64, and fewer where nodes are many."""
    candidates = model.graph.candidates
    if candidates is None:
        return PAIRS
    local = num_hops_of(model.predictor) == 1
    each = num_graphs * WIDTH * (candidates.num_nodes if local else candidates.sources.numel())
    return max(1, min(PAIRS, MOST_NUMBERS // each))
