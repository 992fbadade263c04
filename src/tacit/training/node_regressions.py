"""Conversion between a model with its pairs and one regression with exact likelihood per node."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.data import Pairs
from tacit.local import GatedFit, GatedRegression, fit_gated
from tacit.observation import ObservationModel
from tacit.predictors import GraphFilter, LinearParts
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training.model import LatentGraphModel


def has_gated_weights(model: LatentGraphModel) -> bool:
    """Return whether each node is a linear regression whose coefficients are multiplied by random gates.

    This is so for a predictor that is linear in its inputs, with one weight per edge and lag, one target per node, a
    gate for each ordered pair of different nodes, and no prior on the gates.
    """
    graph = model.graph
    return bool(
        isinstance(model.predictor, GraphFilter)
        and model.predictor.activation == "linear"
        and all(value.requires_grad for value in model.predictor.parameters())
        and model.observation.channels == 1
        and graph.has_edge_probs
        and graph.candidates is None
        and not graph.symmetric
        and not graph.learned.diagonal().any()
        and model.prior is None
    )


def has_likelihood(model: LatentGraphModel) -> bool:
    """Return whether the likelihood of each node is a sum over the states of its gates."""
    return has_gated_weights(model) and model.observation.has_likelihood and not model.observation.joint


MOST_NUMBERS = 2**24  # of the regressions of some nodes, which are fitted together


@dataclass(frozen=True, eq=False)
class NodeRegressions:
    """The data of the regressions, the possible edges, and the inputs that they may use (None for all)."""

    parts: LinearParts
    targets: Float[Tensor, "pair node"]
    weights: Float[Tensor, "pair node"]
    present: EdgeMask
    allowed: Float[Tensor, "node node sent"] | None
    observation: ObservationModel

    @classmethod
    def of(cls, model: LatentGraphModel, pairs: Pairs) -> "NodeRegressions":
        """Return the regressions of a model for which :func:`has_likelihood` is true."""
        graph, predictor = model.graph, model.predictor
        assert isinstance(predictor, GraphFilter)
        pairs = pairs.to("cpu")
        observed = torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed
        targets = torch.where(observed > 0, pairs.targets, 0.0)
        parts = predictor.linear_parts(pairs.inputs, targets)
        assert parts is not None
        present = graph.learned | (graph.edge_probs.detach() > 0)
        allowed = predictor.allowed_columns
        return cls(
            LinearParts(*(part.double() for part in parts)),
            targets[..., 0].double(),
            observed[..., 0].double(),
            present.cpu().clone().fill_diagonal_(False),
            None if allowed is None else allowed.cpu().double(),
            model.observation,
        )

    def sources(self, node: int) -> Int[Tensor, " source"]:
        """Return the sources that a node can read."""
        return self.present[node].nonzero()[:, 0]

    def chunks(self) -> list[list[int]]:
        """Return the nodes in groups whose regressions fit into memory together."""
        sent = self.parts.sent.shape[2]
        sizes = (self.parts.own.shape[2] + 1 + self.present.sum(1) * sent) * len(self.targets)
        groups, total = [list[int]()], 0
        for node, size in enumerate(sizes.tolist()):
            total += size
            if groups[-1] and total > MOST_NUMBERS:
                groups.append([])
                total = size
            groups[-1].append(node)
        return groups

    def node(self, node: int, features: Float[Tensor, "pair source feature"] | None = None) -> GatedRegression:
        """Return the regression of one node, over the rows in which its target is observed.

        ``features`` of the pairs and the node's sources: the probabilities may depend on them.
        """
        known, sources = self.weights[:, node] > 0, self.sources(node)
        own = self.parts.own[known, node]
        sent = self.parts.sent[known][:, sources].transpose(0, 1)  # (source, pair, lag)
        if self.allowed is not None:
            sent = sent * self.allowed[node, sources][:, None]  # a column of zeros gets the weight 0
        return GatedRegression(
            torch.cat([own, torch.ones_like(own[:, :1])], 1),
            sent,
            self.parts.offset[known, node, 0],
            self.targets[known, node],
            self.weights[known, node],
            self.observation.chosen([node]).cpu().double(),
            None if features is None else features[known].double(),
        )

    def start(self, model: LatentGraphModel, node: int) -> GatedFit:
        """Return the fit of a node at the model's current parameters; edges with a probability below 1 are gated."""
        graph, predictor, sources = model.graph, model.predictor, self.sources(node)
        assert isinstance(predictor, GraphFilter)
        own, edges, bias, probs = (
            value.detach().cpu().double()
            for value in (predictor.own, predictor.edge_weights, predictor.bias, graph.edge_probs)
        )
        probs = probs[node, sources]
        return GatedFit(
            torch.cat([own[node, :, 0], bias[node]]),
            edges[node, sources, :, 0],
            torch.logit(probs.clamp(1e-4, 1 - 1e-4)),
            graph.learned.cpu()[node, sources] & (probs > 0) & (probs < 1),
            self.observation.chosen([node]).cpu().double(),
        )

    def matrix(self, values: list[Float[Tensor, " _"]], rest: EdgeProbs) -> EdgeProbs:
        """Return numbers of the sources of each node as a matrix, filled with ``rest`` elsewhere."""
        found = rest.detach().cpu().double().clone()
        for node, one in enumerate(values):
            found[node, self.sources(node)] = one
        return found


def fitted_by_likelihood(
    model: LatentGraphModel,
    data: NodeRegressions,
    fits: list[GatedFit],
    edge_probs: EdgeProbs,
    fitted: Bool[Tensor, " node"],
) -> dict[str, Tensor]:
    """Return the parameters of the model from these fits, by name; nodes that are not ``fitted`` are unchanged."""
    predictor = model.predictor
    assert isinstance(predictor, GraphFilter)
    weights = torch.zeros_like(predictor.edge_weights, device="cpu", dtype=torch.float64)
    for node, fit in enumerate(fits):
        weights[node, data.sources(node)] = fit.edges[..., None]
    noise = model.observation.joined(
        [
            fit.observation if known else model.observation.chosen([node]).cpu().double()
            for node, (fit, known) in enumerate(zip(fits, fitted.tolist(), strict=True))
        ]
    )
    return filter_parameters(model, torch.stack([fit.own for fit in fits]), weights, edge_probs, noise, fitted)


def filter_parameters(
    model: LatentGraphModel,
    own: Float[Tensor, "node column"],
    weights: Float[Tensor, "node node lag one"],
    edge_probs: EdgeProbs,
    noise: Mapping[str, Tensor],
    fitted: Bool[Tensor, " node"],
) -> dict[str, Tensor]:
    """Return the parameters of a linear filter by name; weights and edges of nodes not ``fitted`` are unchanged.

    The last column of ``own`` is the constant; ``noise`` are the parameters of the observation model, of all nodes.
    """
    predictor, graph = model.predictor, model.graph
    assert isinstance(predictor, GraphFilter)
    filled = predictor.with_weights(own[:, :-1, None], weights, own[:, -1:])
    raw = graph.raw.detach()
    found = {
        f"graph.{graph.link.parameter}": torch.where(graph.learned, graph.link.raw(edge_probs.to(raw)), raw),
        **{f"predictor.{name}": value.detach() for name, value in filled.named_parameters()},
        **{f"observation.{name}": value.detach() for name, value in noise.items()},
    }
    present = model.state_dict()

    def kept(name: str, value: Tensor) -> Tensor:
        if name.startswith("observation."):
            return value.to(present[name])
        value, rows = value.to(present[name]), fitted.to(present[name].device)
        return torch.where(rows.view(-1, *[1] * (value.ndim - 1)), value, present[name])

    return {name: kept(name, value) for name, value in found.items()}


def start_at_likelihood(model: LatentGraphModel, train: Pairs) -> bool:
    r"""Set a linear filter to the maximum of the likelihood in which all edges always act.

    The weights of an edge are divided by $\theta$, so that its mean effect equals that of the regression.
    """
    data = NodeRegressions.of(model, train)
    fits = list[GatedFit]()
    for some in data.chunks():
        regressions = [data.node(node) for node in some]
        fits.extend(fit_gated(regressions, [one.start() for one in regressions]))
    probs = model.graph.edge_probs.detach()
    every = torch.ones(len(fits), dtype=torch.bool)
    found = fitted_by_likelihood(model, data, fits, probs, every)
    divide = torch.where(probs > 0, 1 / probs.clamp_min(1e-6), 0.0)
    found["predictor.edge_weights"] = found["predictor.edge_weights"] * divide[..., None, None].to(
        found["predictor.edge_weights"]
    )
    model.load_state_dict({name: value for name, value in found.items() if not name.startswith("graph.")}, strict=False)
    return True
