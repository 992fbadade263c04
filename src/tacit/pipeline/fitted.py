"""The result of a fit: record, edges and model, in a run directory or in one file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor

from tacit.config import OWN, FitConfig
from tacit.data import Pairs
from tacit.edges import EdgeTable
from tacit.errors import InputError, require
from tacit.graph import (
    BernoulliGraph,
    CandidateEdges,
    ConditionalBernoulliGraph,
    EdgePrior,
    GraphDistribution,
    MixtureGraph,
)
from tacit.local import MeanEquations
from tacit.pipeline.building import empty_graph, empty_model
from tacit.pipeline.parts import OwnParts, Predictor
from tacit.pipeline.preparation import Preparation, stored_preparation
from tacit.predictors import GraphFilter
from tacit.records import (
    CANDIDATES,
    MODEL,
    RECORD,
    BackgroundTable,
    ForecastTable,
    Record,
    Run,
    model_tensors,
    read_background,
    read_forecasts,
    read_model,
    read_record,
    read_run,
    run_of,
    write_run,
)
from tacit.training import LatentGraphModel

ALLOWED_LAGS = "predictor.allowed"
KINDS: Mapping[str, Callable[[BernoulliGraph, Mapping[str, Any]], GraphDistribution]] = {
    "conditional": ConditionalBernoulliGraph.from_dict,
    "mixture": MixtureGraph.from_dict,
}  # of ``situations`` in a record
PRIOR = "prior."  # prefix of the names of the tensors of a prior


@dataclass(eq=False)
class Fitted:
    """The result of a fit.

    ``own``        the predictor, if it was passed as an object
    ``weights``    tensors of a model whose custom predictor was not passed yet
    ``forecasts``  of the test part, for the report; None if the run was stopped
    ``background``  of the nodes over time, for the report; None if no node has one
    ``equations``  the mean equations of the nodes with the covariance of their weights, for effects; None if the means
                   are not linear
    ``restored``   whether it was read from a file: its model predicts, and needs its loss and priors to be trained
    """

    record: Record
    edges: EdgeTable
    history: list[dict[str, Any]]
    config: FitConfig
    preparation: Preparation
    _model: LatentGraphModel | None
    own: Predictor | None = None
    weights: Mapping[str, Tensor] | None = None
    restored: bool = False
    forecasts: ForecastTable | None = None
    background: BackgroundTable | None = None
    equations: MeanEquations | None = None

    @property
    def graph(self) -> GraphDistribution:
        """The learned distribution of graphs; it does not require the predictor."""
        if self._model is not None:
            return self._model.graph
        return _restored_graph(self.config, self.preparation, self.weights or {}, self.record.situations)

    @property
    def model(self) -> LatentGraphModel:
        """The trained model."""
        if self._model is None:
            raise InputError(
                "only the weights of the predictor are stored; pass the module with set_params(predictor=...), or "
                "load(path, predictor=...)"
            )
        return self._model

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return self.preparation.nodes

    @property
    def table(self) -> EdgeTable:
        """The table of edges, with the probabilities of the graph and which edges are learned or required."""
        fdr = float(self.record.evidence.get("fdr", self.config.assessment.fdr))
        return replace(self.graph.described(self.edges), keep=self.record.keep, fdr=fdr)

    @property
    def run(self) -> Run:
        """The run as read from a run directory; reports are drawn from it."""
        return run_of(self.record, self.table, self.history, self.forecasts, self.background)

    def write(self, directory: Path) -> None:
        """Write the files of a run directory."""
        require(
            self.config.predictor.kind != OWN,
            "a run directory cannot store a custom predictor; use save, which stores its weights",
        )
        shown = self.forecasts, self.background
        write_run(directory, self.record, self.model, self.history, self.table, *shown, self._further)

    @classmethod
    def read(cls, directory: Path, device: torch.device) -> "Fitted":
        """Read a run directory; loading runs no code, and a damaged file is an :class:`InputError`."""
        record = read_record(directory)
        require(
            bool(record.preparation),
            f"{directory} must be a run of tacit fit, got a run of another command; pass one of tacit fit",
        )
        try:
            parts = _stored_choices(record)
            situations = record.situations
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _damaged(directory, f"{RECORD}: {_line(error)}") from None
        tensors = read_model(directory, record)
        try:
            model = restored_model(*parts, tensors, OwnParts(), situations=situations).to(device).eval()
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            raise _damaged(directory, f"{MODEL}: {_line(error)}") from None
        edges, equations = EdgeTable(model.graph.index(record.node_names)), MeanEquations.from_tensors(tensors)
        return cls(record, edges, [], *parts, model, restored=True, equations=equations)

    @classmethod
    def read_all(cls, directory: Path, device: torch.device) -> "Fitted":
        """Read a run directory with what it knows of its edges and of its training."""
        fitted, run = cls.read(directory, device), read_run(directory)
        edges = replace(run.edges.updated(required=None), listed_from=None)
        if not (np.isnan(edges["probability"]) & edges.kept).any():  # all are those of the model
            edges = edges.updated(probability=None)
        return replace(fitted, edges=edges, history=run.history, forecasts=run.forecasts, background=run.background)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the values for JSON, and the tensors."""
        text = {
            "record": self.record.model_dump(mode="json"),
            "edges": self.edges.to_dict(),
            "history": self.history,
            "forecasts": None if self.forecasts is None else self.forecasts.text(self.record.node_names),
            "background": None if self.background is None else self.background.text(self.record.node_names),
        }
        return text, dict(self.weights or {}) if self._model is None else {**model_tensors(self.model), **self._further}

    @property
    def _further(self) -> dict[str, Tensor]:
        """Tensors that are stored beside those of the model."""
        return {} if self.equations is None else self.equations.tensors()

    @classmethod
    def from_parts(cls, text: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> "Fitted":
        """Return the fit from :meth:`to_parts`; pass a custom predictor to :meth:`take_predictor` afterwards."""
        record = Record.model_validate(text["record"])
        config, preparation = _stored_choices(record)
        start = empty_graph(config, preparation, _restored_candidates(preparation, tensors))
        edges = EdgeTable.from_dict(text["edges"], start.index(preparation.nodes))
        shown = text.get("forecasts")
        forecasts = None if shown is None else read_forecasts(shown, record.node_names)
        curves = text.get("background")
        background = None if curves is None else read_background(curves, record.node_names)
        fitted = cls(
            record,
            edges,
            list(text["history"]),
            config,
            preparation,
            None,
            weights=dict(tensors),
            restored=True,
            forecasts=forecasts,
            background=background,
            equations=MeanEquations.from_tensors(tensors),
        )
        if config.predictor.kind != OWN:
            fitted._build(OwnParts(), device)
        return fitted

    def take_predictor(self, predictor: Predictor, device: torch.device) -> None:
        """Load the stored weights into a module with the structure of the fitted one."""
        try:
            self._build(OwnParts(predictor=predictor), device)
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"predictor must have the structure of the fitted one, got another ({_line(error)}); pass that one"
            ) from None
        self.own = predictor

    def make_trainable(self, train: Pairs, prior: EdgePrior | None, own: OwnParts) -> None:
        """Restore the loss and the priors of a model that was read from a file."""
        device, tensors = self.graph.raw.device, model_tensors(self.model)
        parts = self.config, self.preparation, tensors, own
        self._model = restored_model(*parts, train=train, prior=prior).to(device).eval()
        self.restored = False

    def _build(self, own: OwnParts, device: torch.device) -> None:
        parts, situations = (self.config, self.preparation, self.weights or {}, own), self.record.situations
        self._model = restored_model(*parts, situations=situations).to(device).eval()
        self.weights = None


def restored_model(
    config: FitConfig,
    preparation: Preparation,
    tensors: Mapping[str, Tensor],
    own: OwnParts,
    *,
    train: Pairs | None = None,
    prior: EdgePrior | None = None,
    situations: Mapping[str, Any] | None = None,
) -> LatentGraphModel:
    """Return the model with these tensors; raise ValueError if one is missing or of another shape or type.

    ``situations``  the field of the record: how the graph depends on the situation, or its regimes
    """
    model = empty_model(config, preparation, _restored_candidates(preparation, tensors), own, train, prior)
    model.graph = with_situations(model.graph, situations or {})
    if ALLOWED_LAGS in tensors and isinstance(model.predictor, GraphFilter):
        model.predictor.restrict_lags(tensors[ALLOWED_LAGS])
    state = model.state_dict()
    for name, value in state.items():
        if name.startswith(PRIOR):  # it is made from the config and the data
            continue
        found = _kind(tensors[name]) if name in tensors else "none"
        if found != _kind(value):
            raise ValueError(f"must have {name} of {_kind(value)}, got {found}")
        state[name] = tensors[name]
    model.load_state_dict(state)
    return model


def with_situations(graph: GraphDistribution, situations: Mapping[str, Any]) -> GraphDistribution:
    """Return a graph of the kind that a record describes, of the right shapes; the same one if it is constant."""
    if "graph" not in situations:
        return graph
    assert isinstance(graph, BernoulliGraph)
    return KINDS[situations["kind"]](graph, situations["graph"])


def _restored_graph(
    config: FitConfig, preparation: Preparation, tensors: Mapping[str, Tensor], situations: Mapping[str, Any]
) -> GraphDistribution:
    start = empty_graph(config, preparation, _restored_candidates(preparation, tensors))
    graph = with_situations(config.model.build_graph(start), situations)
    graph.load_state_dict({name: tensors[f"graph.{name}"] for name in graph.state_dict()})
    return graph


def _restored_candidates(preparation: Preparation, tensors: Mapping[str, Tensor]) -> CandidateEdges | None:
    """Return the table of candidates of a model, if it has one."""
    if not any(name.startswith(CANDIDATES) for name in tensors):
        return None
    return CandidateEdges(len(preparation.nodes), *(tensors[f"{CANDIDATES}.{name}"] for name in CandidateEdges.stored))


def _stored_choices(record: Record) -> tuple[FitConfig, Preparation]:
    return FitConfig.model_validate(record.config), stored_preparation(record.preparation)


def _kind(tensor: Tensor) -> str:
    return f"shape {tuple(tensor.shape)} and type {str(tensor.dtype).removeprefix('torch.')}"


def _damaged(directory: Path, what: str) -> InputError:
    return InputError(f"{directory} is a damaged run ({what}); run tacit fit again")


def _line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    lacking = "lacks " if isinstance(error, KeyError) else ""
    return lacking + (str(error).strip() or type(error).__name__).splitlines()[0][:150]
