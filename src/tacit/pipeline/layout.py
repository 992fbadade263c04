"""Choice between a matrix of all pairs of nodes and a table of candidates."""

from typing import Literal

from tacit.errors import require
from tacit.graph import EdgeRules

Layout = Literal["matrix", "table"]
# A step of a filter on one core, 32 pairs with 8 graphs each, took over the table and over the matrix: at 200 nodes 24
# and 194 ms with 5% of all pairs as candidates, 135 and 392 ms with a quarter, 197 and 270 ms with half; at 400 nodes
# with half they are even. Up to 200 nodes a step is short either way, and the matrix keeps the random numbers of fits
# without candidates.
MANY_NODES = 200
FEW_CANDIDATES = 0.25  # of all ordered pairs
# Up to this number of nodes, a learned model is expanded to all pairs of nodes (160,000) for standard errors, flags and
# other graphs; edges.csv is then 6 MB, and a heatmap is still readable. All grow with the square of the nodes.
MOST_EXPANDED = 400


def usual_layout(wish: str, rules: EdgeRules) -> tuple[Layout, str]:
    """Return the layout of a graph, and the reason; a table that is requested but not possible is refused."""
    asked = wish == "table"
    if rules.symmetric:
        require(
            not asked,
            "layout 'table' requires directed edges, and symmetric is set; leave one of them out",
        )
        return "matrix", "edges without a direction"
    if rules.candidates is None:
        require(
            not asked,
            "layout 'table' requires candidates, got none; name some, or the nearest or most correlated",
        )
        return "matrix", "every pair of nodes can be an edge"
    nodes, count = len(rules.nodes), rules.candidate_edges.num_edges
    require(
        count > 0 or not asked,
        "layout 'table' requires a possible edge, and all candidates are forbidden; allow some of them",
    )
    share = count / nodes**2
    if count and nodes > MANY_NODES and share <= FEW_CANDIDATES:
        return "table", f"{count:,} candidates are {share:.2g} of all pairs of {nodes:,} nodes"
    return "matrix", "few nodes" if nodes <= MANY_NODES else "most pairs are candidates"
