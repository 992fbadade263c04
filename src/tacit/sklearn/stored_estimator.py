"""An estimator that is pickled, saved and read back as text and tensors: reading it runs nothing but this class."""

import copy
import os
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from tacit.errors import InputError
from tacit.sklearn.building import torch_device
from tacit.sklearn.fitted import Fitted
from tacit.sklearn.saved import NotStored, Stored, decode, encode
from tacit.whole_files import read_whole, write_whole

E = TypeVar("E", bound="StoredEstimator")


class StoredEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Holds what was fitted in ``_fitted``."""

    _fitted: Fitted | None = None
    predictor: Any
    device: Any

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to one safetensors file; reading it with :meth:`load` runs no code."""
        try:
            write_whole(Path(path), self._stored().to_bytes())
        except OSError as error:
            raise InputError(f"path needs a place that can be written, got {path} ({error.strerror})") from None

    @classmethod
    def load(cls: type[E], path: str | os.PathLike[str], **objects: Any) -> E:
        """Read what :meth:`save` wrote; ``objects`` are parameters that have no stored form, such as ``predictor``."""
        try:
            data = read_whole(Path(path))
        except OSError as error:
            raise InputError(f"path needs a readable file, got {path} ({error.strerror})") from None
        estimator = cls.__new__(cls)
        estimator._restore(Stored.from_bytes(data, str(path)), str(path))
        estimator.set_params(**objects)
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        return {"stored": self._stored().to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._restore(Stored.from_bytes(state["stored"], "the pickle"), "the pickle")

    def __deepcopy__(self: E, memo: dict[int, Any]) -> E:
        copied = type(self).__new__(type(self))
        for name, value in vars(self).items():
            setattr(copied, name, copy.deepcopy(value, memo))
        return copied

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    def _ready(self) -> Fitted:
        """Return what was fitted."""
        if self._fitted is None:
            name = type(self).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet; call fit(X, y) before using it")
        return self._fitted

    def _with_predictor(self) -> Fitted:
        """Return what was fitted, ready to predict; a module of the user's own takes the weights that were read."""
        fitted = self._ready()
        if fitted.predictor is None:
            if isinstance(self.predictor, NotStored):
                raise InputError(
                    f"predictor was a {self.predictor.what}, of which only the weights are stored; pass it with "
                    "set_params(predictor=...), or load(path, predictor=...)"
                )
            fitted.take_predictor(self.predictor)
        return fitted

    def _stored(self) -> Stored:
        """Return parameters and what was fitted as text and tensors."""
        text: dict[str, Any] = {
            "parameters": {name: encode(value) for name, value in self.get_params(deep=False).items()}
        }
        if self._fitted is None:
            return Stored(text, {})
        names = getattr(self, "feature_names_in_", None)
        text["feature_names"] = None if names is None else names.tolist()
        text["fitted"] = self._fitted.text()
        return Stored(text, self._fitted.tensors())

    def _restore(self, stored: Stored, where: str) -> None:
        try:
            parameters = {name: decode(value) for name, value in stored.text["parameters"].items()}
            type(self).__init__(self, **parameters)
            if "fitted" in stored.text:
                device = torch_device("auto" if str(self.device).startswith("cuda") else self.device)
                self._fitted = Fitted.restored(stored.text["fitted"], stored.tensors, device)
                self.n_features_in_ = self._fitted.sizes.num_nodes
                if stored.text["feature_names"] is not None:
                    self.feature_names_in_ = np.array(stored.text["feature_names"], dtype=object)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(f"{where} holds a damaged estimator ({line}); fit and save it again") from None
