"""Scales for the kernel test, and the tolerance within which two numbers are equal.

They come from separate samples, independent of the targets, so that the tests remain valid.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from tacit.assessment.fit_tests.samples import sample_chunks
from tacit.data import Pairs
from tacit.shapes import Samples, Targets
from tacit.training import LatentGraphModel

PILOT_PAIRS, PILOT_SAMPLES = 256, 32  # enough for scales: their errors do not affect the validity of a p-value
# Share of a node's standard deviation within which numbers are equal. Without noise and with a known predictor, a
# target equals samples up to rounding, about 1e-7 in float32. A learned predictor has errors of about 1e-4: if few
# graphs have large probability, as with edges that are correlated within rows, a smaller tolerance would reject any
# learned predictor (measured: p = 1e-169 with weights right to 4 digits). With noise the distribution is continuous,
# and a larger tolerance would tie different values.
SAME, ROUNDED = 1e-3, 1e-5

ByNumber = Float[Tensor, "node channel"]


@dataclass(frozen=True)
class Scales:
    """Mean and spread over pairs of the predicted mean and standard deviation; ``same`` is the tolerance for ties."""

    mean_centre: ByNumber
    mean_spread: ByNumber
    deviation_centre: ByNumber
    deviation_spread: ByNumber
    same: ByNumber


@torch.no_grad()
def pilot_scales(model: LatentGraphModel, pairs: Pairs, *, generator: Generator) -> Scales:
    """Draw a few samples for some evenly spaced pairs, and return their scales.

    A spread of 0 is replaced by 1.
    """
    some = pairs[:: max(1, len(pairs) // PILOT_PAIRS)]
    parts = [samples for _, samples in sample_chunks(model, some, PILOT_SAMPLES, generator=generator)]
    return scales_of(torch.cat(parts), ROUNDED if model.observation.random else SAME)


def scales_of(samples: Samples, share: float = SAME) -> Scales:
    """Return the scales of given samples; numbers that differ by less than a ``share`` of the spread are equal.

    >>> two_pairs = torch.tensor([[0.0, 2.0], [4.0, 6.0]]).view(2, 2, 1, 1)
    >>> scales = scales_of(two_pairs)
    >>> scales.mean_centre.item(), scales.deviation_centre.item(), scales.deviation_spread.item()  # means 1 and 5
    (3.0, 1.0, 1.0)
    """
    means, deviations = samples.mean(1), samples.std(1, correction=0)
    rounding = 16 * torch.finfo(samples.dtype).eps * samples.abs().amax((0, 1))
    same = torch.maximum(share * samples.std((0, 1), correction=0), rounding)
    spreads = [torch.where(s > same, s, 1.0) for s in (means.std(0, correction=0), deviations.std(0, correction=0))]
    return Scales(means.mean(0), spreads[0], deviations.mean(0), spreads[1], same)


def snapped(targets: Targets, samples: Samples, same: ByNumber) -> Targets:
    """Return the targets, each replaced by the nearest sample of its pair if the two are equal up to the tolerance.

    >>> snapped(torch.tensor([[[1.001]]]), torch.tensor([0.0, 1.0]).view(1, 2, 1, 1), torch.tensor([[0.01]])).item()
    1.0
    """
    gap, nearest = (samples - targets[:, None]).abs().min(1)
    return torch.where(gap <= same, samples.gather(1, nearest[:, None])[:, 0], targets)
