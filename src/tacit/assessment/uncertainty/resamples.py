r"""Resamples of the training pairs, mean and variance over those that keep an edge, and what is due to the data.

$\rho$, the share of the variance over resamples that is due to training, is one number for all edges. The estimate from
few replicas is noisy: .49 to .73 on nine data sets of one distribution, which changes standard errors by 28%. If the
sandwich can be computed, it gives a more stable estimate. The variance of an edge that is due to the data is then
$V_\mathrm{sandwich}$, and the share $1 - \rho$ that is due to the data is

$$\lambda = m \, \exp \operatorname{median}_{ij} \log \frac{V_\mathrm{sandwich}}{V_\mathrm{resampled}}$$

over edges well inside (0, 1), with $m$ the median of a variance estimate from that many replicas relative to the truth.
It may exceed 1, because short trainings may end before they reach the new minimum. If the standard errors by $\rho$ and
by $\lambda$ differ by a factor above 1.5, an assumption of one of them is violated, and the larger share is used.
"""

import math
import sys
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from tacit.assessment.uncertainty.boundary import NOTHING_KNOWN
from tacit.assessment.uncertainty.decisions import ReplicaProbs
from tacit.data import Pairs, bootstrap_rows, require_resamplable
from tacit.errors import require
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask, EdgeProbs

TINY = sys.float_info.min
MOST_RHO = 0.9  # upper bound: by chance, training may seem to explain all of the variance
FEWEST_KEEPING = 4  # replicas that must keep an edge to estimate its spread
FEWEST_EDGES = 5  # edges well inside (0, 1) that are required to compare variances
FARTHEST = 1.5  # ratio of the standard errors from rho and from the sandwich above which one is wrong

EdgeMasks = Bool[Tensor, "replica row slot"]
Kept = Callable[[Int[Tensor, "replica pair"]], EdgeMasks]  # from the rows of resamples to the edges that may exist
Masks = Float[Tensor, "replica node node"]


def resample_rows(train: Pairs, seeds: Sequence[int], block: int) -> Int[Tensor, "replica pair"]:
    """Return the row numbers of each resample, one resample for each seed."""
    require_resamplable(len(train), block, train.series)
    return torch.stack(
        [
            bootstrap_rows(len(train), generator=generator_for(seed, "resample"), block=block, series=train.series)
            for seed in seeds
        ]
    )


def kept_edges(rows: Int[Tensor, "replica pair"], present: EdgeMask, kept: Kept | None) -> EdgeMasks:
    """Return the edges that are ``present`` and kept by each resample; all present edges without ``kept``."""
    if kept is None:
        return present.expand(len(rows), *present.shape)
    masks, shape = kept(rows), (len(rows), *present.shape)
    require(
        masks.dtype == torch.bool and tuple(masks.shape) == shape,
        f"kept must return booleans of shape {shape}, got {masks.dtype} of {tuple(masks.shape)}; return one true or "
        "false per resample and edge",
    )
    return masks.to(present.device) & present


def kept_mean(replicas: ReplicaProbs, kept: Masks) -> EdgeProbs:
    """Return the mean over replicas that keep an edge, exact for equal replicas; the first replica keeps all."""
    first = replicas[0].detach().double()
    away = ((replicas.detach().double() - first) * kept).sum(0) / kept.sum(0)
    return (first + away).to(replicas.dtype)


def kept_variance(replicas: ReplicaProbs, kept: Masks) -> EdgeProbs:
    """Return the variance over replicas that keep an edge, in double precision; 0 if fewer than two do.

    >>> import torch
    >>> replicas = torch.tensor([[[0.2]], [[0.4]], [[0.0]]])
    >>> kept_variance(replicas, torch.tensor([[[1.0]], [[1.0]], [[0.0]]])).round(decimals=4)
    tensor([[0.0200]], dtype=torch.float64)
    """
    values, weights = replicas.detach().double(), kept.double()
    count = weights.sum(0)
    mean = (values * weights).sum(0) / count.clamp_min(1)
    return ((values - mean).square() * weights).sum(0) / (count - 1).clamp_min(1)


def data_share(
    of_training: EdgeProbs, of_both: EdgeProbs, seen: EdgeMask, sandwich: EdgeProbs | None, degrees: float
) -> float:
    """Return the share of the variance over resamples that is due to the data, from replicas or from the sandwich."""
    rho = float(of_training[seen].sum() / of_both[seen].sum().clamp_min(TINY))
    share = 1 - min(MOST_RHO, rho)
    if sandwich is None:
        return share
    inside = seen & (sandwich > 0) & (sandwich < NOTHING_KNOWN) & (of_both > 0)
    if int(inside.sum()) < FEWEST_EDGES:
        return share
    typical = (1 - 2 / (9 * degrees)) ** 3  # the median of a variance estimate
    steady = float((sandwich.double().square() / of_both)[inside].log().median().exp()) * typical
    apart = abs(math.log(steady / share)) / 2
    return max(steady, share) if apart > math.log(FARTHEST) else steady
