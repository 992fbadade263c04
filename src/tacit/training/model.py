r"""The model that is trained: graph distribution, predictor, observation model, loss and gradient estimator.

$$A \sim P_\theta(A \mid c), \qquad y \sim p(y \mid f_\psi(x, A), x)$$

$c$ is the context of a pair (:class:`~tacit.graph.Context`). If the observation model is random, a loss with a closed
form integrates the noise; for other losses the noise is sampled, from uniforms that are drawn together with those of
the graphs. If samples are not differentiable, as for counts, the gradient for psi is that of their log probability
times their cost:

$$\nabla_\psi E[L] = E\Big[ \tfrac1S \sum_s (w_s - b_s)\, \nabla_\psi \log p(y_s \mid f_\psi(x, A_s), x) \Big]$$

At node scope the cost of a node is the cost of its own sample.
"""

import copy

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.func import functional_call

from tacit.data import Pairs
from tacit.errors import InputError, require, require_int
from tacit.estimators import (
    CreditName,
    Estimator,
    ScoreFunction,
    check_locality,
    check_relaxation,
    choose_credit,
    require_combination,
)
from tacit.graph import AnyGraphs, BernoulliGraph, Context, EdgePrior, GraphDistribution
from tacit.losses import Loss, LossTerms
from tacit.observation import NoNoise, ObservationModel
from tacit.predictors import initial_parameters, numbers_per_target_of, relaxed_call
from tacit.randomness import draw_uniforms, generator_for
from tacit.shapes import (
    EdgeProbs,
    GroupUniforms,
    Inputs,
    NoiseUniforms,
    Observed,
    Outputs,
    PairLoss,
    Samples,
    Scalar,
    StepUniforms,
    TargetParams,
    Targets,
    UnitAverage,
)

CHUNK = 128  # pairs evaluated at once


class LatentGraphModel(nn.Module):
    """Graph distribution, predictor, observation model, loss and estimator, checked to be compatible.

    ``credit`` is "auto" by default: by receptive field if the loss has node scope and the predictor declares its number
    of hops, else global; some losses require their own credit. ``share_graphs`` draws one set of graphs per batch
    instead of one per pair. ``prior`` adds its penalty to the loss. ``observation`` is the noise of the targets, none
    by default.
    """

    progress: Scalar
    average_cost: UnitAverage | None

    def __init__(
        self,
        graph: GraphDistribution,
        predictor: nn.Module,
        loss: Loss,
        *,
        observation: ObservationModel | None = None,
        estimator: Estimator | None = None,
        num_graphs: int = 16,
        share_graphs: bool = False,
        credit: CreditName = "auto",
        prior: EdgePrior | None = None,
    ) -> None:
        super().__init__()
        estimator = ScoreFunction() if estimator is None else estimator
        observation = NoNoise() if observation is None else observation
        for name, value, kind, example in (
            ("graph", graph, GraphDistribution, "BernoulliGraph.uniform(12, generator=rng)"),
            ("predictor", predictor, nn.Module, "HopPredictor.random(2, 4, generator=rng)"),
            ("loss", loss, Loss, 'EnergyScore(scope="node")'),
            ("observation", observation, ObservationModel, "GaussianNoise(num_nodes=12)"),
            ("estimator", estimator, Estimator, "ScoreFunction()"),
            ("prior", prior, EdgePrior | None, "EdgePrior(0.1, weight=0.01)"),
        ):
            if isinstance(value, type) or not isinstance(value, kind):
                got = repr(value) if isinstance(value, str | type) else type(value).__name__
                raise InputError(f"{name} must be an object like {example}, got {got}; build one")
        require_int("num_graphs", num_graphs)
        loss = _with_noise(loss if estimator.takes_baseline else loss.with_baseline("none"), predictor, observation)
        require_combination(loss, estimator, num_graphs, credit, predictor, graph)
        self.graph = graph
        self.predictor = predictor
        self.observation = observation
        self.loss = loss
        self.num_graphs = num_graphs
        self.share_graphs = share_graphs
        self.estimator = estimator
        if estimator.takes_credit:
            self.estimator = estimator.with_credit(choose_credit(credit, loss, predictor, graph))
        require(
            loss.prior is None or prior is None,
            f"{type(loss).__name__} has its own prior and does not accept a second one; pass the prior to the loss",
        )
        # A copy, which moves with this model only.
        self.prior = copy.deepcopy(loss.prior if prior is None else prior)
        if self.prior is not None:
            self.prior.check(graph)
        self.register_buffer("progress", graph.raw.new_zeros(()), persistent=False)
        units = graph.num_nodes if loss.scope == "node" else 1
        moving = loss.baseline == "moving_average"
        average = graph.raw.new_zeros(units) if moving else None
        self.register_buffer("average_cost", average, persistent=False)

    @property
    def carried(self) -> list[str]:
        """The buffers that each step passes to the next: :meth:`forward` returns their new values."""
        return [] if self.average_cost is None else ["average_cost"]

    @property
    def noise_channels(self) -> int:
        """Number of uniforms per node for the noise in a step; 0 if it is not sampled."""
        sampled = self.observation.random and not self.loss.integrates
        return (self.observation.channels or 0) * self.observation.num_uniforms if sampled else 0

    @property
    def context_fields(self) -> tuple[str, ...]:
        """Fields of the context that graphs depend on beside the inputs; a batch includes them."""
        return tuple(field for field in self.graph.context_fields if field != "inputs")

    def uniforms_shape(self, num_pairs: int) -> tuple[int, int, int, int]:
        """Return the shape of the uniforms of a batch of pairs: those of the graphs, then those of the noise."""
        (rows, columns), groups = self.graph.uniforms_shape, self.num_graphs // self.estimator.group_size
        if self.noise_channels:
            rows = max(rows, self.graph.num_nodes)
        return 1 if self.share_graphs else num_pairs, groups, rows, columns + self.noise_channels

    def draws(self, num_pairs: int) -> int:
        """Return the total number of graphs drawn for a batch of pairs."""
        return self.num_graphs if self.share_graphs else self.num_graphs * num_pairs

    def forward(
        self,
        inputs: Inputs,
        targets: Targets,
        uniforms: StepUniforms,
        observed: Observed | None = None,
        context: Context | None = None,
    ) -> tuple[Scalar, tuple[Tensor, ...]]:
        """Return a scalar whose gradient is the estimate for theta and psi, and the results of each pair.

        The results are the losses of the pairs times their weights, including the penalty of a prior; the weights,
        below 1 for pairs with missing targets, so that a mean loss is the sum of losses divided by the sum of weights;
        and the new values of the carried buffers.
        """
        estimator, graph = self.estimator, self.graph_for(inputs, context)
        edges, noise = self._split(uniforms)
        graphs = estimator.draw(graph, edges, self.progress)
        described = self.describe(inputs, graph.as_operator(graphs), relaxed=estimator.through_graphs)
        samples = self._samples(described, noise)
        terms = self._terms(samples, targets, observed)
        weights = torch.ones_like(terms.value[:, 0]) if terms.weight is None else terms.weight.mean(-1)
        # The penalty of the edge prior plus that of the graph distribution.
        own = self.graph.penalty()
        penalty = self.progress.new_zeros(()) if own is None else own
        if self.prior is not None:
            penalty = penalty + self.prior.penalty(graph)
        objective = terms.value.mean() + estimator.surrogate(terms, graphs, graph)
        if noise is not None and not self.observation.reparameterized:
            objective = objective + self._noise_surrogate(terms, described, samples, observed)
        if terms.weight is not None:
            objective = objective / weights.mean().clamp_min(torch.finfo(weights.dtype).tiny)
        if not estimator.hard:  # the reported loss uses graphs of 0 and 1
            described = self.describe(inputs, graph.as_operator(graph.sample_from(edges)))
            terms = self._terms(self._samples(described, noise), targets, observed)
        losses = terms.value.mean(-1) + penalty * weights
        carried = () if terms.average is None else (terms.average,)
        return objective + penalty, (losses, weights, *carried)

    def graph_for(self, inputs: Inputs, context: Context | None = None) -> GraphDistribution:
        """Return the graph distribution given some pairs."""
        return self.graph.conditioned(Context(inputs) if context is None else context)

    def describe(self, inputs: Inputs, graphs: AnyGraphs, *, relaxed: bool = False) -> TargetParams:
        """Return the distribution parameters of each target under each graph, in the layout of :attr:`observation`.

        ``relaxed`` uses the form of the predictor that is differentiable in the graphs.
        """
        predict = relaxed_call(self.predictor) if relaxed else self.predictor
        return self.observation.describe(predict(inputs, graphs), inputs)

    def _split(self, uniforms: StepUniforms) -> tuple[GroupUniforms, NoiseUniforms | None]:
        """Return the uniforms of the graphs and, if it is sampled, of the noise.

        Graphs of a group share their noise: their costs are then the same function of their graphs, and the noise
        cancels in the difference.
        """
        if not self.noise_channels:
            return uniforms, None
        rows, columns = self.graph.uniforms_shape
        edges, noise = uniforms.tensor_split([columns], -1)
        noise = noise[..., : self.graph.num_nodes, :]  # a table may have more rows than nodes
        return edges[..., :rows, :], noise.repeat_interleave(self.estimator.group_size, 1)

    def _samples(self, described: TargetParams, noise: NoiseUniforms | None) -> Outputs:
        return described if noise is None else self.observation.sample(described, noise)

    def _terms(self, samples: Outputs, targets: Targets, observed: Observed | None) -> LossTerms:
        average, group_size = self.average_cost, self.estimator.group_size
        return self.loss(samples, targets, observed, average=average, group_size=group_size)

    def _noise_surrogate(
        self, terms: LossTerms, described: TargetParams, samples: Samples, observed: Observed | None
    ) -> Scalar:
        """Return a scalar whose gradient is the contribution of samples that are not differentiable."""
        log_probs = self.observation.sample_log_prob(described, samples)
        if observed is not None:  # no cost depends on missing targets
            log_probs = log_probs * observed[:, None]
        log_probs = log_probs.sum(-1) if self.loss.scope == "node" else log_probs.sum((-2, -1))[..., None]
        return ((terms.cost - terms.baseline).detach() * log_probs).mean()

    def for_loss(self, described: TargetParams, *, generator: Generator) -> Outputs:
        """Return the input of the loss: samples with noise, or the parameters if the loss integrates the noise."""
        return self.observation.draw(described, generator=generator) if self.noise_channels else described

    @torch.no_grad()
    def outputs(
        self, inputs: Inputs, num_graphs: int, *, generator: Generator, context: Context | None = None
    ) -> TargetParams:
        """Draw graphs that all pairs share; return the distribution parameters of each target."""
        graph = self.graph_for(inputs, context)
        return self.describe(inputs, graph.as_operator(graph.sample(num_graphs, generator=generator)))

    @torch.no_grad()
    def sample(
        self, inputs: Inputs, num_graphs: int, *, generator: Generator, context: Context | None = None
    ) -> Samples:
        """Draw graphs that all pairs share and independent noise; return samples of the targets."""
        described = self.outputs(inputs, num_graphs, generator=generator, context=context)
        return self.observation.draw(described, generator=generator)

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return random initial values of all trainable parameters, by full name."""
        parts = {"graph": self.graph, "predictor": self.predictor, "observation": self.observation}
        fresh = {f"{part}.{k}": v for part, m in parts.items() for k, v in initial_parameters(m, generator).items()}
        return {name: fresh[name] for name, value in self.named_parameters() if value.requires_grad}

    def check(self, inputs: Inputs, targets: Targets, context: Context | None = None) -> None:
        """Raise :class:`InputError` if model and data do not match, or if the declared locality is wrong."""
        nodes = self.graph.num_nodes
        require(
            inputs.shape[1] == nodes,
            f"inputs must have {nodes} nodes like the graph, got {inputs.shape[1]}; build the graph with "
            f"num_nodes={inputs.shape[1]}",
        )
        generator = generator_for(0, "check", inputs.device)
        graph = self.graph_for(inputs[:2], None if context is None else context[:2])
        graphs = graph.as_operator(graph.sample(self.num_graphs, generator=generator))
        with torch.no_grad():
            outputs = self.predictor(inputs[:2], graphs)
        numbers = self.observation.num_given
        times = f"{numbers} * " if numbers > 1 else ""
        expected = (len(inputs[:2]), self.num_graphs, nodes, numbers * targets.shape[2])
        require(
            tuple(outputs.shape) == expected,
            f"{type(self.predictor).__name__} must return (batch, graph, node, {times}channel) = {expected}, "
            f"got {tuple(outputs.shape)}; see tacit.predictors.protocol for an example",
        )
        require(
            self.observation.channels in (None, targets.shape[2]),
            f"channels of {type(self.observation).__name__} must equal that of targets, {targets.shape[2]}, got "
            f"{self.observation.channels}; build it with channels={targets.shape[2]}",
        )
        channels = inputs.shape[2]
        credit = self.estimator.credit
        if not bool(self.graph.learned.any()):  # no edge gets any credit
            return
        if credit is not None and credit.num_hops is not None:
            check_locality(self.predictor, self.graph, channels, credit.num_hops, generator=generator)
        if self.estimator.through_graphs:
            check_relaxation(self.predictor, self.graph, channels, generator=generator)


def _with_noise(loss: Loss, predictor: nn.Module, observation: ObservationModel) -> Loss:
    """Return the loss in the form for the observation model; raise an error if they are incompatible."""
    name, noise = type(loss).__name__, type(observation).__name__
    given, numbers = observation.num_given, numbers_per_target_of(predictor)
    require(
        given == numbers,
        f"observation must use numbers_per_target={numbers} of {type(predictor).__name__}, got {noise}, which uses "
        f"{given}; use another observation model, or a predictor that returns as many",
    )
    if not observation.random:
        require(
            not loss.integrates,
            f"{name} must have an observation model with noise, got {noise}; pass observation=GaussianNoise(...), or "
            "use the loss EnergyScore",
        )
        return loss
    require(
        loss.learns_noise,
        f"{name} cannot learn the size of the noise of {noise}; use the loss EnergyScore or MMD, or no noise",
    )
    return loss.integrating(observation) or loss


def with_fixed_graph(model: LatentGraphModel, edge_probs: EdgeProbs) -> LatentGraphModel:
    """Return a copy of a model with every edge fixed, trained by its own loss and without a prior for the edges.

    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> graph, predictor = BernoulliGraph(torch.full((2, 2), 0.5)), HopPredictor(torch.ones(1, 1, 1))
    >>> fixed = with_fixed_graph(LatentGraphModel(graph, predictor, EnergyScore()), torch.eye(2))
    >>> fixed.graph.edge_probs.tolist(), bool(fixed.graph.fixed.all())
    ([[1.0, 0.0], [0.0, 1.0]], True)
    """
    model.graph.require_all_pairs("with_fixed_graph")
    graph = BernoulliGraph(
        edge_probs.detach(),
        fixed=torch.ones_like(model.graph.fixed),
        link=model.graph.link,
        symmetric=model.graph.symmetric,
    )
    return with_graph(model, graph)


def with_graph(
    model: LatentGraphModel, graph: GraphDistribution, loss: Loss | None = None, num_graphs: int | None = None
) -> LatentGraphModel:
    """Return a copy of a model with another graph and no prior, optionally with another loss or number of graphs."""
    loss = model.loss if loss is None else loss
    return LatentGraphModel(
        copy.deepcopy(graph),
        copy.deepcopy(model.predictor),
        loss,
        observation=copy.deepcopy(model.observation),
        num_graphs=max(num_graphs or model.num_graphs, loss.min_graphs),
        share_graphs=model.share_graphs,
    ).to(model.graph.raw)


@torch.no_grad()
def pair_losses(
    model: LatentGraphModel, parameters: dict[str, Tensor], pairs: Pairs, *, generator: Generator
) -> tuple[PairLoss, Float[Tensor, " batch"]]:
    """Return the loss of each pair, times its weight, and the weights; ``parameters`` replace those of the model."""
    losses, weights = [], []
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        shape = model.uniforms_shape(len(chunk))
        uniforms = draw_uniforms(*shape, generator=generator, dtype=chunk.inputs.dtype).to(chunk.inputs.device)
        batch = (chunk.inputs, chunk.targets, uniforms, chunk.observed, Context.of(chunk))
        _, (loss, weight, *_) = functional_call(model, parameters, batch)
        losses.append(loss)
        weights.append(weight)
    return torch.cat(losses), torch.cat(weights)
