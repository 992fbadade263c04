r"""Inference from the scores of the rows of a fit, for rows that may depend on each other.

$$C = H^{-1} J\, H^{-1}, \qquad H = P - \sum_n \nabla^2 \ell_n, \qquad J = \mathrm{Var} \sum_n s_n$$

$s_n$ is the score of row $n$ for all parameters, $P$ the precision of their prior, and $J$ allows for rows that depend
on each other (:class:`~tacit.local.Dependence`). $C$ is valid even if the model is not quite right. For some parameters
$b$, with the blocks $H^{bb}$ of $H^{-1}$ and $C_{bb}$ of $C$,

$$\lambda = \frac1k\, \mathrm{tr}\big((H^{bb})^{-1} C_{bb}\big)$$

is the ratio of the robust to the model's variance. A likelihood ratio $R$ of $k$ parameters is compared as
$R / (k \lambda) \sim F_{k, d - k + 1}$ (Rotnitzky and Jewell 1990), where $d$ is the number of independent units
less one: $G - 1$ for $G$ series. For one parameter its root is compared with $t_d$, which gives profile intervals; at
the boundary of a probability, where half of the likelihood ratios are 0, the same quantile is a one-sided test at half
the level. $\lambda$ is at least 1, since its estimate is noisy and a smaller one would promise more than the model.

Two losses $l'$ and $l$ of the same rows $b$, with weights $w_b$ (1 unless targets are missing), differ by

$$\Delta = \frac{\sum_b d_b}{\sum_b w_b}, \quad d_b = l'_b - l_b, \qquad
  \mathrm{se}(\Delta)^2 = \frac{B}{B - 1} \frac{\mathrm{Var} \sum_b (d_b - \bar d)}{(\sum_b w_b)^2}$$

Variation in difficulty between rows cancels in the difference. It is *clear* if it is larger than two standard errors;
this is the rule of all comparisons.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from scipy import special
from torch import Tensor

from tacit.local.batch import GatedBatch
from tacit.local.dependence import QUANTILE, Dependence
from tacit.local.regression import GatedFit, GatedRegression
from tacit.shapes import PairLoss

RIDGE = 1e-8  # relative to each diagonal entry of the information
CLEAR = 2.0  # standard errors from which a difference is clear

Matrix = Float[Tensor, "number number"]


@dataclass(frozen=True, eq=False)
class Inference:
    """The curvature of the log posterior of a fit at its maximum, and the score of each row, with its weight.

    ``gates``  the places of the logit and of the slopes of each gated source among the parameters

    >>> scores = torch.tensor([[1.0], [-1.0], [2.0], [-2.0]]).double()
    >>> found = Inference(10 * torch.eye(1).double(), scores)
    >>> round(found.covariance[0, 0].item(), 3), round(found.ratio(torch.tensor([0])), 3)  # 4 / 3: few rows
    (0.133, 1.333)
    """

    curvature: Matrix
    scores: Float[Tensor, "row number"]
    dependence: Dependence = field(default_factory=Dependence)
    gates: dict[int, Int[Tensor, " place"]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: GatedRegression, fit: GatedFit, dependence: Dependence | None = None) -> "Inference":
        r"""Return the inference from a fit of one node, with the parameters in the order of :class:`GatedBatch`.

        The likelihood of a row is linear in a probability $\theta$, so its curvature by $\theta$ is the square of its
        score. It is also used for logits, multiplied by $(\partial \theta / \partial l)^2$: ratios are then those for
        $\theta$, and regular at 0 and 1, where the likelihood of a logit is flat.
        """
        batch = GatedBatch([data], [fit], [None])
        numbers = batch.numbers()
        curvature = batch.evaluate(numbers, torch.tensor([0]))[2][0]
        scores = batch.values_and_scores(numbers)[1][0]
        logits = batch.gated_places[1]
        if batch.num_features == 1:
            curvature[logits, logits] = data.weights @ scores[:, logits].square()
        free = batch.free[0]
        curvature = torch.where(free[:, None] & free, curvature, torch.eye(len(free), dtype=curvature.dtype))
        places = (logits[:, None] + torch.arange(batch.num_features)).unbind()
        gates = dict(zip(fit.gated.nonzero()[:, 0].tolist(), places, strict=True))
        weighted = torch.where(free, scores * data.weights[:, None], 0.0)
        return cls(curvature, weighted, dependence or Dependence(), gates)

    @cached_property
    def inverse(self) -> Matrix:
        """The covariance of the parameters if the model is right and the rows are independent."""
        return safe_inverse(self.curvature)

    @cached_property
    def covariance(self) -> Matrix:
        """The robust covariance $C$ of the parameters.

        The scores of a fit sum to about 0, which makes their variance too small by one of the independent units.
        """
        units, degrees = self.dependence.units(self.scores @ self.inverse), self.dependence.degrees(len(self.scores))
        return units.mT @ units * (1.0 if self.dependence.by_series else 1 + 1 / degrees)

    @property
    def quantile(self) -> float:
        """The quantile of t for intervals of 95%."""
        return self.dependence.quantile(len(self.scores))

    def ratio(self, places: Int[Tensor, " place"]) -> float:
        r"""Return $\lambda$, the ratio of the robust to the model's variance of some parameters, at least 1."""
        model, robust = (one[places[:, None], places] for one in (self.inverse, self.covariance))
        return max(1.0, float(torch.linalg.solve(model, robust).diagonal().mean()))

    def scale(self, places: Int[Tensor, " place"]) -> float:
        r"""Return the factor of the usual critical value of a likelihood ratio: $\lambda\, (t_d / \Phi^{-1})^2$."""
        return self.ratio(places) * (self.quantile / QUANTILE) ** 2

    def p_value(self, likelihood_ratio: float, places: Int[Tensor, " place"]) -> float:
        """Return the p-value of the hypothesis that some parameters are 0, from the likelihood ratio."""
        rows, count = len(self.scores), len(places)
        left = max(1, rows - len(self.curvature))
        statistic = max(0.0, likelihood_ratio) * left / (rows * count * self.ratio(places))
        return float(special.fdtrc(count, max(1.0, min(left, self.dependence.degrees(rows) - count + 1)), statistic))


def safe_inverse(matrix: Matrix) -> Matrix:
    """Invert a matrix that should be positive definite; small or negative eigenvalues are replaced by a floor.

    A parameter whose own curvature is 0 or negative has an infinite variance, and takes nothing from the others.
    """
    known = matrix.diagonal() > 0
    scale = torch.where(known, matrix.diagonal().rsqrt(), 0.0)
    together = known[:, None] & known
    sizes, directions = torch.linalg.eigh(torch.where(together, matrix * scale[:, None] * scale, 0.0))
    root = directions * sizes.clamp_min(RIDGE).rsqrt()
    inverse: Tensor = root @ root.mT * scale[:, None] * scale
    return torch.where(together | ~torch.eye(len(matrix), dtype=torch.bool), (inverse + inverse.mT) / 2, torch.inf)


def is_clear(difference: float, std_error: float) -> bool:
    """Return whether a number is clearly above 0, by more than two standard errors: the rule of all comparisons.

    >>> is_clear(0.3, 0.1), is_clear(0.1, 0.1), is_clear(-0.3, 0.1)
    (True, False, False)
    """
    return difference > CLEAR * std_error


class Difference(NamedTuple):
    """The difference of two losses, and its standard error."""

    mean: float
    std_error: float

    @property
    def clearly_lower(self) -> bool:
        """True if the first loss is clearly lower."""
        return is_clear(-self.mean, self.std_error)

    @property
    def clearly_higher(self) -> bool:
        """True if the first loss is clearly higher."""
        return is_clear(self.mean, self.std_error)


def paired_difference(
    other: PairLoss, own: PairLoss, weights: Float[Tensor, " batch"], dependence: Dependence | None = None
) -> Difference:
    """Return the difference of the mean losses, ``other`` minus ``own``, with its standard error.

    >>> difference = paired_difference(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 2.0]), torch.ones(2))
    >>> difference.mean, round(difference.std_error, 6)
    (1.0, 1.0)
    """
    difference, total = (other - own).double(), float(weights.sum())
    mean, count = float(difference.sum()) / total, len(difference)
    if count < 2:
        return Difference(mean, torch.inf)
    away = (difference - difference.mean())[:, None]
    variance = float((dependence or Dependence()).covariance(away, away))
    return Difference(mean, (variance * count / (count - 1)) ** 0.5 / total)
