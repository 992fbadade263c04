"""How often each edge acts, by the exact likelihood, for observation models without a moment estimate."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.assessment.uncertainty.boundary import NOTHING_KNOWN
from tacit.assessment.uncertainty.gate_tests import NodeGates, judge_gates
from tacit.assessment.uncertainty.intervals import EdgeIntervals
from tacit.data import Pairs
from tacit.errors import require
from tacit.local import LEVEL, QUANTILE, Dependence
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel, NodeRegressions, fitted_by_likelihood

ROWS_PER_COLUMN = 2  # fewer pairs per coefficient are not enough to estimate the gates of a node
FEW_ROWS = "{rows} training pairs are too few to estimate how often edges into {nodes} of the nodes act"


@dataclass(frozen=True, eq=False)
class LikelihoodActing:
    """How often edges act: ``edge_probs``, 1 if ``always``; see :class:`~tacit.assessment.uncertainty.Acting`."""

    edge_probs: EdgeProbs
    always: EdgeMask
    std_errors: EdgeProbs
    low: EdgeProbs
    high: EdgeProbs
    degrees: float
    parameters: dict[str, Tensor]
    warnings: list[str]

    @property
    def inflation(self) -> Float[Tensor, " edge"]:
        """1: the errors come from the likelihood only."""
        return self.edge_probs.new_ones(1)

    @property
    def bagged(self) -> EdgeProbs:
        """The estimate itself, because there are no resamples."""
        return self.edge_probs

    def intervals(self, level: float = LEVEL) -> EdgeIntervals:
        """Return confidence intervals of the given ``level``."""
        require(level == LEVEL, f"level must be {LEVEL} for intervals of the likelihood, got {level}; use {LEVEL}")
        return EdgeIntervals(self.low, self.high, level, simultaneous=False)


def acting_by_likelihood(
    model: LatentGraphModel, train: Pairs, *, block: int = 1, intervals: bool = True
) -> LikelihoodActing:
    """Return how often the learned edges of a model act, from its training pairs; the model is not changed.

    Without ``intervals`` no errors are computed, which takes a third of the time.
    """
    data, graph = NodeRegressions.of(model, train), model.graph
    learned, present = graph.learned.cpu(), graph.edge_probs.detach()
    nodes, enough = list[NodeGates](), list[bool]()
    dependence = Dependence.of_rows(len(train), block, train.series)
    for some in data.chunks():
        regressions, may_gate = [data.node(node) for node in some], []
        for node, one in zip(some, regressions, strict=True):
            columns = one.design.shape[1] + len(one.sent) + 2
            enough.append(len(one.targets) >= ROWS_PER_COLUMN * columns)
            may_gate.append(learned[node, data.sources(node)] & enough[-1])
        among = [dependence.among(data.weights[:, node] > 0) for node in some]
        nodes.extend(judge_gates(regressions, may_gate, among, intervals=intervals))
    fitted = torch.tensor(enough)
    rest = present.cpu().double()
    probs, low, high = (
        torch.where(learned & fitted[:, None], data.matrix(values, rest), beside)
        for values, beside in (
            ([one.fit.edge_probs for one in nodes], rest),
            ([one.low for one in nodes], torch.where(learned, 0.0, rest)),
            ([one.high for one in nodes], torch.where(learned, 1.0, rest)),
        )
    )
    few = int((learned.any(1) & ~fitted).sum())
    parameters = fitted_by_likelihood(model, data, [one.fit for one in nodes], probs, fitted)
    return LikelihoodActing(
        probs.to(present),
        (learned & fitted[:, None] & (probs == 1)).to(present.device),
        (torch.maximum(high - probs, probs - low) / QUANTILE).clamp_max(NOTHING_KNOWN).to(present),
        low.to(present),
        high.to(present),
        dependence.degrees(len(train)),
        parameters,
        [FEW_ROWS.format(rows=len(train), nodes=few)] if few else [],
    )
