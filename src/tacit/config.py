"""Every choice of a run as data: closed, frozen, checked; strings become objects here and nowhere below."""

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import nn

from tacit.errors import InputError, did_you_mean, require
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
from tacit.systems import PAPER_HOP_WEIGHTS, CommunitySystem, community_edge_probs
from tacit.training import CosineDecay, FitSettings, LatentGraphModel, StepDecay

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
C = TypeVar("C", bound="_Closed")


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SystemConfig(_Closed):
    """The system that makes the data; the defaults are the paper's."""

    num_communities: int = Field(2, ge=1)
    edge_prob: float = Field(0.75, ge=0, le=1)
    hop_weights: tuple[tuple[float, ...], ...] = PAPER_HOP_WEIGHTS
    input_scale: float = Field(1.5, gt=0)
    num_pairs: int = Field(35_000, ge=10)

    def build(self) -> CommunitySystem:
        """Return the system."""
        try:
            hop_weights = torch.tensor(self.hop_weights)[..., None]
        except ValueError:
            lengths = sorted({len(row) for row in self.hop_weights})
            raise InputError(
                f"hop_weights needs rows of one length, got lengths {lengths}; pass one number per channel"
            ) from None
        return CommunitySystem(
            community_edge_probs(self.num_communities, self.edge_prob), hop_weights, self.input_scale
        )


class ModelConfig(_Closed):
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


class TrainingConfig(_Closed):
    """How long, how fast, how many at once."""

    epochs: int = Field(10, ge=1)
    batch_size: int = Field(128, ge=1)
    schedule: Literal["cosine", "step"] = "cosine"
    learning_rate: float = Field(0.1, gt=0)
    final_learning_rate: float = Field(0.0, ge=0)
    change_epoch: int = Field(5, ge=1)
    predictor_rate: float = Field(1.0, gt=0)
    average_fraction: float = Field(0.25, ge=0, le=1)
    replicas: int = Field(8, ge=1)
    halve_after: tuple[int, ...] = (1, 2, 3)
    compile: bool = True

    def build(self) -> FitSettings:
        """Return the settings of a fit with several replicas."""
        first, final = self.learning_rate, self.final_learning_rate
        lowest = "above 0" if self.schedule == "step" else "at least 0"
        if final > first or (self.schedule == "step" and final == 0):
            raise InputError(
                f"final_learning_rate in [training] needs to be {lowest} and at most learning_rate={first} "
                f"with schedule '{self.schedule}', got {final}; pass for example {first / 5:g}"
            )
        return FitSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            schedule=CosineDecay(self.learning_rate, self.final_learning_rate)
            if self.schedule == "cosine"
            else StepDecay(self.learning_rate, self.final_learning_rate, self.change_epoch),
            predictor_rate=self.predictor_rate,
            average_fraction=self.average_fraction,
            halve_after=tuple(epoch for epoch in self.halve_after if epoch < self.epochs),
        )


class DemoConfig(_Closed):
    """All choices of ``tacit demo``."""

    system: SystemConfig = SystemConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()


# node: ours.  paper: joint MMD, its baseline, its schedule, 10 epochs (its appendix). It leaves the number of graphs
# open; 64 shared by the batch, because with 32 a true edge died (was never sampled again) in one of five seeds.
METHODS: Mapping[str, DemoConfig] = {
    "node": DemoConfig(),
    "paper": DemoConfig(
        model=ModelConfig(loss="mmd", scope="joint", baseline="paper", num_graphs=64, share_graphs=True),
        training=TrainingConfig(schedule="step", learning_rate=0.05, final_learning_rate=0.01, average_fraction=0.0),
    ),
}


def load_config(path: Path, base: C) -> C:
    """Return ``base`` with the values of a TOML file in place of its own."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"config needs a readable file, got {path} ({error.strerror}); check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"config needs TOML, but {path} is not: {error}; correct the file") from None
    return override(base, values)


def override(base: C, values: Mapping[str, Any]) -> C:
    """Return ``base`` with some values replaced; an unknown key is an error with a suggestion.

    >>> override(DemoConfig(), {"training": {"epoch": 3}})
    Traceback (most recent call last):
    ...
    tacit.errors.InputError: unknown key 'epoch' in [training]; did you mean 'epochs'?
    """
    merged = base.model_dump()
    for section, entries in values.items():
        _require_known(section, merged, "the config")
        if not isinstance(entries, Mapping):
            raise InputError(f"[{section}] needs to be a table, got {entries!r}; write [{section}] above its keys")
        for key, value in entries.items():
            _require_known(key, merged[section], f"[{section}]")
            merged[section][key] = value
    try:
        return type(base).model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        section, *rest = (str(part) for part in first["loc"])
        key = rest[0] if rest else ""
        raise InputError(
            f"{key} in [{section}] is not usable: {first['msg'].lower()}, got {first['input']!r}; "
            f"the default is {merged_default(base, section, key)!r}"
        ) from None


def merged_default(base: BaseModel, section: str, key: str) -> Any:
    """Return the value that ``base`` has for a key of a section."""
    return getattr(getattr(base, section), key, None)


def _require_known(key: str, known: Mapping[str, Any], where: str) -> None:
    if key not in known:
        raise InputError(f"unknown key '{key}' in {where}{did_you_mean(key, known)}")
