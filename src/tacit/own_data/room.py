r"""Is there memory for a fit? Asked before any of it is taken.

====================  ==================================================================================================
a step of training    :func:`~tacit.graph.step_bytes`, for every replica; with a filter $16$ bytes more for each weight
                      of each entry, and with two layers or more what senders hold under each graph; where every two
                      graphs are compared at each node, a number for each
a score               $S' = 200$ graphs that the pairs share, with their uniforms: $9 S'$ bytes an entry
a record, all pairs   a row of ``edges.csv`` is about 800 bytes while it is read
====================  ==================================================================================================

An entry is a pair of nodes, or a slot of the table of candidates. The largest of the three has to fit.
"""

import torch

from tacit.config import FitConfig
from tacit.evaluation.forecasts import NUM_GRAPHS
from tacit.graph import require_memory, step_bytes
from tacit.own_data.building import sent_lags
from tacit.own_data.layout import MOST_EXPANDED
from tacit.own_data.problem import Problem
from tacit.registry import LOSSES

NUMBER_BYTES = 4
FEWER = "lower batch_size or replicas in [training], num_graphs in [model] or std_errors in [trust]"


def require_room(config: FitConfig, problem: Problem, device: torch.device) -> None:
    """Raise :class:`InputError` if training, scoring or writing would need more memory than is free."""
    nodes, table = len(problem.nodes), config.graph.layout == "table"
    rows, slots = problem.rules.slots.senders.shape if table else (nodes, nodes)
    training = training_bytes(config, problem, rows, slots, config.training.replicas or 1)
    if config.trust.replicas and nodes <= MOST_EXPANDED:  # standard errors come over all pairs, all replicas at once
        training = max(training, training_bytes(config, problem, nodes, nodes, config.trust.replicas))
    needed = max(training, 9 * NUM_GRAPHS * rows * slots, 0 if table else 800 * nodes**2)
    if table:
        what = f"a fit over {problem.rules.slots.num_edges:,} candidates of {nodes:,} nodes"
        remedy = f"name fewer candidates, or {FEWER}"
    else:
        what = f"a fit over all pairs of {nodes:,} nodes"
        remedy = f"let each node read few others (nearest, correlated or candidates in [graph]), or {FEWER}"
    require_memory(needed, device, what, remedy)


def training_bytes(config: FitConfig, problem: Problem, rows: int, slots: int, replicas: int) -> int:
    """Return what training so many replicas at once needs, over a matrix or table of this size."""
    batch, predictor = min(config.training.batch_size or 1, len(problem.split.train)), config.predictor
    linear, graphs = predictor.kind == "filter", config.model.num_graphs
    channels = sent_lags(problem.preparation.sizes) if linear else predictor.hidden
    step = step_bytes(
        rows=rows,
        slots=slots,
        num_graphs=graphs,
        draws=1 if config.model.share_graphs else batch,
        batch=batch,
        nodes=len(problem.nodes),
        channels=channels,
        number_bytes=NUMBER_BYTES,
    )
    if LOSSES[config.model.loss].compares and config.model.scope == "node":
        step += NUMBER_BYTES * batch * graphs**2 * len(problem.nodes)  # every two graphs are compared
    entries = rows * slots * channels
    if linear:
        step += 4 * NUMBER_BYTES * entries * problem.preparation.sizes[2]
    elif config.graph.layout == "table" and (predictor.layers > 1 or predictor.kind == "convolution"):
        step += 2 * NUMBER_BYTES * entries * batch * graphs
    return replicas * step
