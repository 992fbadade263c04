"""The model as data: strings become a loss, an estimator, a link and a prior here and nowhere below."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import nn

from tacit.config.closed import Closed
from tacit.errors import InputError, require
from tacit.estimators import Concrete, DisARM, Estimator, ScoreFunction, StraightThrough
from tacit.graph import BernoulliGraph, EdgePrior, Link, Sigmoid, SineSquared
from tacit.losses import (
    ELBO,
    MMD,
    EnergyScore,
    Gaussian,
    Kernel,
    KernelMean,
    Laplacian,
    Literature1,
    Literature2,
    Loss,
    PointMSE,
    RationalQuadratic,
    median_distance,
)
from tacit.shapes import Targets
from tacit.training import LatentGraphModel

LossName = Literal[
    "mmd",
    "energy",
    "point_mse",
    "literature_1_mae",
    "literature_1_mse",
    "literature_2_mae",
    "literature_2_mse",
    "elbo",
]
KERNELS: Mapping[str, Callable[..., Kernel]] = {
    "rational_quadratic": RationalQuadratic,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
}
SIMPLE_LOSSES: Mapping[str, Callable[..., Loss]] = {
    "energy": EnergyScore,
    "point_mse": PointMSE,
    "literature_1_mae": partial(Literature1, "mae"),
    "literature_1_mse": partial(Literature1, "mse"),
    "literature_2_mae": partial(Literature2, "mae"),
    "literature_2_mse": partial(Literature2, "mse"),
}
ESTIMATORS: Mapping[str, Callable[[], Estimator]] = {
    "score_function": ScoreFunction,
    "disarm": DisARM,
    "straight_through": StraightThrough,
}
LINKS: Mapping[str, Callable[[], Link]] = {"sigmoid": Sigmoid, "sine_squared": SineSquared}
Positive = Annotated[float, Field(gt=0, strict=True)]  # strict: true is not 1.0


class ModelConfig(Closed):
    """The loss, how its gradient is estimated, and what is believed beforehand."""

    loss: LossName = "energy"
    scope: Literal["node", "joint"] = "node"
    kernel: Literal["rational_quadratic", "gaussian", "laplacian"] = "rational_quadratic"
    kernel_scale: Positive | tuple[Positive, ...] | Literal["median"] | None = None  # None: the paper's, or the median
    likelihood_sd: float = Field(0.1, gt=0)
    baseline: Literal["auto", "none", "paper", "leave_one_out", "moving_average"] = "auto"
    estimator: Literal["score_function", "disarm", "straight_through", "concrete"] = "score_function"
    temperature: float = Field(1.0, gt=0)
    final_temperature: float = Field(0.1, gt=0)
    credit: Literal["auto", "global", "receptive_field", "own_row"] = "auto"
    link: Literal["sigmoid", "sine_squared"] = "sigmoid"
    prior: float | tuple[tuple[float, ...], ...] | None = None
    prior_weight: float = Field(1.0, gt=0)
    num_graphs: int = Field(16, ge=1)
    share_graphs: bool = False

    def build(self, graph: BernoulliGraph, predictor: nn.Module, targets: Targets | None = None) -> LatentGraphModel:
        """Return the model; ``targets`` are those that the median is taken from, where it is the kernel's scale."""
        return LatentGraphModel(
            graph,
            predictor,
            self.build_loss(targets),
            estimator=self.build_estimator(),
            num_graphs=self.num_graphs,
            share_graphs=self.share_graphs,
            credit=self.credit,
            prior=None if self.loss == "elbo" else self._build_prior(),
        )

    def build_loss(self, targets: Targets | None = None) -> Loss:
        """Return the loss."""
        self._refuse_unused()
        options: dict[str, Any] = {"scope": self.scope}
        if self.baseline != "auto":
            options["baseline"] = self.baseline
        if self.loss == "mmd":
            return MMD(self._build_kernel(targets), **options)
        if self.loss == "elbo":
            prior = self._build_prior()
            if prior is None:
                raise InputError("loss 'elbo' in [model] needs a prior, got none; set prior, for example to 0.5")
            return ELBO(self.likelihood_sd, prior, **options)
        return SIMPLE_LOSSES[self.loss](**options)

    def build_estimator(self) -> Estimator:
        """Return the gradient estimator."""
        if self.estimator == "concrete":
            require(
                self.final_temperature <= self.temperature,
                f"final_temperature in [model] needs to be at most temperature={self.temperature:g}, got "
                f"{self.final_temperature:g}; lower it",
            )
            return Concrete(self.temperature, self.final_temperature)
        return ESTIMATORS[self.estimator]()

    def build_link(self) -> Link:
        """Return how edge probabilities are stored."""
        return LINKS[self.link]()

    def _build_kernel(self, targets: Targets | None) -> Kernel:
        kind, scale = KERNELS[self.kernel], self.kernel_scale
        if scale is None and kind is RationalQuadratic:
            return RationalQuadratic()
        if scale is None or isinstance(scale, str):
            if targets is None:
                raise InputError("kernel_scale in [model] is taken from targets, got none; pass targets, or a number")
            return kind(scale=median_distance(targets, self.scope))
        if isinstance(scale, tuple):
            require(len(scale) > 0, "kernel_scale in [model] needs a number, several, or 'median', got none; pass some")
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
            raise InputError("prior in [model] needs rows of one length; pass one number per node in each") from None

    def _refuse_unused(self) -> None:
        """An option that the chosen loss or estimator would ignore is a mistake, not a wish."""
        for key, chosen, needed in (
            ("kernel", self.loss, "mmd"),
            ("kernel_scale", self.loss, "mmd"),
            ("likelihood_sd", self.loss, "elbo"),
            ("temperature", self.estimator, "concrete"),
            ("final_temperature", self.estimator, "concrete"),
            ("baseline", self.estimator, "score_function"),
        ):
            value, what = getattr(self, key), "loss" if chosen is self.loss else "estimator"
            if chosen != needed and value != type(self).model_fields[key].default:
                raise InputError(
                    f"{key} in [model] is for {what} '{needed}' and would be ignored by '{chosen}'; "
                    f"remove it, or set {what} to '{needed}'"
                )
        require(
            self.prior is not None or self.prior_weight == 1.0,
            "prior_weight in [model] needs a prior, got none; set prior, or remove prior_weight",
        )
