"""Options of the model and of the training: names are converted here to a loss, an estimator, a link and a prior."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Literal

import torch
from pydantic import AfterValidator, Field
from torch import nn

from tacit.config.closed import Closed, RegisteredName, unused_by
from tacit.errors import InputError, require
from tacit.estimators import Estimator, EstimatorOptions
from tacit.graph import EdgePrior, GraphDistribution, Link, Sigmoid, SineSquared
from tacit.losses import (
    Gaussian,
    Kernel,
    KernelMean,
    Laplacian,
    Loss,
    LossOptions,
    RationalQuadratic,
    median_distance,
)
from tacit.observation import ObservationModel
from tacit.registry import ESTIMATORS, GRAPHS, LOSSES
from tacit.shapes import Targets
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, StepDecay

KERNELS: Mapping[str, Callable[..., Kernel]] = {
    "rational_quadratic": RationalQuadratic,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
}
LINKS: Mapping[str, Callable[[], Link]] = {"sigmoid": Sigmoid, "sine_squared": SineSquared}
Positive = Annotated[float, Field(gt=0, strict=True)]  # strict: true is not 1.0


class ModelConfig(Closed):
    """The loss, the gradient estimator and the prior."""

    loss: Annotated[str, AfterValidator(RegisteredName(LOSSES))] = "energy"
    scope: Literal["node", "joint"] = "node"
    kernel: Literal["rational_quadratic", "gaussian", "laplacian"] = "rational_quadratic"
    kernel_scale: Positive | tuple[Positive, ...] | Literal["median"] | None = None  # None: the paper's, or the median
    likelihood_sd: float = Field(0.1, gt=0)
    baseline: Literal["auto", "none", "paper", "leave_one_out", "moving_average"] = "auto"
    estimator: Annotated[str, AfterValidator(RegisteredName(ESTIMATORS))] = "score_function"
    temperature: float = Field(1.0, gt=0)
    final_temperature: float = Field(0.1, gt=0)
    credit: Literal["auto", "global", "receptive_field", "own_row"] = "auto"
    graph: Annotated[str, AfterValidator(RegisteredName(GRAPHS))] = "bernoulli"
    link: Literal["sigmoid", "sine_squared"] = "sigmoid"
    prior: float | tuple[tuple[float, ...], ...] | None = None
    prior_weight: float = Field(1.0, gt=0)
    num_graphs: int = Field(8, ge=1)
    share_graphs: bool = False

    def build(
        self,
        graph: GraphDistribution,
        predictor: nn.Module,
        targets: Targets | None = None,
        *,
        loss: Loss | None = None,
        observation: ObservationModel | None = None,
        prior: EdgePrior | None = None,
    ) -> LatentGraphModel:
        """Return the model.

        ``graph``    starting values of the edges and their rules; see :meth:`build_graph`
        ``targets``  used for the median if it is the scale of the kernel
        ``loss``, ``prior``  replace those of the config
        """
        own = LOSSES[self.loss].has_prior
        return LatentGraphModel(
            self.build_graph(graph),
            predictor,
            self.build_loss(targets) if loss is None else loss,
            observation=observation,
            estimator=self.build_estimator(),
            num_graphs=self.num_graphs,
            share_graphs=self.share_graphs,
            credit=self.credit,
            prior=prior if own or prior is not None else self._build_prior(),
        )

    def build_graph(self, start: GraphDistribution) -> GraphDistribution:
        """Return the distribution of graphs, with the rules, link, table and probabilities of ``start``."""
        distribution: GraphDistribution = GRAPHS[self.graph].from_start(start)
        return distribution

    def build_loss(self, targets: Targets | None = None) -> Loss:
        """Return the loss."""
        self._refuse_unused()
        kind = LOSSES[self.loss]
        options = LossOptions(
            self.scope,
            None if self.baseline == "auto" else self.baseline,
            partial(self._build_kernel, targets),
            self.likelihood_sd,
            self._build_prior() if kind.has_prior else None,
        )
        loss: Loss = kind.from_options(options)
        return loss

    def build_estimator(self) -> Estimator:
        """Return the gradient estimator."""
        options = EstimatorOptions(self.temperature, self.final_temperature)
        estimator: Estimator = ESTIMATORS[self.estimator].from_options(options)
        return estimator

    def build_link(self) -> Link:
        """Return the link between stored parameters and edge probabilities."""
        return LINKS[self.link]()

    def _build_kernel(self, targets: Targets | None) -> Kernel:
        kind, scale = KERNELS[self.kernel], self.kernel_scale
        if scale is None and kind is RationalQuadratic:
            return RationalQuadratic()
        if scale is None or isinstance(scale, str):
            if targets is None:
                raise InputError("kernel_scale in [model] requires targets, got none; pass targets, or a number")
            return kind(scale=median_distance(targets, self.scope))
        if isinstance(scale, tuple):
            require(
                len(scale) > 0, "kernel_scale in [model] must be a number, several, or 'median', got none; pass some"
            )
            return KernelMean(tuple(kind(scale=one) for one in scale))
        return kind(scale=scale)

    def _build_prior(self) -> EdgePrior | None:
        if self.prior is None:
            return None
        try:
            return EdgePrior(torch.tensor(self.prior), self.prior_weight)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                "prior in [model] must have rows of one length; pass one number per node in each"
            ) from None

    def _refuse_unused(self) -> None:
        """Refuse options that the chosen loss or estimator would ignore."""
        chosen = {"loss": (LOSSES, self.loss), "estimator": (ESTIMATORS, self.estimator), "graph": (GRAPHS, self.graph)}
        for key, field in type(self).model_fields.items():
            if getattr(self, key) == field.default:
                continue
            for what, (registry, name) in chosen.items():
                users = unused_by(registry, name, key)
                if users is not None:
                    raise InputError(
                        f"{key} in [model] is for {users} and would be ignored by '{name}'; remove it, or set {what} "
                        f"to {users.removeprefix(what).strip()}"
                    )
        require(
            self.prior is not None or self.prior_weight == 1.0,
            "prior_weight in [model] requires a prior, got none; set prior, or remove prior_weight",
        )


class TrainingConfig(Closed):
    """Length of the training, learning rates and random starts."""

    epochs: int = Field(10, ge=1, le=1_000_000)
    batch_size: int = Field(128, ge=1)
    schedule: Literal["cosine", "step"] = "cosine"
    learning_rate: float = Field(0.1, gt=0, le=100)
    final_learning_rate: float = Field(0.0, ge=0)
    change_epoch: int = Field(5, ge=1)
    predictor_learning_rate: float | None = Field(None, gt=0, le=100)
    average_fraction: float = Field(0.25, ge=0, le=1)
    min_draws_per_edge: float = Field(1.0, ge=0)
    replicas: int = Field(8, ge=1)
    halve_after: tuple[int, ...] = (1, 2, 3)
    compile: bool = True

    def build(self) -> FitSettings:
        """Return the settings of a fit with several replicas."""
        first, final = self.learning_rate, self.final_learning_rate
        lowest = "above 0" if self.schedule == "step" else "at least 0"
        if final > first or (self.schedule == "step" and final == 0):
            raise InputError(
                f"final_learning_rate in [training] must be {lowest} and at most learning_rate={first} "
                f"with schedule '{self.schedule}', got {final}; pass for example {first / 5:g}"
            )
        return FitSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            schedule=CosineDecay(self.learning_rate, self.final_learning_rate)
            if self.schedule == "cosine"
            else StepDecay(self.learning_rate, self.final_learning_rate, self.change_epoch),
            predictor_learning_rate=self.predictor_learning_rate,
            average_fraction=self.average_fraction,
            min_draws_per_edge=self.min_draws_per_edge,
            halve_after=tuple(epoch for epoch in self.halve_after if epoch < self.epochs),
        )
