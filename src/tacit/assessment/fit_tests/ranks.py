r"""Ranks: where a target stands among samples of its own prediction.

$$r_i = \#\{s : z_{is} < y_i\} + U_i, \qquad U_i \text{ uniform on } 0 \ldots \#\{s : z_{is} = y_i\}$$

If the model is right, $y_i$ is one more sample, and $r_i$ is uniform on $0 \ldots S$: exactly, whatever the
distribution. Without noise it has atoms, and ties are common; they are broken at random, and numbers nearer than
1e-3 of a node's spread count as one there, 1e-5 with noise.
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
    """The rank of each target among ``num_samples`` samples; it means nothing where ``observed`` is false.

    >>> Ranks(torch.tensor([[[0]], [[3]]]), torch.tensor([[[True]], [[False]]]), 3).by_number()
    [tensor([0])]
    """

    values: Int[Tensor, "pair node channel"]
    observed: Bool[Tensor, "pair node channel"]
    num_samples: int

    def by_number(self) -> list[Int[Tensor, " _"]]:
        """Return the ranks of what was observed, for each number that is predicted: nodes, and channels within."""
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
    """Put the ranks of all chunks together, on the CPU."""
    values = torch.cat(parts).cpu()
    observed = torch.ones_like(values, dtype=torch.bool) if pairs.observed is None else pairs.observed.cpu() > 0
    return Ranks(values, observed, num_samples)
