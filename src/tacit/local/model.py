r"""All nodes of a table as regressions of single nodes: the linear filter of a model, its pairs, and its parameters.

$$y_i = o_i + b_i + u_i^\top z_i + \sum_j A_{ij}\, w_{ij}^\top x_j + \varepsilon_i, \qquad
A_{ij} \sim \mathrm{Bernoulli}(\theta_{ij})$$

The columns $z_i$ of a node are always in: its own past and the background. The sources $x_j$ have one or several
columns. A node shares no parameter with others, so that each is fitted by itself, and all in one batched program. There
are two objectives on the same data: the exact likelihood (:mod:`tacit.local.batch`), for any observation model, and
mean and variance (:mod:`tacit.local.moments`), which do not need the shape of the noise.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.data import Pairs
from tacit.graph import GraphDistribution
from tacit.local.regression import GatedFit, GatedRegression
from tacit.observation import GaussianNoise
from tacit.predictors import GraphFilter, LinearParts
from tacit.shapes import EdgeMask, EdgeProbs
from tacit.training import LatentGraphModel

MOST_NUMBERS = 2**24  # of the regressions of some nodes, which are fitted together


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
        and graph.has_all_pairs
        and not graph.symmetric
        and not graph.learned.diagonal().any()
        and model.prior is None
    )


def has_likelihood(model: LatentGraphModel) -> bool:
    """Return whether the likelihood of each node is a sum over the states of its gates."""
    return has_gated_weights(model) and model.observation.has_likelihood and not model.observation.joint


def has_moment_estimate(model: LatentGraphModel) -> bool:
    """Return whether mean and variance of the targets determine how often edges act.

    They do for gated weights and additive noise with its own variance.
    """
    return has_gated_weights(model) and model.observation.by_moments


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The regressions of a model for which :func:`has_gated_weights` is true, on the device of its pairs.

    If edges act within a step, the target of a source is one more input, and a pair counts for a node if the targets of
    all its sources within the step are observed.

    ``present``  the possible edges
    ``allowed``  the inputs that they may use; None for all
    """

    model: LatentGraphModel
    parts: LinearParts
    targets: Float[Tensor, "pair node"]
    weights: Float[Tensor, "pair node"]
    present: EdgeMask
    allowed: Float[Tensor, "node node sent"] | None

    @classmethod
    def of(cls, model: LatentGraphModel, pairs: Pairs) -> "LocalModel":
        """Return the regressions of a model on some pairs."""
        graph, predictor = model.graph, model.predictor
        assert isinstance(predictor, GraphFilter)
        observed = torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed
        targets = torch.where(observed > 0, pairs.targets, 0.0)
        parts = predictor.linear_parts(pairs.inputs, targets)
        assert parts is not None
        present, allowed = graph.learned | (graph.edge_probs.detach() > 0), predictor.allowed_columns
        return cls(
            model,
            LinearParts(*(part.double() for part in parts)),
            targets[..., 0].double(),
            predictor.complete(observed)[..., 0].double(),
            present.to(targets.device).clone().fill_diagonal_(False),
            None if allowed is None else allowed.to(targets).double(),
        )

    @property
    def always(self) -> EdgeMask | None:
        """The edges that are assumed to act always; None if there are none."""
        assert isinstance(self.model.predictor, GraphFilter)
        return self.model.predictor.always

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

    def node(
        self,
        node: int,
        *,
        rows: Bool[Tensor, " pair"] | None = None,
        features: Float[Tensor, "pair source feature"] | None = None,
        spread: Float[Tensor, "pair size"] | None = None,
    ) -> GatedRegression:
        """Return the regression of one node by its likelihood, over the rows in which its target is observed.

        ``rows``      those that are used; None for all
        ``features``  of the pairs and the node's sources, on which probabilities may depend
        ``spread``    columns of the pairs on which the scale of the noise may depend
        """
        known = self.weights[:, node] > 0
        known = known if rows is None else known & rows.to(known.device)
        observation = self.model.observation.chosen([node]) if has_likelihood(self.model) else GaussianNoise(1)
        own, sent, offset = self._columns(node)
        return GatedRegression(
            own[known].cpu(),
            sent[:, known].cpu(),
            offset[known].cpu(),
            self.targets[known, node].cpu(),
            self.weights[known, node].cpu(),
            observation.cpu().double(),
            None if features is None else features[known].double(),
            None if spread is None else spread[known.cpu()],
        )

    def moments(self, node: int) -> GatedRegression:
        """Return the regression of one node by mean and variance, over all rows.

        ``spread`` are the regressors of the variance of the noise: a constant and the size of the own inputs.
        """
        own, sent, offset = self._columns(node)
        inputs = self.parts.own[:, node]
        spread = [own[:, -1:], inputs.square().mean(1, keepdim=True)]
        if self.model.observation.follows_input:
            spread += [inputs.mean(1, keepdim=True), inputs.abs().mean(1, keepdim=True)]
        weights, noise = self.weights[:, node], GaussianNoise(1)
        return GatedRegression(own, sent, offset, self.targets[:, node], weights, noise, spread=torch.cat(spread, 1))

    def num_moments(self, node: int) -> int:
        """Return the number of coefficients of the mean and of the variance of a node."""
        own, lags, sources = self.parts.own.shape[2], self.parts.sent.shape[2], len(self.sources(node))
        return own + 1 + sources * (lags + 1) + (4 if self.model.observation.follows_input else 2)

    def _columns(
        self, node: int
    ) -> tuple[Float[Tensor, "pair own"], Float[Tensor, "source pair lag"], Float[Tensor, " pair"]]:
        """Return own inputs with a constant, the inputs from each source, and the known part of the output."""
        sources, own = self.sources(node), self.parts.own[:, node]
        sent = self.parts.sent[:, sources].transpose(0, 1)
        if self.allowed is not None:
            sent = sent * self.allowed[node, sources][:, None]  # a column of zeros gets the weight 0
        return torch.cat([own, torch.ones_like(own[:, :1])], 1), sent, self.parts.offset[:, node, 0]

    def start(self, node: int) -> GatedFit:
        """Return the fit of a node at the model's current parameters; edges with a probability below 1 are gated."""
        graph, predictor, sources = self.model.graph, self.model.predictor, self.sources(node).cpu()
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
            self.model.observation.chosen([node]).cpu().double(),
        )

    def matrix(self, values: Sequence[Float[Tensor, " _"]], rest: EdgeProbs) -> EdgeProbs:
        """Return numbers of the sources of each node as a matrix, filled with ``rest`` elsewhere."""
        found = rest.detach().cpu().double().clone()
        for node, one in enumerate(values):
            found[node, self.sources(node).cpu()] = one
        return found

    def parameters(
        self, fits: Sequence[GatedFit], edge_probs: EdgeProbs, fitted: Bool[Tensor, " node"]
    ) -> dict[str, Tensor]:
        """Return the parameters of the model by name, from fits of all nodes.

        The parameters of nodes that are not ``fitted`` do not change.
        """
        observation = self.model.observation
        effects = torch.zeros(*edge_probs.shape, self.parts.sent.shape[2], dtype=torch.float64)
        noise = []
        for node, (fit, known) in enumerate(zip(fits, fitted.tolist(), strict=True)):
            effects[node, self.sources(node).cpu()] = fit.edges * fit.edge_probs[:, None]
            noise.append(fit.observation if known else observation.chosen([node]).cpu().double())
        own = torch.stack([fit.own for fit in fits])
        return self._parameters(own, effects, edge_probs, observation.joined(noise), fitted)

    def with_graph(self, graph: GraphDistribution, parameters: Mapping[str, Tensor]) -> LatentGraphModel:
        """Return a copy of the model with another graph, and these parameters of predictor and noise."""
        new = copy.deepcopy(self.model)
        kept = {name: value for name, value in parameters.items() if not name.startswith("graph.")}
        new.load_state_dict(kept, strict=False)
        new.graph = graph
        return new

    def parameters_by_moments(
        self,
        own: Float[Tensor, "node column"],
        effects: Float[Tensor, "node node lag"],
        sigmas: Float[Tensor, " node"],
        edge_probs: EdgeProbs,
        fitted: Bool[Tensor, " node"],
    ) -> dict[str, Tensor]:
        """Return the parameters of the model by name, from regressions of mean and variance of all nodes."""
        noise, present = self.model.observation.with_deviations(sigmas[:, None]), self.model.observation.state_dict()
        noise = {name: torch.where(fitted[:, None], value, present[name]) for name, value in noise.items()}
        return self._parameters(own, effects, edge_probs, noise, fitted)

    def _parameters(
        self,
        own: Float[Tensor, "node column"],
        effects: Float[Tensor, "node node lag"],
        edge_probs: EdgeProbs,
        noise: Mapping[str, Tensor],
        fitted: Bool[Tensor, " node"],
    ) -> dict[str, Tensor]:
        r"""Return the parameters of the model by name; the last column of ``own`` is the constant.

        ``effects`` are mean effects $\theta w$, which the data determine better than $\theta$ and $w$: a weight is its
        mean effect divided by the probability.
        """
        predictor, graph, present = self.model.predictor, self.model.graph, self.model.state_dict()
        assert isinstance(predictor, GraphFilter)
        share = edge_probs[..., None].to(effects)
        weights = torch.where(share > 0, effects / share, 0.0)
        filled, raw = predictor.with_weights(own[:, :-1, None], weights[..., None], own[:, -1:]), graph.raw.detach()
        found = {
            f"graph.{graph.link.parameter}": torch.where(graph.learned, graph.link.raw(edge_probs.to(raw)), raw),
            **{f"predictor.{name}": value.detach() for name, value in filled.named_parameters()},
        }
        for name, value in found.items():
            rows = fitted.to(raw.device).view(-1, *[1] * (value.ndim - 1))
            found[name] = torch.where(rows, value.to(present[name]), present[name])
        for name, value in noise.items():
            key = f"observation.{name}"
            found[key] = value.detach().to(present[key])
        return found
