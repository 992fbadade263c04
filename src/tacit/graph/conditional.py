r"""Independent edges whose probabilities depend on the situation of a pair.

Independent edges whose probabilities depend on the situation.

$$\mathrm{logit}\,\theta_{ij}(c) = a_{ij} + b_{ij} \cdot \phi(c)$$

$c$ is the context of a pair: covariates, a category, the series, the time, or the input of the node at one end of the
edge. $\phi$ are the features of these variables (:mod:`tacit.graph.context_variables`), with mean 0 and variance 1 over
the training pairs, so that $|b_{ij}|^2$ is the variance of the logit over situations. A penalty shrinks it towards 0,
that is, towards an edge that does not depend on the situation:

$$\text{penalty} = \frac{\lambda}{2} \sum_{ij} |b_{ij}|^2$$

Only edges marked in ``varying`` have weights.

With ``rank`` None there is one weight per edge and feature, and edges share no parameters. For many edges, the weights
come from a small network: $\sum_r u_{ir} v_{jr} h_r(\phi(c))$ replaces $b_{ij} \cdot \phi$, where $u$ and $v$ are
embeddings of the two nodes and $h$ is a layer of ``HIDDEN`` units that all edges share.

Independent edges with separate probabilities for every pair: a distribution conditioned on a context.

$$P(A \mid c_b) = \prod_{ij} \theta_{bij}^{A_{ij}} (1 - \theta_{bij})^{1 - A_{ij}}, \qquad
\theta_{bij} = 1 / (1 + e^{-z_{bij}})$$
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import logsigmoid

from tacit.errors import require
from tacit.graph.bernoulli import BernoulliGraph
from tacit.graph.context_variables import ContextVariable
from tacit.graph.distribution import Context, GraphDistribution, times
from tacit.graph.layouts import CandidateEdges
from tacit.graph.links import Sigmoid
from tacit.shapes import EdgeMask, EdgeProbs, EdgeWeights, Graphs, LogProb, Scalar, Uniforms


class EdgeProbsPerPair(GraphDistribution):
    """Edges that are independent given the pair; ``logits`` $z$ may come from a custom network.

    >>> graph = EdgeProbsPerPair(torch.tensor([-torch.inf, torch.inf]).view(2, 1, 1).expand(2, 3, 3))
    >>> graph.sample_from(torch.full((1, 4, 3, 3), 0.5)).mean((1, 2, 3)).tolist()
    [0.0, 1.0]
    """

    independent_edges: ClassVar[bool] = True

    def __init__(
        self,
        logits: Float[Tensor, "batch row slot"],
        candidates: CandidateEdges | None = None,
        *,
        symmetric: bool = False,
    ) -> None:
        super().__init__()
        self.logits, self.candidates, self.symmetric = logits, candidates, symmetric

    @property
    def edge_shape(self) -> tuple[int, int]:
        """Shape of a tensor with one entry per edge."""
        rows, columns = self.logits.shape[-2:]
        return rows, columns

    @property
    def raw(self) -> Tensor:
        """The logits."""
        return self.logits

    @property
    def edge_probs(self) -> EdgeProbs:
        """The mean over the pairs."""
        return torch.sigmoid(self.logits).mean(0)

    def sample_from(self, uniforms: Uniforms) -> Graphs:
        r"""Return $1[u < \theta_b]$ for every pair; uniforms may be shared by the pairs."""
        return (self.symmetrize(uniforms) < torch.sigmoid(self.logits.detach())[:, None]).to(uniforms.dtype)

    def log_prob(self, graphs: Graphs) -> LogProb:
        r"""Return $\log P(A \mid c_b)$."""
        logits = self.logits[:, None]
        logs = torch.where(graphs > 0, logsigmoid(logits), logsigmoid(-logits))
        if self.symmetric:
            logs = torch.where(graphs == graphs.mT, logs, -torch.inf)
        return self.upper_triangle(logs).sum((-2, -1))

    def weighted_log_prob(self, weights: EdgeWeights, graphs: Graphs) -> Scalar:
        r"""Return $\mathrm{mean}_s \sum_{ij} w_{sij} \log P(A_{s,ij} \mid c_b)$ over all graphs of all pairs.

        Edges are counted over the graphs of a pair first: logarithms are taken once for each edge of each pair.
        """
        present = (weights * graphs).mean(1)  # (batch, row, slot)
        absent = (weights * (1 - graphs)).mean(1)
        logs = times(present, logsigmoid(self.logits)) + times(absent, logsigmoid(-self.logits))
        return self.upper_triangle(logs).mean(0).sum()

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return no parameters: the learned parameters are those that compute the logits."""
        del generator
        return {}


# Number of situations over which a probability is averaged. Large graphs use fewer, so that the total number of values
# is bounded, but never fewer than the minimum.
REFERENCES, FEWEST_REFERENCES, REFERENCE_NUMBERS = 1024, 128, 2**24
PRIOR_DEVIATION = 1.5  # standard deviation of a logit over situations: from .5 to .82
HIDDEN = 16
START = 0.3  # standard deviation of the initial embeddings

EdgeFeatureWeights = Float[Tensor, "row slot feature"]


class Features(NamedTuple):
    """Features shared by all edges of a pair, and features of the source and target nodes; None if there are none."""

    shared: Float[Tensor, "batch feature"] | None
    source: Float[Tensor, "batch node feature"] | None
    target: Float[Tensor, "batch node feature"] | None


class ConditionalBernoulliGraph(BernoulliGraph):
    """Edge probabilities that depend on the context of a pair; the equations are in the module docstring.

    ``edge_logits``      (row, slot): $a$
    ``context_weights``  (row, slot, feature): $b$, without ``rank``
    ``varying``          mask of the edges that have weights; the others are constant

    >>> from tacit.graph.context_variables import Category, SeriesNumber
    >>> night = Category("night", SeriesNumber(), labels=("day", "night"))
    >>> context = Context(torch.zeros(4, 2, 1), series=torch.tensor([0, 0, 1, 1]))
    >>> graph = ConditionalBernoulliGraph(BernoulliGraph(torch.full((2, 2), 0.5)), [night], context)
    >>> _ = nn.init.constant_(graph.context_weights, 2.0)
    >>> graph.condition(context).logits[:, 0, 0].abs().tolist(), round(graph.edge_probs[0, 0].item(), 4)
    ([2.0, 2.0, 2.0, 2.0], 0.5)
    """

    has_edge_probs: ClassVar[bool] = False
    varying: EdgeMask
    reference_shared: Float[Tensor, "situation feature"]

    def __init__(
        self,
        start: BernoulliGraph,
        variables: Sequence[ContextVariable],
        training: Context | None,
        *,
        varying: EdgeMask | None = None,
        shrinkage: float = 0.0,
        rank: int | None = None,
    ) -> None:
        r"""Start at the probabilities of ``start`` in every situation.

        ``training``   the context of the training pairs, from which features and averages are computed; None if they
                       will be loaded from a file
        ``shrinkage``  $\lambda$; see :func:`shrinkage_of`
        """
        require(
            isinstance(start.link, Sigmoid),
            f"link must be Sigmoid() for a graph that depends on the situation, got {type(start.link).__name__}; "
            "leave it out",
        )
        super().__init__(
            start.edge_probs.detach(),
            start.fixed,
            start.initial_range,
            start.link,
            start.symmetric,
            start.candidates,
        )
        self.initial_spread = start.initial_spread
        require(
            not start.symmetric or all(one.reading.end is None for one in variables),
            "symmetric requires variables that both ends of an edge share, got one that is read at one end; leave one "
            "of them out",
        )
        require(len(variables) > 0, "variables must have at least one variable, got none; name one in depends_on")
        if training is not None:
            for variable in variables:
                variable.measure(training)
        self.variables = nn.ModuleList(variables).to(start.raw)
        self.context_fields = tuple(dict.fromkeys(field for one in variables for field in one.reading.fields))
        self.shrinkage, self.rank = float(shrinkage), rank
        free = self.learned if varying is None else varying.to(self.fixed.device) & self.learned
        self.register_buffer("varying", free.clone())
        like, rows = start.raw.detach(), self.edge_shape
        if rank is None:
            self.context_weights = nn.Parameter(like.new_zeros(*rows, self.num_features))
        else:
            shared = sum(one.num_features for one in variables if one.reading.end is None)
            require(
                shared == self.num_features,
                "rank requires variables that all edges share, got one that is read at an end of an edge; leave rank "
                "out",
            )
            self.receiving = nn.Parameter(like.new_zeros(self.num_nodes, rank))
            self.sending = nn.Parameter(like.new_zeros(self.num_nodes, rank))
            self.hidden = nn.Parameter(like.new_zeros(shared, HIDDEN))
            self.mixing = nn.Parameter(like.new_zeros(HIDDEN, rank))
            self.load_state_dict(self._fresh(Generator().manual_seed(0)), strict=False)
        # Situations over which a probability is averaged; large graphs use fewer.
        references = max(FEWEST_REFERENCES, min(REFERENCES, REFERENCE_NUMBERS // math.prod(rows)))
        for name, end in (("shared", None), ("source", "source"), ("target", "target")):
            if count := sum(one.num_features for one in self._of_end(end)):
                shape = (references, count) if end is None else (references, self.num_nodes, count)
                self.register_buffer(f"reference_{name}", like.new_zeros(shape))
        if training is not None:
            # One pair at random per segment of the training pairs: equal steps could alias with a period.
            count = len(training.inputs)
            within = torch.rand(references, generator=Generator().manual_seed(0), dtype=torch.float64)
            places = (torch.arange(references, dtype=torch.float64) + within) * count / references
            found = self.features(training[places.long().clamp_max(count - 1).to(like.device)])
            for name, value in found._asdict().items():
                if value is not None:
                    getattr(self, f"reference_{name}").copy_(value)

    @property
    def num_features(self) -> int:
        """Total number of features of the variables."""
        return sum(one.num_features for one in self._variables)

    @property
    def _variables(self) -> list[ContextVariable]:
        return list(self.variables)  # type: ignore[arg-type]

    def _of_end(self, end: str | None) -> list[ContextVariable]:
        return [one for one in self._variables if one.reading.end == end]

    def feature_slice(self, variable: ContextVariable) -> slice:
        """Return the slice of a variable's weights: shared variables come first, then source, then target."""
        first = 0
        for end in (None, "source", "target"):
            for one in self._of_end(end):
                if one.name == variable.name:
                    return slice(first, first + one.num_features)
                first += one.num_features
        raise ValueError(f"'{variable.name}' is not a variable of this graph")

    def variable(self, name: str) -> ContextVariable:
        """Return the variable with a given name."""
        return next(one for one in self._variables if one.name == name)

    def features(self, context: Context) -> Features:
        """Return the features of some pairs."""
        parts = [[one(context) for one in self._of_end(end)] for end in (None, "source", "target")]
        return Features(*(torch.cat(part, -1) if part else None for part in parts))

    def weights(self) -> EdgeFeatureWeights:
        """Return the weights of the features, 0 for edges that do not vary."""
        if self.rank is None:
            weights: Tensor = self.context_weights
            if self.symmetric:
                weights = self.symmetrize(weights.movedim(-1, 0)).movedim(0, -1)
        elif self.candidates is None:
            weights = self.receiving[:, None] * self.sending
            weights = (weights + weights.transpose(0, 1)) / 2 if self.symmetric else weights
        else:
            weights = self.receiving[self.candidates.row_node][:, None] * self.sending[self.candidates.sources]
        return torch.where(self.varying[..., None], weights, 0.0)

    def logits_of(self, features: Features) -> Float[Tensor, "batch row slot"]:
        """Return the logits of each edge for each pair; fixed edges keep their probability."""
        weights, table = self.weights(), self.candidates
        logits = self.symmetrize(self.raw)[None]
        if features.shared is not None:
            shared = self._shared_features(features.shared)
            logits = logits + torch.einsum("bk,rsk->brs", shared, weights[..., : shared.shape[-1]])
        first = 0 if features.shared is None else features.shared.shape[-1]
        for end, values in (("source", features.source), ("target", features.target)):
            if values is None:
                continue
            own = weights[..., first : first + values.shape[-1]]
            first += values.shape[-1]
            if table is not None:
                ends = table.sources if end == "source" else table.row_node[:, None].expand_as(table.sources)
                logits = logits + torch.einsum("brsk,rsk->brs", values[:, ends], own)
            else:
                logits = logits + torch.einsum("bjk,ijk->bij" if end == "source" else "bik,ijk->bij", values, own)
        return torch.where(self.fixed, torch.logit(self.fixed_probs), logits)

    def condition(self, context: Context) -> EdgeProbsPerPair:
        """Return the distribution of each pair."""
        return EdgeProbsPerPair(self.logits_of(self.features(context)), self.candidates, symmetric=self.symmetric)

    @property
    def edge_probs(self) -> EdgeProbs:
        """The edge probabilities averaged over the situations of the training pairs."""
        reference = Features(*(getattr(self, f"reference_{name}", None) for name in Features._fields))
        return torch.sigmoid(self.logits_of(reference)).mean(0)

    def probs_of(self, parameters: Mapping[str, Tensor]) -> Float[Tensor, "replica row slot"]:
        """Return the average probabilities of many replicas."""
        return GraphDistribution.probs_of(self, parameters)

    def penalty(self) -> Scalar:
        r"""Return $\tfrac\lambda2$ times the sum over edges of the variance of their logits, which is $|b_{ij}|^2$."""
        weights = self.weights()
        sizes = weights.square().sum(-1)
        if self.rank is not None:  # the variance of the network's features is not 1
            features = self._shared_features(self.reference_shared)
            sizes = torch.einsum("rsk,kl,rsl->rs", weights, features.mT @ features / len(features), weights)
        return 0.5 * self.shrinkage * self.upper_triangle(sizes).sum()

    def _shared_features(self, features: Float[Tensor, "batch feature"]) -> Float[Tensor, "batch used"]:
        """Return the features that the weights apply to: the variables' own, or those of the network."""
        return features if self.rank is None else torch.tanh(features @ self.hidden) @ self.mixing

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return initial values of a replica: edges that do not depend on the situation, random embeddings."""
        start = super().initial_parameters(generator)
        if self.rank is None:
            return start | {"context_weights": self.context_weights.detach()}
        return start | self._fresh(generator)

    def sample_from(self, uniforms: Uniforms) -> Graphs:
        """Raise an error: graphs can only be drawn given the context of a pair."""
        del uniforms
        raise self._unconditioned()

    def log_prob(self, graphs: Graphs) -> LogProb:
        """Raise an error: the probability of a graph is only defined given the context of a pair."""
        del graphs
        raise self._unconditioned()

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that are not stored in tensors."""
        return {"variables": [one.to_dict() for one in self._variables], "rank": self.rank}

    @classmethod
    def from_dict(cls, start: BernoulliGraph, stored: Mapping[str, Any]) -> "ConditionalBernoulliGraph":
        """Return a graph with the right shapes, ready to load a state dict."""
        variables = [ContextVariable.from_dict(one) for one in stored["variables"]]
        return cls(start, variables, None, rank=stored["rank"])

    def _fresh(self, generator: Generator) -> dict[str, Tensor]:
        """Return random embeddings and layers."""
        shapes = {name: getattr(self, name).shape for name in ("receiving", "sending", "hidden", "mixing")}
        like, scale = self.raw, {"hidden": self.hidden.shape[0] ** -0.5, "mixing": HIDDEN**-0.5}
        return {
            name: (scale.get(name, START) * torch.randn(shape, generator=generator, device=generator.device)).to(like)
            for name, shape in shapes.items()
        }

    def _unconditioned(self) -> RuntimeError:
        return RuntimeError("a graph that depends on the situation requires a context; use condition(context)")


def shrinkage_of(num_pairs: int, num_nodes: int, sigma: float, deviation: float = PRIOR_DEVIATION) -> float:
    r"""Return $\lambda$ for the energy score at node scope, from a normal prior of the weights.

    The prior standard deviation of a logit over situations is ``deviation`` $\tau$, so the negative log prior is
    $|b|^2 / 2\tau^2$ nats. One nat corresponds to $\sigma / \sqrt\pi$ of a node's score (:mod:`tacit.graph.priors`),
    where $\sigma$ is the standard deviation of the residuals. So $\lambda = \sigma / (\sqrt\pi\, n N \tau^2)$. For
    other losses this value is a convention.

    >>> round(shrinkage_of(1000, 10, 0.5) * 1e5, 3)
    1.254
    """
    return sigma / (math.sqrt(math.pi) * num_pairs * num_nodes * deviation**2)
