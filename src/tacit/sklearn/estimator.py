"""The base class of both estimators: fit, assessment, saving."""

import copy
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from torch import nn

from tacit.assessment.fit_tests import Goodness
from tacit.assessment.identification import Identifiability
from tacit.assessment.uncertainty import FEWEST_REPLICAS
from tacit.config import FitConfig
from tacit.console import Display
from tacit.devices import find_device
from tacit.errors import require_int
from tacit.pipeline import (
    Fitted,
    OwnParts,
    Plan,
    Source,
    add_identifiability,
    add_std_errors,
    evaluate,
    goodness_on,
    learn,
    new_pairs,
    require_constant,
    same_dataset,
    settle_situations,
)
from tacit.sklearn.class_probabilities import known_classes
from tacit.sklearn.learned import LearnedGraph
from tacit.sklearn.options import read_parameters, seed_of, to_python
from tacit.sklearn.saved import NotStored, Stored, damage_said, decode, encode, is_stored, write_said
from tacit.training import Listener

E = TypeVar("E", bound="LatentGraphEstimator")


class LatentGraphEstimator(LearnedGraph, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class: fits with the pipeline of ``tacit fit``; subclasses read the data and return predictions."""

    _fitted: Fitted | None = None
    _page: Path | None = None  # that was written of this fit
    predictor: Any
    device: Any
    random_state: Any
    verbose: Any

    def _source(self, X: Any, y: Any = None, *, reset: bool, covariates: Any = None) -> Source:  # noqa: N803
        """Read data; in ``fit`` (``reset``) names and sizes are stored, later they are compared.

        ``covariates``  covariates of pairs; those of a series are columns of its table
        """
        raise NotImplementedError

    def _data_keys(self) -> dict[str, Any]:
        """Return the options of ``[data]`` that are parameters of the estimator."""
        return {}

    def _learn(self: E, source: Source) -> E:
        """Fit with the pipeline of ``tacit fit``."""
        config, own = self._config()
        with self._progress() as listener:
            plan = Plan.make(
                source,
                config,
                seed=seed_of(self.random_state),
                device=find_device(self.device),
                command=f"{type(self).__name__}.fit",
                own=own,
                listener=listener,
            )
            learned = learn(plan)
            self._fitted, self._page = learned.conclude(), None
        if not learned.complete:
            warnings.warn("stopped by the user: the model is only partly trained", ConvergenceWarning, stacklevel=3)
        elif learned.too_early:
            warnings.warn(learned.too_early, ConvergenceWarning, stacklevel=3)
        return self

    def _config(self) -> tuple[FitConfig, OwnParts]:
        """Return the config of the parameters, with the columns that ``depends_on`` names."""
        config, own = read_parameters(self.get_params(deep=False), self._data_keys())
        return settle_situations(config), own

    def _seed(self, random_state: Any) -> int:
        """Return the seed for samples: that of the fit unless another ``random_state`` is passed."""
        return self._ready().record.seed if random_state is None else seed_of(random_state)

    @property
    def predictor_(self) -> nn.Module:
        """The fitted predictor; its inputs and outputs are scaled as in training."""
        return self._with_predictor().model.predictor

    @property
    def classes_(self) -> np.ndarray:
        """The values of the targets in increasing order: the last axis of ``predict_proba``."""
        return known_classes(self)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the report of ``tacit fit``: one HTML file that works offline."""
        from tacit.report import write_page  # matplotlib and plotly are loaded only for a page

        fitted, path = self._with_predictor(), Path(path)
        with write_said(path):
            write_page([fitted.run], path, fitted.record.title)
        self._page = path
        return path

    def estimate_std_errors(
        self: E,
        X: Any,  # noqa: N803
        y: Any = None,
        num_resamples: int = 32,
        block: int | None = None,
    ) -> E:
        r"""Estimate standard errors of the edge probabilities $\theta$ from resamples of the data of the fit.

        ``fit`` does this if it is fast (``bootstrap_replicas`` of ``AssessmentOptions``). Pairs are drawn with
        replacement in blocks of ``block`` neighbours, or as whole series if there are enough; edges are selected again
        for each resample. ``edge_probs_`` does not change. If it comes from regressions of mean and variance, these
        give the standard errors, the resamples scale them, and intervals are around ``edge_probs_``. Otherwise the
        model is trained again on each resample, and standard errors and intervals are those of ``bagged``, the mean
        over the replicas.
        """
        require_int("num_resamples", to_python(num_resamples), FEWEST_REPLICAS)
        if block is not None:
            require_int("block", to_python(block))
        fitted = self._with_predictor()
        self._edges().probs("estimate_std_errors")
        require_constant(fitted, "estimate_std_errors")
        own = self._config()[1]  # raises if a parameter was not stored
        dataset = same_dataset(fitted, self._source(X, y, reset=False))
        with self._progress() as listener:
            add_std_errors(fitted, dataset, to_python(num_resamples), to_python(block), listener, own)
        return self

    def identify(self, X: Any, y: Any = None, *, injectivity: bool = True) -> Identifiability:  # noqa: N803
        """Find which edges are identifiable, by changing every edge of the fitted model in turn.

        Pass the data of the fit. The result has ``sentences()``; which edges are identifiable is also stored in
        ``edge_identifiable_``. With ``injectivity`` the condition of the paper's theorem is checked as well.
        """
        fitted = self._with_predictor()
        self._edges().probs("identify")
        require_constant(fitted, "identify")
        dataset = same_dataset(fitted, self._source(X, y, reset=False))
        return add_identifiability(fitted, dataset, injectivity=injectivity)

    def goodness_of_fit(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        *,
        covariates: Any = None,
        num_samples: int = 199,
        stride: int = 1,
        level: float = 0.05,
    ) -> Goodness:
        """Test whether the model fits data that it was not fitted on, and where it does not.

        ``stride`` keeps every ``stride``-th pair: forecasts ``h`` steps ahead overlap, so pass ``h``. See
        :func:`tacit.assessment.fit_tests.goodness_of_fit`.
        """
        fitted = self._with_predictor()
        pairs = new_pairs(fitted, self._source(X, y, reset=False, covariates=covariates)).pairs
        options = {"num_samples": to_python(num_samples), "stride": to_python(stride), "level": to_python(level)}
        return goodness_on(fitted, pairs, **options)

    def evaluate(self, X: Any = None, y: Any = None, *, covariates: Any = None) -> dict[str, Any]:  # noqa: N803
        """Return scores and findings, like ``tacit evaluate``: on the test part of the fit, or on new data."""
        source = None if X is None else self._source(X, y, reset=False, covariates=covariates)
        return evaluate(self._with_predictor(), source, seed=self._ready().record.seed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to one safetensors file; reading it with :meth:`load` runs no code."""
        self._stored().write(Path(path))

    @classmethod
    def load(cls: type[E], path: str | os.PathLike[str], **objects: Any) -> E:
        """Read a file of :meth:`save`; ``objects`` are parameters that are not stored, such as ``predictor``."""
        estimator = cls.__new__(cls)
        estimator._restore(Stored.read(Path(path)), str(path))
        estimator.set_params(**objects)
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        objects = {name: value for name, value in parameters.items() if not is_stored(value)}
        return {"stored": self._stored().to_bytes(), "objects": objects}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._restore(Stored.from_bytes(state["stored"], "the pickle"), "the pickle")
        self.set_params(**state["objects"])

    def __deepcopy__(self: E, memo: dict[int, Any]) -> E:
        copied = type(self).__new__(type(self))
        for name, value in vars(self).items():
            setattr(copied, name, copy.deepcopy(value, memo))
        return copied

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    def _extra(self) -> dict[str, Any]:
        """Return further values of a fitted estimator to store, for JSON."""
        names = getattr(self, "feature_names_in_", None)
        return {"feature_names": None if names is None else names.tolist()}

    def _take_extra(self, extra: dict[str, Any]) -> None:
        self.n_features_in_ = len(self._ready().nodes)
        if extra["feature_names"] is not None:
            self.feature_names_in_ = np.array(extra["feature_names"], dtype=object)

    def _stored(self) -> Stored:
        text: dict[str, Any] = {
            "estimator": type(self).__name__,
            "parameters": {name: encode(value) for name, value in self.get_params(deep=False).items()},
        }
        if self._fitted is None:
            return Stored(text, {})
        fitted, tensors = self._fitted.to_parts()
        return Stored({**text, "fitted": fitted, "extra": self._extra()}, tensors)

    def _restore(self, stored: Stored, where: str) -> None:
        stored.require_of([kind.__name__ for kind in type(self).__mro__], where)
        with damage_said(where):
            type(self).__init__(self, **{name: decode(value) for name, value in stored.text["parameters"].items()})
            if "fitted" in stored.text:
                self._fitted = Fitted.from_parts(stored.text["fitted"], stored.tensors, self._load_device())
                self._take_extra(stored.text["extra"])

    def _load_device(self) -> torch.device:
        return find_device("auto" if str(self.device).startswith("cuda") else self.device)

    def _ready(self) -> Fitted:
        """Return the result of the fit."""
        if self._fitted is None:
            name = type(self).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet; call fit before using it")
        return self._fitted

    def _with_predictor(self) -> Fitted:
        """Return the result of the fit, ready to predict; a custom module gets the stored weights."""
        fitted = self._ready()
        if fitted.weights is not None and not isinstance(self.predictor, NotStored):
            fitted.take_predictor(self.predictor, self._load_device())
        return fitted

    @contextmanager
    def _progress(self) -> Iterator[Listener]:
        """Show the progress of a job with ``verbose``: a bar on a terminal, one line in a notebook, else some lines."""
        with Display(quiet=not self.verbose) as display:
            shown = (display.stage, display.step, display.finished)
            yield Listener(*shown, display.say) if display.shows_lines else Listener(*shown)

    def _repr_html_inner(self) -> str:
        """Return what a notebook shows: of a fitted estimator its edges, else what scikit-learn shows."""
        return self._summary() if self._fitted is not None else str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if self._fitted is not None and "text/html" in bundle:
            bundle["text/html"] = self._summary()
        return bundle

    def _summary(self) -> str:
        from tacit.report import summary_html

        fitted = self._ready()
        return summary_html(fitted.run, type(self).__name__, fitted.preparation.is_series, self._page)
