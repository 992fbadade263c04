"""The base class of both estimators: fit, assessment, saving, and the learned graph as attributes."""

import copy
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.metaestimators import available_if
from torch import Tensor, nn

from tacit.assessment.fit_tests import Goodness
from tacit.assessment.identification import Identifiability
from tacit.assessment.uncertainty import FEWEST_REPLICAS, intervals_around, significant_edges
from tacit.config import FitConfig
from tacit.console import Display
from tacit.devices import find_device
from tacit.edges import FLAGS, EdgesBy, EdgeTable
from tacit.errors import require_int, require_package
from tacit.graph import GraphDistribution
from tacit.pipeline import (
    MOST_EXPANDED,
    ClassForecasts,
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
from tacit.records import Record, Run
from tacit.sklearn.saved import (
    NotStored,
    Stored,
    damage_said,
    decode,
    encode,
    is_stored,
    read_parameters,
    seed_of,
    to_python,
    write_said,
)
from tacit.training import Listener

if TYPE_CHECKING:
    import networkx
    import pandas
    from torch_geometric.data import Data

OF_A_PAGE = ("jinja2", "matplotlib", "plotly")  # packages


def _all_classes(estimator: "LatentGraphEstimator") -> bool:
    """Return true if all targets of the fit have classes; otherwise raise an AttributeError with the reason."""
    fitted = estimator._ready()
    found = ClassForecasts.of(fitted.config, fitted.preparation)
    if found is None or not found.has.any(0).all():
        raise AttributeError(
            f"predict_proba requires targets that are yes or no, or ordered categories, got observation = "
            f"{fitted.config.observation.kind!r}; use predict, or sample"
        )
    return True


has_classes = available_if(_all_classes)


def known_classes(estimator: "LatentGraphEstimator") -> np.ndarray:
    """Return the values of the targets in increasing order."""
    _all_classes(estimator)
    fitted = estimator._ready()
    found = ClassForecasts.of(fitted.config, fitted.preparation)
    assert found is not None
    return np.array(found.classes)


def with_zeros(probs: np.ndarray, *, flat: bool) -> np.ndarray:
    """Return probabilities, 0 for a value that a node cannot have; ``flat`` removes the axis of channels."""
    found: np.ndarray = np.nan_to_num(probs.astype(np.float64))
    return found[..., 0, :] if flat else found


def _edge_number(key: str, words: str) -> property:
    """Return a property with a number for every edge; its error explains how to compute it."""

    def read(self: "LearnedGraph") -> np.ndarray:
        return self._matrix(key)

    return property(read, doc=words)


class LearnedGraph:
    """Attributes of a fitted estimator; matrices of edges have a row per target and a column per source."""

    @property
    def edges_(self) -> "pandas.DataFrame":
        """All ordered pairs of nodes as a table, with the columns of ``edges.csv`` that were computed.

        With too many nodes for ``edge_probs_``, only the candidates; all other edges have probability 0.
        """
        return self._edges().frame()

    @property
    def lags_(self) -> "pandas.DataFrame":
        """The table ``lags.csv``: the effect of each kept edge at each lag, and how certain the largest is."""
        import pandas

        lags = self._edges().lags
        if lags is None:
            raise AttributeError(
                "lags of the edges are not known; fit a series, with evidence in GraphOptions at 'auto'"
            )
        return pandas.DataFrame(lags.columns(self.nodes_))

    @property
    def edges_by_(self) -> "pandas.DataFrame":
        """The table ``edges_by.csv``: how often edges act in each situation or regime."""
        graph = self._ready().config.graph
        if not graph.depends_on and graph.regimes is None:
            raise AttributeError(
                "it was not tested whether edges depend on the situation; set depends_on or regimes in GraphOptions"
            )
        return (self._edges().by or EdgesBy()).frame(self.nodes_)

    @property
    def exists_(self) -> np.ndarray:
        """The probability that each edge exists, given the data; rows are targets, columns are sources."""
        return self._matrix("exists", "exists_")

    @property
    def edge_probs_(self) -> np.ndarray:
        """How often each edge acts, given that it exists; rows are targets, columns sources; 0 if it is not kept."""
        fitted = self._ready()
        fitted.table.index.require_all_pairs("edge_probs_", MOST_EXPANDED)
        return fitted.graph.edge_probs.detach().cpu().numpy()

    edge_effects_ = _edge_number(
        "effect", "The effect of each edge, in deviations of the target per deviation of the source."
    )

    edge_lags_ = _edge_number("lag", "The lag at which each edge has its largest effect, in steps before the target.")

    within_step_ = _edge_number("within_step", "The probability that each edge acts within a step, at lag 0.")

    @property
    def direction_(self) -> np.ndarray:
        """How the direction of each edge was found: time, learned, lagged parents or open; "" on the diagonal."""
        return self._matrix("direction")

    edge_probs_bagged_ = _edge_number("bagged", "The mean probability of each edge over the bootstrap replicas.")
    edge_std_errors_ = _edge_number(
        "std_error", "Standard errors of the centres of the intervals; 0 where an edge is fixed."
    )
    edge_low_ = _edge_number("low", "Lower ends of the 95% intervals; for other levels see :meth:`edge_intervals`.")
    edge_high_ = _edge_number("high", "Upper ends of the 95% intervals of the edge probabilities.")

    @property
    def edge_identifiable_(self) -> np.ndarray:
        """True for each edge that is identifiable from the data; false for fixed edges."""
        if "identifiable" not in self._edges():
            raise AttributeError("edge_identifiable_ was not computed; call identify, or leave the assessment enabled")
        return np.asarray(self._matrix("identifiable") == "yes")

    @property
    def record_(self) -> Record:
        """The content of ``record.json``: config, metrics, references, findings, warnings and more."""
        return self._ready().record

    @property
    def run_(self) -> Run:
        """What a run directory holds: record, table of edges, history, lags. Plots and pages are drawn from it."""
        return self._ready().run

    @property
    def answer_(self) -> list[str]:
        """The answer in a few sentences: whether there is a graph, which edges are listed, and how often they act."""
        return self._ready().record.answer

    @property
    def findings_(self) -> list[str]:
        """The findings of the assessment, as sentences."""
        return self._ready().record.findings

    @property
    def notes_(self) -> list[str]:
        """Options that were chosen from the data, with the reasons, and warnings."""
        record = self._ready().record
        return [*record.choices, *record.warnings]

    @property
    def nodes_(self) -> list[str]:
        """The names of the nodes, or their positions as text."""
        return list(self._ready().nodes)

    @property
    def graph_(self) -> GraphDistribution:
        """The learned distribution of graphs."""
        return self._ready().graph

    @property
    def history_(self) -> list[dict[str, Any]]:
        """The losses of all replicas in each epoch; None for dropped replicas."""
        return self._ready().history

    @property
    def replicas_(self) -> list[dict[str, Any]]:
        """Seed, validation loss and, for a replica that was dropped, the last epoch."""
        return self._ready().record.replicas

    @property
    def best_replica_(self) -> int:
        """The index of the kept replica in ``replicas_``."""
        return self._ready().record.best_replica

    def to_networkx(self, threshold: float | None = None) -> "networkx.DiGraph | networkx.Graph":
        """Return the listed and the required edges as a networkx graph, with the columns of ``edges_`` as attributes.

        With a ``threshold``, return the edges whose ``exists`` is above it. A fit without evidence uses ``probability``
        instead, and without a threshold returns every edge above 0. A pair whose direction within a step is open is
        included in both directions, with ``undirected`` true.
        """
        return self._edges().to_networkx(to_python(threshold))

    def to_pyg(self, threshold: float | None = None) -> "Data":
        """Return the edges of :meth:`to_networkx` as a PyG graph with ``edge_index`` and ``edge_prob``.

        If they were computed, it also has ``edge_exists``, ``edge_effect`` and ``edge_lag``; with effects within a step
        also ``edge_within_step`` and ``edge_undirected``: an edge without direction is included in both directions.
        """
        return self._edges().to_pyg(to_python(threshold))

    def edge_intervals(self, level: float = 0.95, *, simultaneous: bool = False) -> "pandas.DataFrame":
        """Return confidence intervals of all edge probabilities, with columns ``bagged``, ``low`` and ``high``.

        An interval contains the true probability with probability ``level``; with ``simultaneous``, all intervals do at
        once. Intervals are around ``probability`` if it comes from regressions of mean and variance, otherwise around
        ``bagged``.
        """
        fitted, edges = self._ready(), self._edges()
        bagged = edges.known("bagged")
        ends = intervals_around(
            *self._estimates(),
            int(fitted.record.uncertainty["degrees"]),
            to_python(level),
            simultaneous=simultaneous,
            learned=fitted.graph.learned.cpu(),
            symmetric=fitted.graph.symmetric,
        )
        low, high = (fitted.graph.vector(one) for one in (ends.low, ends.high))
        shown = ["source", "target", *(["exists"] if "exists" in edges else []), "probability", "bagged", "low", "high"]
        return edges.frame(bagged=bagged, low=low, high=high)[shown]

    def listed_edges(self, fdr: float | None = None) -> "pandas.DataFrame":
        """Return the listed rows of ``edges_``: the longest list with a false discovery rate of at most ``fdr``.

        Every listed edge has ``exists`` of at least 0.5, and the mean of 1 - ``exists`` over the list is at most
        ``fdr`` (default: that of ``AssessmentOptions``). Required edges are known and therefore not listed. Without
        evidence, ``probability`` is used instead of ``exists``, and edges that are not identifiable are not listed. An
        edge without direction is one row. So is a pair whose direction within a step is open; ``exists`` is then the
        probability of an edge in either direction.
        """
        edges = self._edges()
        return edges.frame(edges.listed(to_python(fdr)), **({"exists": edges.values} if "exists" in edges else {}))

    def significant_edges(
        self, above: float = 0.05, rate: float = 0.05, *, dependence: str = "positive"
    ) -> "pandas.DataFrame":
        """Return the rows of ``edges_`` whose probability is significantly above a level, with a ``p_value`` each.

        ``rate`` limits the false discovery rate (:func:`tacit.assessment.uncertainty.significant_edges`, which also
        explains ``dependence``). The tested value is the centre of :meth:`edge_intervals`. Fixed edges and edges that
        are not identifiable are left out.
        """
        fitted, edges = self._ready(), self._edges()
        flags = edges["identifiable"]
        tests = significant_edges(
            *self._estimates(),
            degrees=int(fitted.record.uncertainty["degrees"]),
            learned=fitted.graph.learned.cpu(),
            identifiable=None if flags is None else fitted.graph.placed(flags == FLAGS.index("yes")),
            symmetric=fitted.graph.symmetric,
            above=to_python(above),
            rate=to_python(rate),
            dependence=dependence,  # type: ignore[arg-type]  # it is checked
        )
        chosen = fitted.graph.vector(tests.chosen) & edges.index.once
        return edges.frame(chosen, p_value=fitted.graph.vector(tests.p_values))

    def _ready(self) -> Fitted:
        raise NotImplementedError

    def _edges(self) -> EdgeTable:
        return self._ready().table

    def _matrix(self, name: str, asked: str = "") -> np.ndarray:
        """Return a column with a row per target and a column per source; raise if it was not computed."""
        edges = self._edges()
        if not asked:
            edges.known(name)
        edges.index.require_all_pairs(asked or f"the matrix of {name}", MOST_EXPANDED)
        return edges.matrix(name)

    def _estimates(self) -> tuple[Tensor, Tensor]:
        """Return the estimates that the standard errors belong to, of the regressions or bagged, and these errors."""
        fitted, edges = self._ready(), self._edges()
        centres, errors = (fitted.graph.placed(edges.known(name)) for name in ("bagged", "std_error"))
        if "always" in fitted.record.uncertainty:
            centres = fitted.graph.edge_probs.detach().cpu()
        return centres, errors


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
        for package in OF_A_PAGE:
            require_package(package, "report", "command")
        from tacit.report import write_page

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
        self._edges().index.require_all_pairs("estimate_std_errors", MOST_EXPANDED)
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
        self._edges().index.require_all_pairs("identify", MOST_EXPANDED)
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
        return self._summary() if self._has_summary else str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if self._has_summary and "text/html" in bundle:
            bundle["text/html"] = self._summary()
        return bundle

    @property
    def _has_summary(self) -> bool:
        return self._fitted is not None and all(find_spec(package) is not None for package in OF_A_PAGE)

    def _summary(self) -> str:
        from tacit.report import summary_html

        fitted = self._ready()
        return summary_html(fitted.run, type(self).__name__, fitted.preparation.is_series, self._page)
