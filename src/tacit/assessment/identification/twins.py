r"""Twins: two edges with the same effect, so that only the number of present edges is identifiable, not which.

Edges $a$ and $b$ are twins if exchanging them changes nothing, $f(x, a{=}1, b{=}0) = f(x, a{=}0, b{=}1)$, for example
if two nodes always send equal values. In a graph with both or neither of them, this means $d_a(x, A) = d_b(x, A)$; in a
graph with one of them, the effects are those of a first and of a second edge and need not be equal (tanh). So the two
vectors of effects over inputs, outputs and the graphs $g$ with $A_a = A_b$ are compared:

$$\cos = \frac{\langle d_a, d_b \rangle_{ab}}{|d_a|_{ab}\, |d_b|_{ab}} > 1 - 10^{-4}, \qquad
  \Big| \frac{|d_a|_{ab}}{|d_b|_{ab}} - 1 \Big| < 0.01,
  \qquad \langle u, v \rangle_{ab} = \sum_{g: A_a = A_b} u_g \cdot v_g$$

Edges with opposite effects are not twins, and neither are edges without an effect. In large graphs only edges into the
same node are compared. They use few inputs and graphs at first, and among a million pairs of short vectors some agree
by chance: pairs that agree are tested again on other inputs and graphs, which can be many because few edges remain.
"""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.assessment.identification.effects import Flips, flip_edges, prepare_trials
from tacit.assessment.identification.spread import Spread
from tacit.shapes import Inputs, Observed, Targets
from tacit.training import LatentGraphModel

Place = tuple[int, int]  # row and column: target and source
COSINE, LENGTH = 1e-4, 0.01
# A smaller relative effect counts as none: float32 rounds at a thousandth of it.
NEGLIGIBLE = 1e-4


def confirmed_twins(
    model: LatentGraphModel,
    inputs: Inputs,
    targets: Targets | None,
    candidates: list[tuple[Place, Place]],
    *,
    generator: Generator,
    observed: Observed | None = None,
) -> list[tuple[Place, Place]]:
    """Return the pairs of edges that are also twins on new inputs and graphs."""
    if not candidates:
        return []
    places = sorted({place for pair in candidates for place in pair})
    edges = torch.tensor(places, device=inputs.device)
    trials = prepare_trials(model, inputs, targets, generator=generator, observed=observed, edges=edges)
    again = {pair for flips in flip_edges(model, trials, edges) for pair in twins_among(flips, trials.spread)}
    return [pair for pair in candidates if pair in again]


def twins_among(flips: Flips, spread: Spread) -> list[tuple[Place, Place]]:
    """Return the twins among some edges."""
    differences = (flips.differences / spread.values).transpose(1, 2).flatten(2)  # (edge, graph, number)
    present, absent = flips.present, 1 - flips.present
    inner = sum(_inner(differences * there[..., None]) for there in (present, absent))
    squares = differences.square().sum(-1)  # (edge, graph)
    own = (squares * present) @ present.mT + (squares * absent) @ absent.mT  # [a, b]: |d_a|^2 where A_a = A_b
    agreeing = present @ present.mT + absent @ absent.mT
    numbers = agreeing * flips.differences.shape[1]  # graphs times inputs
    lengths = own.sqrt()
    felt = lengths > NEGLIGIBLE * numbers.sqrt()
    same_way = inner > (1 - COSINE) * lengths * lengths.mT
    same_length = (lengths - lengths.mT).abs() < LENGTH * lengths.mT
    twins = (felt & felt.mT & same_way & same_length & same_length.mT).triu(1)
    edges: list[list[int]] = flips.edges.tolist()
    return [((edges[a][0], edges[a][1]), (edges[b][0], edges[b][1])) for a, b in twins.nonzero().tolist()]


def _inner(vectors: Float[Tensor, "edge graph number"]) -> Float[Tensor, "edge edge"]:
    flat = vectors.flatten(1)
    return flat @ flat.mT
