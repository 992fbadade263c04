r"""The model that is trained: a graph distribution and a predictor, a loss and a gradient estimator.

$$A \sim P_\theta, \qquad \hat y = f_\psi(x, A) \; [+ \; \sigma\, e, \quad e \sim N(0, 1)]$$

The noise is there when the predictor has it. A loss that integrates it takes means and sigmas; for the others it is
sampled, from uniforms that come with those of the graphs.
"""

import copy

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from tacit.errors import InputError, require, require_whole
from tacit.estimators import (
    Estimator,
    ReceptiveFieldCredit,
    ScoreFunction,
    check_locality,
    check_relaxation,
    choose_credit,
    require_combination,
)
from tacit.estimators.combination import CreditName
from tacit.graph import BernoulliGraph, EdgePrior
from tacit.losses import Loss, LossTerms
from tacit.predictors import initial_parameters, noisy_channels, relaxed_call
from tacit.randomness import generator_for
from tacit.shapes import (
    Graphs,
    GroupUniforms,
    Inputs,
    Normals,
    Observed,
    Outputs,
    Samples,
    Scalar,
    StepUniforms,
    Targets,
    UnitAverage,
)


class LatentGraphModel(nn.Module):
    """Everything a training step needs except data and randomness; what cannot go together is refused here.

    ``credit`` is "auto" by default: by receptive field where the loss has node scope and the predictor declares its
    number of hops, else global; a loss that is made by its credit brings its own. ``share_graphs`` draws one set of
    graphs per batch instead of one per pair. ``prior`` adds its penalty to the loss.
    """

    progress: Scalar
    average_cost: UnitAverage | None

    def __init__(
        self,
        graph: BernoulliGraph,
        predictor: nn.Module,
        loss: Loss,
        *,
        estimator: Estimator | None = None,
        num_graphs: int = 16,
        share_graphs: bool = False,
        credit: CreditName = "auto",
        prior: EdgePrior | None = None,
    ) -> None:
        super().__init__()
        estimator = ScoreFunction() if estimator is None else estimator
        _require_parts(graph, predictor, loss, estimator, prior)
        require_whole("num_graphs", num_graphs)
        if not estimator.takes_baseline:
            loss = loss.without_baseline()
        require_combination(loss, estimator, num_graphs, credit, predictor)
        channels = noisy_channels(predictor)
        _require_noise(loss, predictor, channels)
        self.noisy = channels is not None
        self.noise_channels = 0 if channels is None or _noise_use(loss) == "integrates" else channels
        self.graph = graph
        self.predictor = predictor
        self.loss = loss
        self.num_graphs = num_graphs
        self.share_graphs = share_graphs
        self.estimator = estimator
        if estimator.takes_credit:
            self.estimator = estimator.with_credit(
                choose_credit(credit, loss, predictor, over_table=graph.slots is not None)
            )
        self.prior = _choose_prior(loss, prior, graph)
        self.register_buffer("progress", graph.fixed_probs.new_zeros(()), persistent=False)
        units = graph.num_nodes if loss.scope == "node" else 1
        moving = loss.baseline == "moving_average"
        average = graph.fixed_probs.new_zeros(units) if moving else None
        self.register_buffer("average_cost", average, persistent=False)

    @property
    def carried(self) -> list[str]:
        """The buffers that each step hands to the next: :meth:`forward` returns their new values."""
        return [] if self.average_cost is None else ["average_cost"]

    def uniforms_shape(self, num_pairs: int) -> tuple[int, int, int, int]:
        """Return the shape of the uniforms that a batch of pairs needs."""
        (rows, slots), groups = self.graph.fixed.shape, self.num_graphs // self.estimator.group_size
        return 1 if self.share_graphs else num_pairs, groups, rows, slots + self.noise_channels

    def draws(self, num_pairs: int) -> int:
        """Return how many graphs a batch of pairs draws in all."""
        return self.num_graphs if self.share_graphs else self.num_graphs * num_pairs

    def forward(
        self, inputs: Inputs, targets: Targets, uniforms: StepUniforms, observed: Observed | None = None
    ) -> tuple[Scalar, tuple[Tensor, ...]]:
        """Return a number whose gradient is the estimate for theta and psi at once, and what came of each pair.

        That is: the losses of the pairs times their weights, which include the penalty of a prior; the weights, below
        1 where targets are missing, so that the loss of many pairs is one sum over the other; and the new values of
        what is carried.
        """
        estimator = self.estimator
        predict = relaxed_call(self.predictor) if estimator.through_graphs else self.predictor
        edges, normals = self._split(uniforms)
        graphs = estimator.draw(self.graph, edges, self.progress)
        terms = self._terms(predict(inputs, self.graph.for_reading(graphs)), normals, targets, observed)
        weights = torch.ones_like(terms.value[:, 0]) if terms.weight is None else terms.weight.mean(-1)
        penalty = targets.new_zeros(()) if self.prior is None else self.prior.penalty(self.graph)
        objective = terms.value.mean() + estimator.surrogate(terms, graphs, self.graph)
        if terms.weight is not None:
            objective = objective / weights.mean().clamp_min(torch.finfo(weights.dtype).tiny)
        if not estimator.hard:  # what is reported is the loss of real graphs
            hard = self.graph.for_reading(self.graph.sample_from(edges))
            terms = self._terms(self.predictor(inputs, hard), normals, targets, observed)
        losses = terms.value.mean(-1) + penalty * weights
        carried = () if terms.average is None else (terms.average,)
        return objective + penalty, (losses, weights, *carried)

    def _split(self, uniforms: StepUniforms) -> tuple[GroupUniforms, Normals | None]:
        """Return the uniforms of the edges and the normals of the noise, where it is sampled.

        Graphs that depend on each other have their noise in common: the costs of partners are then the same function
        of their graphs, and the noise drops out of the difference.
        """
        if not self.noise_channels:
            return uniforms, None
        edges, noise = uniforms.tensor_split([self.graph.fixed.shape[1]], -1)
        noise = noise[..., : self.graph.num_nodes, :]  # a table may have more rows than nodes
        return edges, torch.special.ndtri(noise).repeat_interleave(self.estimator.group_size, 1)

    def _terms(
        self, outputs: Outputs, normals: Normals | None, targets: Targets, observed: Observed | None
    ) -> LossTerms:
        samples = outputs if normals is None else _with_noise(outputs, normals)
        average, group_size = self.average_cost, self.estimator.group_size
        return self.loss(samples, targets, observed, average=average, group_size=group_size)

    @torch.no_grad()
    def outputs(self, inputs: Inputs, num_graphs: int, *, generator: Generator) -> Outputs:
        """Draw graphs that all pairs share, and return the predictor's output: with noise, means and then sigmas."""
        graphs: Graphs = self.graph.sample(num_graphs, generator=generator)
        outputs: Outputs = self.predictor(inputs, self.graph.for_reading(graphs))
        return outputs

    @torch.no_grad()
    def sample(self, inputs: Inputs, num_graphs: int, *, generator: Generator) -> Samples:
        """Draw graphs that all pairs share and noise that they do not, and return what every pair would show."""
        return self.add_noise(self.outputs(inputs, num_graphs, generator=generator), generator=generator)

    def add_noise(
        self, outputs: Outputs, *, generator: Generator, draws: int = 1
    ) -> Float[Tensor, "batch sample node channel"]:
        """Return samples from the outputs of the predictor: ``draws`` of each graph; the outputs where it has no noise.

        Under a graph only the noise differs from draw to draw, so that several make quantiles smooth at little cost.
        """
        if not self.noisy:
            return outputs
        repeated = outputs.repeat_interleave(draws, 1)
        shape = (*repeated.shape[:-1], outputs.shape[-1] // 2)
        normals = torch.randn(shape, generator=generator, device=generator.device, dtype=outputs.dtype)
        return _with_noise(repeated, normals.to(outputs.device))

    def initial_parameters(self, generator: Generator) -> dict[str, Tensor]:
        """Return fresh initial values for all trainable parameters, by their full names."""
        parts = {"graph": self.graph, "predictor": self.predictor}
        fresh = {f"{part}.{k}": v for part, m in parts.items() for k, v in initial_parameters(m, generator).items()}
        return {name: fresh[name] for name, value in self.named_parameters() if value.requires_grad}

    def check(self, inputs: Inputs, targets: Targets) -> None:
        """Raise :class:`InputError` if model and data do not fit, or if the predictor is not as local as it says."""
        nodes = self.graph.num_nodes
        require(
            inputs.shape[1] == nodes,
            f"inputs needs {nodes} nodes like the graph, got {inputs.shape[1]}; build the graph with "
            f"num_nodes={inputs.shape[1]}",
        )
        generator = generator_for(0, "check", inputs.device)
        outputs = self.outputs(inputs[:2], self.num_graphs, generator=generator)
        channels, twice = targets.shape[2], "2 * " if self.noisy else ""
        expected = (len(inputs[:2]), self.num_graphs, nodes, 2 * channels if self.noisy else channels)
        require(
            tuple(outputs.shape) == expected,
            f"{type(self.predictor).__name__} needs to return (batch, graph, node, {twice}channel) = {expected}, "
            f"got {tuple(outputs.shape)}; see tacit.predictors.protocol for an example",
        )
        channels = inputs.shape[2]
        credit = getattr(self.estimator, "credit", None)
        if isinstance(credit, ReceptiveFieldCredit):
            check_locality(self.predictor, self.graph, channels, credit.num_hops, generator=generator)
        if self.estimator.through_graphs:
            check_relaxation(self.predictor, self.graph, channels, generator=generator)


def _require_parts(graph: object, predictor: object, loss: object, estimator: object, prior: object) -> None:
    for name, value, kind, example in (
        ("graph", graph, BernoulliGraph, "BernoulliGraph.uniform(12, generator=rng)"),
        ("predictor", predictor, nn.Module, "HopPredictor.random(2, 4, generator=rng)"),
        ("loss", loss, Loss, 'EnergyScore(scope="node")'),
        ("estimator", estimator, Estimator, "ScoreFunction()"),
        ("prior", prior, EdgePrior | None, "EdgePrior(0.1, weight=0.01)"),
    ):
        if isinstance(value, type) or not isinstance(value, kind):
            got = repr(value) if isinstance(value, str | type) else type(value).__name__
            raise InputError(f"{name} needs an object like {example}, got {got}; build one")


def _noise_use(loss: Loss) -> str:
    """Return what a loss does with noise; a user's own takes samples."""
    use: str = getattr(loss, "noise", "samples")
    return use


def _require_noise(loss: Loss, predictor: nn.Module, channels: int | None) -> None:
    """Raise :class:`InputError` if loss and predictor disagree about noise."""
    use, name, whose = _noise_use(loss), type(loss).__name__, type(predictor).__name__
    require(
        use != "integrates" or channels is not None,
        f"{name} needs a predictor with noise, got {whose}; wrap it in WithNoise, or use the loss EnergyScore",
    )
    require(
        use != "refuses" or channels is None,
        f"{name} cannot learn how large noise is, and {whose} has noise; use the loss EnergyScore or MMD, or a "
        "predictor without noise",
    )
    require(
        use != "integrates" or channels == 1,
        f"{name} needs one channel per node, got {channels} of {whose}; use EnergyScore, for which noise is sampled",
    )


def _with_noise(outputs: Outputs, normals: Normals) -> Samples:
    means, sigmas = outputs.chunk(2, -1)
    return means + sigmas * normals


def _choose_prior(loss: Loss, prior: EdgePrior | None, graph: BernoulliGraph) -> EdgePrior | None:
    own: EdgePrior | None = getattr(loss, "prior", None)
    require(
        own is None or prior is None,
        f"{type(loss).__name__} has a prior of its own and takes no second one; give it to the loss",
    )
    prior = copy.deepcopy(own if prior is None else prior)  # it moves with this model, and with no other
    if prior is not None:
        prior.check(graph)
    return prior
