r"""Ranks of targets among samples of their predictions.

$$r_i = \#\{s : z_{is} < y_i\} + U_i, \qquad U_i \text{ uniform on } 0 \ldots \#\{s : z_{is} = y_i\}$$

If the model is right, $y_i$ is one more sample, and $r_i$ is exactly uniform on $0 \ldots S$ for any distribution.
Without noise the distribution is discrete, and ties are common; they are broken at random. Numbers are tied if they
differ by less than 1e-3 of a node's standard deviation without noise, and 1e-5 with noise.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from tacit.assessment.fit_tests.scales import ByNumber
from tacit.data import Pairs
from tacit.shapes import Samples, Targets


@dataclass(frozen=True)
class Ranks:
    """The rank of each target among ``num_samples`` samples; undefined if ``observed`` is false.

    >>> Ranks(torch.tensor([[[0]], [[3]]]), torch.tensor([[[True]], [[False]]]), 3).by_number()
    [tensor([0])]
    """

    values: Int[Tensor, "pair node channel"]
    observed: Bool[Tensor, "pair node channel"]
    num_samples: int

    def by_number(self) -> list[Int[Tensor, " _"]]:
        """Return the ranks of the observed targets for each predicted number: by node, then by channel."""
        columns = zip(self.values.flatten(1).unbind(1), self.observed.flatten(1).unbind(1), strict=True)
        return [values[seen] for values, seen in columns]


def rank_of(
    targets: Targets, samples: Samples, same: ByNumber, *, generator: Generator
) -> Int[Tensor, "batch node channel"]:
    """Return the rank of each target among the samples of its pair, ties broken at random.

    >>> samples = torch.tensor([1.0, 2.0, 4.0]).view(1, 3, 1, 1)
    >>> rank_of(torch.tensor([[[3.0]]]), samples, torch.zeros(1, 1), generator=Generator().manual_seed(0)).item()
    2
    """
    gaps = samples - targets[:, None]
    below = (gaps < -same).sum(1)
    ties = (gaps.abs() <= same).sum(1)
    uniforms = torch.rand(targets.shape, generator=generator, device=generator.device, dtype=torch.float64)
    return below + torch.minimum((uniforms * (ties + 1)).long(), ties)


def gathered_ranks(parts: list[Int[Tensor, "_ node channel"]], pairs: Pairs, num_samples: int) -> Ranks:
    """Concatenate the ranks of all chunks on the CPU."""
    values = torch.cat(parts).cpu()
    observed = torch.ones_like(values, dtype=torch.bool) if pairs.observed is None else pairs.observed.cpu() > 0
    return Ranks(values, observed, num_samples)
