"""Comparison of the replicas of a fit: other graphs that predict as well, and poor local minima.

Every replica is an optimisation from different initial values. If two replicas end with the same validation loss and
different graphs, the data do not distinguish between the graphs.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.identification.representations import same_graph
from tacit.errors import require
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import FitResult

Relation = Literal["same", "complement", "diagonal", "other"]
# Relative difference from the best loss within which a loss is as good: good starts of a problem differ by 1%.
TOLERANCE = 0.01
# Mean difference of probabilities below which two replicas found the same graph, and correlation with a complement.
SAME_MEAN, CORRELATED = 0.05, 0.8
WORDS = {
    "complement": "the complement of the best one's graph",
    "diagonal": "the best one's graph with other self-loops",
    "other": "another graph",
}


@dataclass(frozen=True)
class ReplicaGraph:
    """One replica compared with the best: number, seed, relation of its graph, and whether it predicts as well."""

    replica: int
    seed: int
    relation: Relation
    as_good: bool
    validation_loss: float

    def sentence(self) -> str:
        """Say it."""
        quality = "predicts as well as the best" if self.as_good else "predicts worse"
        graph = "the same graph" if self.relation == "same" else WORDS[self.relation]
        return f"Replica {self.replica} (seed {self.seed}) {quality} and has {graph}."


@torch.no_grad()
def compare_replicas(result: FitResult, *, tolerance: float = TOLERANCE) -> list[ReplicaGraph]:
    """Return the replicas that are as good as the best with another graph, and poor ones with its complement.

    Losses are equal up to ``tolerance`` times the absolute best loss. The result is empty if the predictor is known or
    if there is only one replica.
    """
    require(
        isinstance(result, FitResult),
        f"result must be a FitResult, got {type(result).__name__}; pass the result of fit",
    )
    require(0 <= tolerance < 1, f"tolerance must be in [0, 1), got {tolerance}; pass for example {TOLERANCE}")
    graph = result.model.graph
    graph.require_all_pairs("compare_replicas")
    raw = result.parameters.get(f"graph.{graph.link.parameter}")
    if raw is None or all(name.startswith("graph.") for name in result.parameters):
        return []
    probs = graph.probs_from(raw)  # (replica, node, node)
    lowest = result.replicas[result.best].validation_loss
    found = []
    for number, replica in enumerate(result.replicas):
        if number == result.best:
            continue
        as_good = replica.validation_loss - lowest <= tolerance * abs(lowest)
        relation = graph_relation(probs[number], probs[result.best], ~graph.fixed)
        if (as_good and relation != "same") or relation == "complement":
            found.append(ReplicaGraph(number, replica.seed, relation, as_good, replica.validation_loss))
    return found


def graph_relation(probs: EdgeProbs, best: EdgeProbs, learned: EdgeMask) -> Relation:
    """Return the relation of a graph to the best one, by the learned edges.

    >>> best = torch.tensor([[0.9, 0.9, 0.1], [0.1, 0.9, 0.8], [0.1, 0.1, 0.9]])
    >>> everything = torch.ones(3, 3, dtype=torch.bool)
    >>> graph_relation(1 - best, best, everything), graph_relation(best - 0.5 * torch.eye(3), best, everything)
    ('complement', 'diagonal')
    """
    off = learned & ~torch.eye(len(best), dtype=torch.bool, device=best.device)
    own = learned & ~off
    if off.any() and correlation(probs[off], 1 - best[off]) > CORRELATED:
        return "complement"
    apart = (probs - best).abs()
    if off.any() and float(apart[off].mean()) > SAME_MEAN:
        return "other"
    if own.any() and not same_graph(probs, best, own) and float(apart[own].mean()) > SAME_MEAN:
        return "diagonal"
    return "same"


def correlation(one: Float[Tensor, " edge"], other: Float[Tensor, " edge"]) -> float:
    """Return Pearson's correlation, 0 if one of the two is constant."""
    first, second = one.double() - one.double().mean(), other.double() - other.double().mean()
    size = first.norm() * second.norm()
    return (first @ second / size).item() if size > 1e-12 else 0.0
