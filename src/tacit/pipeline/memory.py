r"""The memory estimate of a fit, before anything is allocated.

====================  ==================================================================================================
a step of training    :func:`~tacit.graph.step_bytes`, for every replica; $16$ bytes for each weight of each entry if
                      edges have weights; the hidden values of the sources under each graph with two or more layers; a
                      number for each pair of graphs and node if the loss compares graphs
a score               $S' = 200$ graphs that the pairs share, with their uniforms: $9 S'$ bytes an entry
a record, all pairs   a row of ``edges.csv`` is about 800 bytes while it is read
====================  ==================================================================================================

An entry is a pair of nodes, or a slot of the table of candidates. The largest of the three must fit in memory.
"""

import torch

from tacit.assessment.evaluation import NUM_GRAPHS
from tacit.config import FitConfig
from tacit.graph import EdgeRules, require_memory, step_bytes
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.layout import MOST_EXPANDED
from tacit.pipeline.parts import OwnParts

NUMBER_BYTES = 4
PAIR_BYTES, EVIDENCE_BYTES = 800, 100  # for each pair of nodes, for each candidate
FEWER = "lower batch_size or replicas in [training], num_graphs in [model] or bootstrap_replicas in [assessment]"


def require_memory_for(
    config: FitConfig, dataset: Dataset, rules: EdgeRules, own: OwnParts, device: torch.device
) -> None:
    """Raise :class:`InputError` if training, scoring or writing would need more memory than is free."""
    nodes, table = len(dataset.nodes), config.graph.layout == "table"
    rows, columns = rules.candidate_edges.sources.shape if table else (nodes, nodes)
    training = training_bytes(config, dataset, own, rows, columns, config.training.replicas or 1)
    if config.assessment.replicas and nodes <= MOST_EXPANDED:  # standard errors: over all pairs, all replicas at once
        at_once = max(config.assessment.replicas, config.assessment.starts or 0)
        training = max(training, training_bytes(config, dataset, own, nodes, nodes, at_once))
    needed = max(training, 9 * NUM_GRAPHS * rows * columns, 0 if table else PAIR_BYTES * nodes**2)
    _require(needed, rules, device, table=table)


def require_memory_for_evidence(rules: EdgeRules, device: torch.device, *, table: bool) -> None:
    """Raise :class:`InputError` if there are too many edges to test."""
    edges = rules.candidate_edges.num_edges if table else len(rules.nodes) ** 2
    _require(EVIDENCE_BYTES * edges if table else PAIR_BYTES * edges, rules, device, table=table)


def _require(needed: int, rules: EdgeRules, device: torch.device, *, table: bool) -> None:
    nodes = len(rules.nodes)
    if table:
        what = f"a fit over {rules.candidate_edges.num_edges:,} candidates of {nodes:,} nodes"
        remedy = f"name fewer candidates, or {FEWER}"
    else:
        what = f"a fit over all pairs of {nodes:,} nodes"
        remedy = f"limit the sources of each node (k_nearest, k_correlated or candidates in [graph]), or {FEWER}"
    require_memory(needed, device, what, remedy)


def training_bytes(config: FitConfig, dataset: Dataset, own: OwnParts, rows: int, columns: int, replicas: int) -> int:
    """Return the memory for training ``replicas`` replicas at once, with a matrix or table of this size."""
    batch = min(config.training.batch_size or 1, len(dataset.split.train))
    kind, graphs, sizes = own.kind(config.predictor), config.model.num_graphs, dataset.preparation.sizes
    channels = kind.edge_channels(sizes, config.predictor)
    step = step_bytes(
        rows=rows,
        columns=columns,
        num_graphs=graphs,
        draws=1 if config.model.share_graphs else batch,
        batch=batch,
        nodes=sizes.num_nodes,
        channels=channels,
        number_bytes=NUMBER_BYTES,
    )
    loss = own.loss or config.model.build_loss(dataset.split.train.targets)
    if loss.pairwise and loss.scope == "node":
        step += NUMBER_BYTES * batch * graphs**2 * sizes.num_nodes  # every two graphs are compared
    weights = kind.edge_weights(sizes)
    if weights:
        step += 4 * NUMBER_BYTES * rows * columns * weights
    elif config.graph.layout == "table" and kind.num_layers(config.predictor) > 1:
        step += 2 * NUMBER_BYTES * rows * columns * channels * batch * graphs
    return replicas * step
