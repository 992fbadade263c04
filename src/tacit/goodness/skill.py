r"""Skill: how much better than a reference.

$$\mathrm{skill} = 1 - \frac{\mathrm{CRPS}}{\mathrm{CRPS}_\mathrm{ref}}$$

1 is perfect, 0 is the reference itself, below 0 is worse. Fit and skill are two questions: a model can be right about
how little it knows, and one that predicts well can be wrong about how sure it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Float
from torch import Generator, Tensor

from tacit.data import Pairs
from tacit.errors import InputError
from tacit.evaluation import ForecastScores, forecast_scores
from tacit.goodness.controls import GraphControls
from tacit.training import LatentGraphModel


@dataclass(frozen=True)
class Skill:
    """The CRPS of a model beside that of references, and the skill over each (None over a perfect reference).

    ``scores`` has all scores of what was scored here: of the model under "model", and of the controls.
    """

    crps: float
    references: dict[str, float]
    skill: dict[str, float | None]
    scores: dict[str, ForecastScores]


def skill(score: float, reference: float) -> float | None:
    """Return the skill of one score over another; None where the reference is 0 and cannot be beaten.

    >>> skill(0.75, 1.0), skill(0.2, 0.0)
    (0.25, None)
    """
    for name, value in (("score", score), ("reference", reference)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise InputError(f"{name} needs a finite number of at least 0, got {value!r}; pass a CRPS or another error")
    return None if reference == 0 else 1 - score / reference


def forecast_skill(
    model: LatentGraphModel,
    pairs: Pairs,
    *,
    generator: Generator,
    references: Mapping[str, float] | None = None,
    controls: GraphControls | None = None,
    spread: Float[Tensor, "node channel"] | None = None,
) -> Skill:
    """Score ``model`` on test pairs, and compare with ``references`` (a CRPS each, same units) and with controls.

    ``spread`` is the size of a scaled unit in the units of the data, as in :func:`forecast_scores`.
    """
    models = {"model": model} | ({} if controls is None else controls.by_name())
    for name in references or {}:
        if name in models:
            raise InputError(f"references needs other names than {', '.join(models)}, got '{name}'; rename it")
    scores = {name: forecast_scores(one, pairs, generator=generator, spread=spread) for name, one in models.items()}
    crps = scores["model"].crps
    known = dict(references or {}) | {name: score.crps for name, score in scores.items() if name != "model"}
    return Skill(crps, known, {name: skill(crps, value) for name, value in known.items()}, scores)
