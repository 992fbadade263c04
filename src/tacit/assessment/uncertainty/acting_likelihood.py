r"""How often each edge acts, by the exact likelihood, for observation models without a moment estimate.

The p-value of an edge is that of the likelihood ratio of its gate, which is half a chi-square with one degree of
freedom if the edge always acts. If the noise of a node is added to its output, its significant gates are compared with
noise that grows (:mod:`tacit.assessment.uncertainty.explanations`), which gives probability, interval and the larger
p-value. Edges that act together get the probability and the interval of their common gate
(:mod:`tacit.assessment.uncertainty.common_gates`).
"""

from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from tacit.assessment.uncertainty.acting import FEW_ROWS, ROWS_PER_COLUMN, TEST_LEVEL, Acting
from tacit.assessment.uncertainty.common_gates import common_gates, fit_together, with_common_gates
from tacit.assessment.uncertainty.explanations import (
    ExplainedGates,
    explained_gates,
    explained_regressions,
    noise_sizes,
    usual_rows,
)
from tacit.data import Pairs
from tacit.local import Dependence, GatedFit, LocalModel, NodeGates, RatioErrors, fit_gated, gate_scales, judge_gates
from tacit.shapes import EdgeMask
from tacit.training import LatentGraphModel


def acting_by_likelihood(
    model: LatentGraphModel,
    train: Pairs,
    *,
    block: int = 1,
    intervals: bool = True,
    switching: bool = False,
    likely: EdgeMask | None = None,
    always: bool = False,
) -> Acting:
    """Return how often the learned edges of a model act, from its training pairs; the model is not changed.

    Without ``intervals`` no errors are computed, which takes a third of the time. If edges may be ``switching``, with
    regimes that are fitted next, growing noise does not compete with gates. Common gates are searched for where an edge
    that is ``likely`` to exist has a gate; None: all of them are. If edges ``always`` act, no gate is tested, and the
    intervals are 0 to 1: the data do not say.
    """
    every_row, graph = LocalModel.of(model, train.to("cpu")), model.graph
    weights = every_row.weights.clone()
    for node in range(weights.shape[1]):
        whole = every_row.node(node)
        weights[every_row.weights[:, node] > 0, node] *= usual_rows(whole.own, whole.sent)
    data = replace(every_row, weights=weights)
    learned, present = graph.learned.cpu(), graph.edge_probs.detach()
    nodes, enough, beside = list[NodeGates](), list[bool](), list[ExplainedGates]()
    dependence = Dependence.of_rows(len(train), block, train.series)
    residuals = torch.full_like(data.targets, torch.nan)  # of nodes whose noise is added to the output
    for some in data.chunks():
        regressions, may_gate = [data.node(node) for node in some], []
        for node, one in zip(some, regressions, strict=True):
            columns = one.design.shape[1] + len(one.sent) + 2
            enough.append(len(one.targets) >= ROWS_PER_COLUMN * columns)
            may_gate.append(learned[node, data.sources(node)] & (enough[-1] and not always))
        among = [dependence.among(data.weights[:, node] > 0) for node in some]
        gates = judge_gates(regressions, may_gate, among, intervals=intervals)
        nodes.extend(gates)
        beside.extend(_alone(one, mask) for one, mask in zip(gates, may_gate, strict=True))
        for node, one, found in zip(some, regressions, gates, strict=True):
            if one.observation.support == "real":
                residuals[data.weights[:, node] > 0, node] = one.targets - one.mean_output(found.fit)
    asked = {
        node: one.p_values < TEST_LEVEL
        for node, one in enumerate(beside)
        if not switching and bool((one.p_values < TEST_LEVEL).any()) and not residuals[:, node].isnan().all()
    }
    sizes = noise_sizes(residuals, list(asked), None if train.series is None else train.series.cpu()).unbind(1)
    wide = [data.node(node, spread=size) for node, size in zip(asked, sizes, strict=True)]
    parts = explained_regressions(wide, list(asked.values()))
    scales = gate_scales(
        [replace(one, spread=None) for one in wide],
        list(asked.values()),
        [dependence.among(data.weights[:, node] > 0) for node in asked],
    )
    explained = explained_gates(parts, list(asked.values()), scales, intervals=intervals)
    for (node, mask), other in zip(asked.items(), explained, strict=True):
        p_values = torch.maximum(beside[node].p_values, other.p_values)
        # sizes of residuals near a row hide gates that stay open or closed for some rows: both intervals count
        low, high = torch.minimum(beside[node].low, other.low), torch.maximum(beside[node].high, other.high)
        both = ExplainedGates(other.edge_probs, low, high, p_values, other.nats)
        beside[node] = ExplainedGates(*(torch.where(mask, *ends) for ends in zip(both, beside[node], strict=True)))
    fitted = torch.tensor(enough)
    rest = present.cpu().double()
    judged, unknown = learned & fitted[:, None], torch.full_like(rest, torch.nan)
    probs, low, high, p_values, nats = (
        torch.where(judged, data.matrix([one[place] for one in beside], rest), other)
        for place, other in enumerate(
            (rest, torch.where(learned, 0.0, rest), torch.where(learned, 1.0, rest), unknown, unknown)
        )
    )
    # edges that act together; where noise may grow, the regression has only the sources that are judged
    acts, exists = judged & (probs < 1), judged if likely is None else judged & likely.cpu()
    gated = (acts & exists).any(1).nonzero()[:, 0].tolist()
    sources = [data.sources(node) for node in gated]
    masks = [(acts | exists)[node, of_node] for node, of_node in zip(gated, sources, strict=True)]
    regressions, known_fits = (
        [data.node(node) for node in gated],
        list[GatedFit | None](nodes[node].fit for node in gated),
    )
    growing = [place for place, node in enumerate(gated) if node in asked]
    changed = [replace(regressions[place], spread=wide[list(asked).index(gated[place])].spread) for place in growing]
    for place, (one, _) in zip(growing, explained_regressions(changed, [masks[p] for p in growing]), strict=True):
        sources[place], regressions[place] = sources[place][masks[place]], one
        masks[place], known_fits[place] = torch.ones_like(sources[place], dtype=torch.bool), None
    known = [data.weights[:, node] > 0 for node in gated]
    dependence = Dependence(block, train.series)
    common = common_gates(regressions, masks, known, dependence, fits=known_fits, intervals=intervals)
    shared, together = with_common_gates(ExplainedGates(probs, low, high, p_values, nats), common, gated, sources)
    probs, low, high, p_values, nats = shared
    few = int((learned.any(1) & ~fitted).sum())
    fits = [one.fit for one in nodes]
    fewer = (weights != every_row.weights).any(0)
    for some in data.chunks():  # forecasts are made from unusual inputs too
        some = [node for node in some if fewer[node]]
        again = fit_gated([every_row.node(node) for node in some], [fits[node] for node in some])
        for node, fit in zip(some, again, strict=True):
            fits[node] = fit
    for number, gate in enumerate(common, 1):
        for node in {gated[place] for place, _ in gate.edges}:
            same = (together[node, data.sources(node)] == number).nonzero()[:, 0].tolist()
            fits[node] = fit_together(every_row.node(node), same, probs[node, data.sources(node)])
    parameters = data.parameters(fits, probs, fitted)
    acts = (judged & (probs == 1)).to(present.device)
    if always:
        low, high = torch.where(learned, 0.0, low), torch.where(learned, 1.0, high)
    probs, low, high, p_values, nats, together = (
        one.to(present) for one in (probs, low, high, p_values, nats, together)
    )
    unknown, edges = learned.new_zeros(0, *learned.shape), torch.ones(int(learned.sum()))  # moments are not used
    return Acting(
        probs,
        acts,
        learned.to(present.device),
        ExplainedGates(probs, low, high, p_values, nats),
        together,
        p_values,
        RatioErrors(0 * edges, edges, edges, 0 * edges, edges, 0 * edges),
        edges,
        torch.zeros_like(learned, device=present.device),
        dependence.degrees(len(train)),
        unknown.to(present),
        unknown.to(present),
        parameters,
        [FEW_ROWS.format(rows=len(train), nodes=few)] if few else [],
    )


def _alone(gates: NodeGates, mask: Bool[Tensor, " source"]) -> ExplainedGates:
    """Return the results of the likelihood without growing noise."""
    p_values = torch.special.ndtr(-gates.ratios.clamp_min(0).sqrt()).masked_fill(~mask, torch.nan)
    nats = torch.full_like(p_values, torch.nan)
    return ExplainedGates(gates.fit.edge_probs, gates.low, gates.high, p_values, nats)
