"""Checks that losses, estimators, credit and the number of graphs can be combined."""

from typing import Literal, get_args

from torch import nn

from tacit.errors import InputError, require
from tacit.estimators.credit import Credit, GlobalCredit, OwnRowCredit, ReceptiveFieldCredit
from tacit.estimators.protocol import Estimator
from tacit.graph import GraphDistribution
from tacit.losses import Loss
from tacit.predictors import num_hops_of

CreditName = Literal["auto", "global", "receptive_field", "own_row"]
WEIGHING = "ScoreFunction() or DisARM()"


def require_combination(
    loss: Loss,
    estimator: Estimator,
    num_graphs: int,
    credit: CreditName,
    predictor: nn.Module,
    graph: GraphDistribution,
) -> None:
    """Raise :class:`InputError` if a loss, an estimator and a graph distribution cannot be combined."""
    require(
        credit in get_args(CreditName),
        f"credit must be one of {', '.join(get_args(CreditName))}, got '{credit}'; use 'auto'",
    )
    require(
        graph.has_edge_probs or not estimator.needs_edge_probs,
        f"{type(estimator).__name__} requires a graph with independent edges, got {type(graph).__name__}; use "
        "ScoreFunction(), which accepts any graph",
    )
    names = f"{type(loss).__name__} with {type(estimator).__name__}"
    if not estimator.takes_credit:
        require(
            credit == "auto",
            f"credit='{credit}' requires an estimator that weighs graphs by their cost, got "
            f"{type(estimator).__name__}; use {WEIGHING}, or credit='auto'",
        )
        require(
            loss.credit is None,
            f"{names} cannot be combined: the loss requires credit, and the estimator does not use it; "
            f"use {WEIGHING}, or the loss ExpectedError",
        )
    own = loss.credit
    require(
        own is None or credit in ("auto", own),
        f"{type(loss).__name__} requires credit='{own}', got '{credit}'; use credit='auto', or the loss ExpectedError",
    )
    require(
        credit != "own_row" or own is not None or num_hops_of(predictor) == 1,
        f"credit='own_row' is exact only for one hop, and {type(predictor).__name__} does not declare num_hops=1; use "
        "credit='auto', or the loss NodewiseExpectedError, which requires it",
    )
    size = estimator.group_size
    require(
        size == 1 or loss.in_groups,
        f"{names} cannot be combined: the loss requires independent graphs; use ScoreFunction()",
    )
    needed = loss.min_graphs if size == 1 else size * (1 + loss.pairwise)
    reason = (
        f"baseline '{loss.baseline}'" if size == 1 else f"{type(estimator).__name__}, which draws {size} at a time,"
    )
    other = ", or use loss ExpectedError" if num_graphs >= 1 else ""  # with the given number of graphs
    if num_graphs >= 1 + loss.pairwise:
        other = ", or use baseline='none' with ScoreFunction()"
    require(
        num_graphs >= needed,
        f"{type(loss).__name__} with {reason} requires num_graphs >= {needed}, got {num_graphs}; raise num_graphs"
        f"{other}",
    )
    require(
        num_graphs % size == 0,
        f"{type(estimator).__name__} draws {size} graphs at a time, so num_graphs must be a multiple of {size}, got "
        f"{num_graphs}; use {num_graphs + 1} or ScoreFunction()",
    )


def choose_credit(credit: CreditName, loss: Loss, predictor: nn.Module, graph: GraphDistribution) -> Credit:
    """Return the credit with a given name; "auto" is the most local exact one, or the one that the loss requires."""
    num_hops, chosen = num_hops_of(predictor), str(credit)
    if chosen == "auto":
        local = loss.scope == "node" and num_hops is not None and graph.independent_rows
        chosen = loss.credit or ("receptive_field" if local else "global")
    if chosen == "global":
        return GlobalCredit()
    if loss.scope != "node":
        raise InputError(
            f"credit='{chosen}' requires a loss of node scope, got joint scope; use scope='node' or credit='global'"
        )
    require(
        graph.independent_rows,
        f"credit='{chosen}' requires a graph whose rows are independent, got {type(graph).__name__}; use "
        "credit='global'",
    )
    if chosen == "own_row":
        return OwnRowCredit()
    if num_hops is None:
        raise InputError(
            f"credit='receptive_field' requires a predictor that declares num_hops, got {type(predictor).__name__}; "
            "add num_hops if its output is local, or use credit='global'"
        )
    require(
        num_hops - 1 <= graph.layout.longest_walk,
        f"credit by receptive field over a table of candidates requires num_hops <= 2, got {num_hops} of "
        f"{type(predictor).__name__}; use fewer hops, credit='global', or a graph over all pairs of nodes",
    )
    return ReceptiveFieldCredit(num_hops)
