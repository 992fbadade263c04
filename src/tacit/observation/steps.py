r"""Discrete values: counts, binary values and ordered categories.

With $c_0 < c_1 < \dots < c_K$ the possible values, $F_s(k) = P(v \le c_k)$ under graph $s$ and $u$ the unit of targets,

$$u\, E|Y_s - Y_t| = \sum_{k < K} (c_{k+1} - c_k)\, (F_s(k) + F_t(k) - 2 F_s(k) F_t(k))
                   = \sum_{k < K} (c_{k+1} - c_k)\, (\tfrac12 - 2\, G_s(k)\, G_t(k)), \qquad G = F - \tfrac12$$

and a target $y = c_j$ is a distribution with $F(k) = 1[j \le k]$. The mean distance to many graphs is the distance to
their mean $G$, so the cost of the energy score is proportional to the size of the tables.
"""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from tacit.observation.values import InUnits
from tacit.shapes import NoiseUniforms, Samples, TargetParams, Targets

Table = Float[Tensor, "batch graph node channel step"]


class Steps(InUnits):
    """Base class of discrete distributions; a model defines its table $F$, its gaps and the index of a target."""

    reparameterized: bool = False
    closed_forms: bool = True

    @abstractmethod
    def table(self, parameters: TargetParams) -> Table:
        """Return $F(k)$ of every target under each graph, for all values except the last."""

    @abstractmethod
    def places(self, targets: Targets) -> Targets:
        """Return the index $j$ of each target among the values, as an integer stored in the type of the targets."""

    def gaps(self, like: Tensor) -> Tensor | None:
        """Return the distances between neighbouring values in the units of the data; None if all are 1."""
        del like
        return None

    def expected_distance(self, parameters: TargetParams, targets: Targets) -> Samples:
        r"""Return $E|Y_s - y|$ of each target under each graph $s$."""
        return self._expected(parameters, self.table(parameters) - 0.5, targets)

    def pair_distance(self, parameters: TargetParams) -> Float[Tensor, "batch graph graph node channel"]:
        r"""Return $E|Y_s - Y_t|$ for every two graphs."""
        centred = self.table(parameters) - 0.5
        gaps = self.gaps(centred)
        weighted = centred if gaps is None else centred * gaps
        products = torch.einsum("bsnck,btnck->bstnc", weighted, centred)
        return (0.5 * self._width(centred) - 2 * products) / self.unit

    def distances(self, parameters: TargetParams, targets: Targets, group_size: int = 1) -> tuple[Samples, Samples]:
        """Return both mean distances from one table; the mean over other graphs uses their mean table."""
        centred, num_graphs = self.table(parameters) - 0.5, parameters.shape[1]
        own = centred
        if group_size > 1:
            groups = centred.reshape(len(centred), -1, group_size, *centred.shape[2:])
            own = groups.sum(2, keepdim=True).expand_as(groups).flatten(1, 2)
        gaps = self.gaps(centred)
        others = centred.sum(1, keepdim=True) - own
        others = others if gaps is None else others * gaps
        products = (centred * others).sum(-1) / (num_graphs - group_size)
        spread = (0.5 * self._width(centred) - 2 * products) / self.unit
        return self._expected(parameters, centred, targets), spread

    def cdf(self, parameters: TargetParams, targets: Targets) -> tuple[Samples, Samples]:
        """Return the probabilities of a value below the target, and of a value at most the target."""
        table = self.table(parameters)
        ends = table.new_zeros(()).expand(*table.shape[:-1], 1)
        padded = torch.cat([ends, table, ends + 1], -1)
        places = self.places(targets).clamp(0, table.shape[-1]).long()[:, None, ..., None]
        places = places.expand(*table.shape[:-1], 1)
        return padded.gather(-1, places)[..., 0], padded.gather(-1, places + 1)[..., 0]

    @torch.no_grad()
    def sample(self, parameters: TargetParams, uniforms: NoiseUniforms) -> Samples:
        """Return the values of given uniforms as scaled targets: the first value with F >= u."""
        return self.to_targets(self.values_at((self.table(parameters) < uniforms[..., None]).sum(-1)))

    def values_at(self, places: Tensor) -> Tensor:
        """Return the values at indices 0, 1, ...; by default the indices themselves."""
        return places.to(self.unit.dtype)

    def _expected(self, parameters: TargetParams, centred: Table, targets: Targets) -> Samples:
        """Return the mean distance from a table of $G$."""
        del parameters
        steps = torch.arange(centred.shape[-1], device=centred.device)
        signs = 1 - 2 * (self.places(targets)[:, None, ..., None] <= steps).to(centred)  # -1 from the target on
        gaps = self.gaps(centred)
        signs = signs if gaps is None else signs * gaps
        return (0.5 * self._width(centred) + (centred * signs).sum(-1)) / self.unit

    def _width(self, table: Table) -> Tensor | int:
        """Return the distance between the first and the last value."""
        gaps = self.gaps(table)
        return table.shape[-1] if gaps is None else gaps.sum()
