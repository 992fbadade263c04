"""Units of covariates: names, and the means and deviations by which they were scaled."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tacit.data import NamedPairs
from tacit.errors import require


class CovariateUnits(NamedTuple):
    """Names of covariates, and the mean and deviation by which each was scaled."""

    names: tuple[str, ...] = ()
    mean: Float[np.ndarray, " covariate"] = np.zeros(0)
    deviation: Float[np.ndarray, " covariate"] = np.zeros(0)

    @classmethod
    def of(cls, train: NamedPairs) -> "CovariateUnits":
        """Return the units of the covariates of a training part."""
        if train.pairs.covariates is None:
            return cls()
        values = train.pairs.covariates.double().numpy()
        deviation = values.std(axis=0)
        return cls(train.covariate_names, values.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def scaled(self, named: NamedPairs) -> Float[Tensor, "pair covariate"] | None:
        """Return the covariates of pairs in these units; refuse pairs with other covariates."""
        if not self.names:
            return None
        require(
            named.covariate_names == self.names and named.pairs.covariates is not None,
            f"covariates must be those of the training data, {', '.join(self.names)}, got "
            f"{', '.join(named.covariate_names) or 'none'}; pass them too",
        )
        assert named.pairs.covariates is not None
        return torch.from_numpy((named.pairs.covariates.double().numpy() - self.mean) / self.deviation).float()

    def to_dict(self) -> dict[str, Any]:
        """Return the units as strings and lists."""
        return {"names": list(self.names), "mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "CovariateUnits":
        """Return the units from the result of :meth:`to_dict`."""
        return cls(tuple(stored["names"]), np.array(stored["mean"], float), np.array(stored["deviation"], float))


NO_COVARIATES = CovariateUnits()
