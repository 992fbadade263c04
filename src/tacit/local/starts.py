r"""Warm starts: initial values from a ridge regression.

Joint training of graph and predictor can end in a poor local minimum, such as the complement of the graph with flipped
signs of the filter. A ridge regression has a single minimum. Its largest coefficients determine the initial edges:

$$\theta_{ij} = \begin{cases} \text{high} & \text{if } |w_{ij}| \text{ is in the top share off the diagonal} \\
\text{low} & \text{else} \end{cases}$$

No edge starts at 0 or 1, because it could not change from there. The regressions are over all pairs of nodes, or over a
table of candidates.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tacit.data import RIDGE_PENALTIES, Pairs
from tacit.errors import require
from tacit.graph import AllPairs, CandidateEdges, GraphDistribution, Layout
from tacit.local.batch import fit_gated
from tacit.local.model import LocalModel, has_likelihood
from tacit.local.ridge import LocalRidge, choose_penalty, is_affordable, local_ridge
from tacit.predictors import GraphFilter
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel

# Measured on GPVAR, where 11% of the pairs are edges: training from here found the true graph.
TOP, HIGH, LOW = 0.15, 0.5, 0.03
TINY = 1e-30
MANY = 20  # pairs per column: one penalty for all nodes then costs some more than it gains others
LATER_SHARE = 0.2  # share of the pairs, the last ones, on which the penalty is chosen


def start_ridge(
    pairs: Pairs,
    predictor: GraphFilter,
    layout: Layout | None = None,
    lags: int | None = None,
    *,
    candidates: CandidateEdges | None = None,
) -> LocalRidge:
    """Return the regressions on a node's own inputs and on those that its candidates send, over all pairs.

    Numbers of edges are in the ``layout`` of the graph, by default all pairs of nodes; its edges are the candidates
    unless others are given. With many pairs per column this is least squares; otherwise the penalty is chosen on the
    last pairs. In-sample residuals are too small, so ``sigmas`` are scaled up to the errors on the last pairs. Only
    ``lags`` newest steps are used, by default those that the time limit allows, and the weights of older steps are 0.

    >>> inputs = torch.randn(60, 3, 1, generator=torch.Generator().manual_seed(0))
    >>> found = start_ridge(Pairs(inputs, inputs[:, [2, 1, 2]]), GraphFilter(3, 1, 1))  # 0 reads 2
    >>> edge_start(found).gt(0.4).nonzero().tolist()
    [[0, 2]]
    """
    layout = layout or AllPairs(pairs.num_nodes, pairs.inputs.device)
    candidates = candidates or layout.others
    window, features = predictor.layout.window, predictor.layout.num_features
    steps = lags or max(1, regression_lags(predictor, candidates, pairs))
    lagged, older = steps * predictor.sent_features, window - steps
    pairs, own, sent = _own_and_sent(pairs, predictor, steps)
    allowed = predictor.allowed_columns
    if allowed is not None:  # which of the newest inputs each slot may use
        newest = pairs.inputs.shape[2] if sent is None else len(sent)
        allowed = layout.to_table(allowed, candidates, fill=1.0)[:, :, allowed.shape[2] - newest :]
    widest = int(torch.bincount(candidates.edges()[1], minlength=candidates.num_nodes).max())
    columns = predictor.layout.known + steps * features + widest * lagged
    counts = len(pairs) if pairs.observed is None else int(pairs.observed.sum(0).min())
    penalties = RIDGE_PENALTIES[:1] if counts >= MANY * columns else RIDGE_PENALTIES
    cut = len(pairs) - max(1, round(LATER_SHARE * len(pairs)))  # the penalty is chosen on the last pairs
    require(cut >= 2, f"pairs must have at least 3 rows for a regression, got {len(pairs)}; pass more pairs")
    later = choose_penalty(pairs[:cut], pairs[cut:], candidates, penalties, allowed, own, sent)
    found = local_ridge(pairs, pairs, candidates, penalties=[later.penalty], allowed=allowed, own=own, sent=sent)
    left = found.sigmas[later.nodes].square().mean()
    more = (later.sigmas.square().mean() / left.clamp_min(TINY)).sqrt()
    edges = nn.functional.pad(found.edges, (0, 0, older * predictor.sent_features, 0))
    return replace(
        found,
        own=nn.functional.pad(found.own, (0, 0, older * features, 0)),
        edges=layout.from_table(edges, candidates),
        edge_scores=layout.from_table(found.edge_scores, candidates),
        sigmas=found.sigmas * more.clamp_min(1.0),
    )


def edge_start(found: LocalRidge, layout: Layout | None = None) -> EdgeProbs:
    """Return initial edge probabilities: high for the largest weights, low for the others, 0 where no edge is possible.

    A missed edge can rise from low, while an edge without an effect stays at its initial value. Pass the result to
    :meth:`~tacit.graph.BernoulliGraph.start_around`, with a spread so that replicas differ.

    >>> inputs = torch.randn(60, 3, 1, generator=torch.Generator().manual_seed(0))
    >>> table = CandidateEdges.from_edges(torch.tensor([1, 2, 0, 0]), torch.tensor([0, 0, 1, 2]), num_nodes=3)
    >>> pairs = Pairs(inputs, inputs[:, [2, 1, 2]])  # 0 reads 2, the others themselves
    >>> probs = edge_start(start_ridge(pairs, GraphFilter(3, 1, 1, candidates=table), table), table)
    >>> [round(prob, 2) for prob in probs[0].tolist()]
    [0.03, 0.5]
    """
    scores = found.edge_scores
    others = (layout or AllPairs(len(scores))).between.to(scores.device)
    ranked = scores[others].sort(descending=True).values
    if not len(ranked):
        return torch.zeros_like(scores)
    chosen = scores >= ranked[max(0, round(TOP * len(ranked)) - 1)]
    return torch.where(chosen, HIGH, LOW).to(scores) * others


def filter_start(
    found: LocalRidge, predictor: GraphFilter, possible: EdgeMask | None = None, *, jitter: float = 0.0
) -> GraphFilter:
    r"""Return a linear filter that starts at regressions, with weights 0 of edges that are not ``possible``.

    With every edge present the prediction is that of the regressions. Each replica adds noise ``jitter``, see
    :meth:`GraphFilter.with_weights`.
    """
    require(
        predictor.activation == "linear",
        f"predictor must have activation 'linear', got '{predictor.activation}'; use warm_start=False",
    )
    edges = found.edges if possible is None else found.edges * possible[:, :, None, None].to(found.edges)
    return predictor.with_weights(_without_residual(found.own, predictor), edges, found.intercepts, jitter=jitter)


def start_at_regression(model: LatentGraphModel, train: Pairs) -> bool:
    r"""Set a linear filter to regressions on the possible edges; return whether this was done.

    With $w_{ij}$ the weights of the regression of node $i$ on its own inputs and its possible sources, an edge starts
    at $w_{ij} / \theta_{ij}$, so that the mean over graphs equals the regression. For noise without a moment estimate
    it is the maximum of the likelihood in which all edges always act; otherwise it is a ridge regression, the noise
    starts at the residual standard deviation, and weights of steps older than :func:`regression_lags` start at 0.
    """
    predictor, probs = model.predictor, model.graph.edge_probs.detach()
    if has_likelihood(model) and not model.observation.by_moments:
        data, fits = LocalModel.of(model, train.to("cpu")), []
        for some in data.chunks():
            regressions = [data.node(node) for node in some]
            fits.extend(fit_gated(regressions, [one.start() for one in regressions]))
        state = data.parameters(fits, probs, torch.ones(len(fits), dtype=torch.bool))
        model.load_state_dict({name: new for name, new in state.items() if not name.startswith("graph.")}, strict=False)
        return True
    steps = regression_steps(predictor, model.graph, train)
    if not steps or not isinstance(predictor, GraphFilter):
        return False
    layout = model.graph.layout
    found = start_ridge(train, predictor, layout, steps, candidates=layout.among(probs > 0))
    share = torch.where(probs > 0, probs, 1.0)[:, :, None, None].to(found.edges)
    predictor.load_state_dict(filter_start(replace(found, edges=found.edges / share), predictor).state_dict())
    noise = model.observation.with_deviations(found.sigmas.to(predictor.edge_weights))
    model.observation.load_state_dict(noise, strict=False)
    return True


def regression_steps(predictor: nn.Module, graph: GraphDistribution, train: Pairs) -> int:
    """Return how many of the newest steps :func:`start_at_regression` uses; 0 if it does nothing."""
    if not isinstance(predictor, GraphFilter) or predictor.activation != "linear" or not graph.has_all_pairs:
        return 0
    return regression_lags(predictor, graph.layout.among(graph.edge_probs.detach() > 0), train)


def regression_lags(predictor: GraphFilter, candidates: CandidateEdges, train: Pairs) -> int:
    """Return how many of the newest steps the regressions can use within the time limit."""
    layout, features = predictor.layout, predictor.sent_features
    steps = range(layout.window, 0, -1)
    return next(
        (
            lags
            for lags in steps
            if is_affordable(candidates, lags * features, train, lags * layout.num_features + layout.known)
        ),
        0,
    )


def steps_read(model: LatentGraphModel, train: Pairs) -> tuple[int, int]:
    """Return the number of steps that :func:`start_at_regression` uses (0 if none), and that of the window."""
    steps = regression_steps(model.predictor, model.graph, train)
    return steps, model.predictor.layout.window if isinstance(model.predictor, GraphFilter) else 0


def _own_and_sent(
    pairs: Pairs, predictor: GraphFilter, steps: int
) -> tuple[Pairs, Int[Tensor, " own"] | None, Int[Tensor, " sent"] | None]:
    """Return pairs with the inputs of the newest steps, the columns that a node uses itself, and those that it sends.

    Both are None if they are all columns. If edges may act within a step, the targets are appended as inputs, which a
    node does not use of itself. If nodes have levels, the targets are changes from the last value.
    """
    layout, observed = predictor.layout, torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed
    inputs = predictor.read(pairs.inputs)[:, :, (layout.window - steps) * layout.num_features :]
    columns = torch.arange(inputs.shape[2], device=inputs.device)
    lags = columns[: steps * layout.num_features].view(steps, layout.num_features)
    sent = lags[:, : predictor.sent_features].flatten()
    parts = predictor.linear_parts(pairs.inputs, pairs.targets * observed)
    assert parts is not None  # the filter is linear
    more = parts.sent[:, :, layout.window * predictor.sent_features :]
    sent = torch.cat([sent, len(columns) + torch.arange(more.shape[2], device=inputs.device)])
    known = None if pairs.observed is None else predictor.complete(observed)
    targets = pairs.targets - parts.offset if layout.levels else pairs.targets
    made = Pairs(torch.cat([inputs, more], 2), targets, known)
    return (made, None, None) if torch.equal(columns, sent) else (made, columns, sent)


def _without_residual(own: Float[Tensor, "node in_channel channel"], predictor: GraphFilter) -> Tensor:
    """Return the weights of the own path: the newest value is added to the filter's output, so it is subtracted."""
    if not predictor.residual or predictor.layout.levels:
        return own
    layout, own = predictor.layout, own.clone()
    channels = torch.arange(layout.out_channels, device=own.device)
    own[:, (layout.window - 1) * layout.num_features + channels, channels] -= 1
    return own
