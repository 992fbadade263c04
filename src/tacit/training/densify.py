"""Conversion from a table of candidates to all pairs of nodes: the same model, with all other edges fixed at 0."""

import copy
from dataclasses import replace

import torch
from torch import Tensor, nn

from tacit.graph import BernoulliGraph, CandidateEdges, EdgePrior, GraphDistribution
from tacit.predictors import edge_buffers_of, edge_parameters_of
from tacit.training.model import LatentGraphModel
from tacit.training.result import FitResult


def in_matrix(values: Tensor, candidates: CandidateEdges, fill: float = 0.0, axis: int = 0) -> Tensor:
    """Convert values with one entry per slot, axes ``axis`` and the next, to one entry per pair of nodes.

    >>> table = CandidateEdges.from_edges(torch.tensor([1, 2]), torch.tensor([0, 0]), num_nodes=3)
    >>> in_matrix(torch.tensor([[0.2, 0.3], [0.0, 0.0], [0.0, 0.0]]), table, fill=-1).tolist()[0]
    [-1.0, 0.20000000298023224, 0.30000001192092896]
    """
    size, (source, target) = candidates.num_nodes, candidates.to(values.device).edges()
    listed = values.flatten(axis, axis + 1).index_select(
        axis, candidates.used.flatten().nonzero()[:, 0].to(values.device)
    )
    before, after = listed.shape[:axis], listed.shape[axis + 1 :]
    full = listed.new_full((*before, size * size, *after), fill)
    return full.index_copy(axis, target * size + source, listed).view(*before, size, size, *after)


def densify(model: LatentGraphModel) -> LatentGraphModel:
    """Return a copy of a model over all pairs of nodes; a model without a table is returned unchanged."""
    candidates = model.graph.candidates
    if candidates is None:
        return model
    full = copy.deepcopy(model)
    full.graph = _dense_graph(model.graph, candidates)
    for module in full.predictor.modules():
        for name in edge_parameters_of(module):
            values = module.get_parameter(name)
            setattr(module, name, nn.Parameter(in_matrix(values.detach(), candidates), values.requires_grad))
        for name in edge_buffers_of(module):
            setattr(module, name, in_matrix(module.get_buffer(name), candidates))
    if model.prior is not None and model.prior.probs.ndim:
        edges = None if model.prior.edges is None else in_matrix(model.prior.edges, candidates, fill=False)
        full.prior = EdgePrior(in_matrix(model.prior.probs, candidates, fill=0.5), model.prior.weight, edges)
    return full


def densify_result(result: FitResult) -> FitResult:
    """Convert the result of a fit over a table to one over all pairs of nodes."""
    graph = result.model.graph
    if graph.candidates is None:
        return result
    absent = float(graph.link.raw(torch.zeros(())))
    fills = {f"graph.{graph.link.parameter}": absent}
    fills |= {
        f"predictor.{path}.{name}".replace("..", "."): 0.0
        for path, module in result.model.predictor.named_modules()
        for name in edge_parameters_of(module)
    }
    parameters = {
        name: in_matrix(stack, graph.candidates, fills[name], axis=1) if name in fills else stack
        for name, stack in result.parameters.items()
    }
    return replace(result, model=densify(result.model), parameters=parameters)


def _dense_graph(graph: GraphDistribution, candidates: CandidateEdges) -> BernoulliGraph:
    graph.require_edge_probs("densify")
    fixed, fixed_probs = in_matrix(graph.fixed, candidates, fill=True), in_matrix(graph.fixed_probs, candidates)
    start = torch.where(fixed, fixed_probs, 0.5)
    full = BernoulliGraph(start, fixed, link=graph.link)
    absent = float(graph.link.raw(torch.zeros(())))
    full.raw.data = in_matrix(graph.raw.detach(), candidates, fill=absent)
    full.initial_range, full.initial_spread = graph.initial_range, graph.initial_spread
    return full
