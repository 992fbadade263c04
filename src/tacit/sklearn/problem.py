"""One fit as a problem: the parameters of the estimator and the user's tables become pairs, a model and settings."""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tacit.config import DemoConfig
from tacit.data import Pairs
from tacit.data.resampling import usual_block
from tacit.data.series import LARGEST, RESCALE
from tacit.data.units import ChannelUnits
from tacit.errors import InputError, require, require_whole
from tacit.graph import (
    BernoulliGraph,
    EdgePrior,
    EdgeRules,
    Slots,
    correlated_pairs,
    require_memory,
    step_bytes,
)
from tacit.losses import KernelScore, integrating_noise
from tacit.own_data.layout import MOST_EXPANDED, usual_layout
from tacit.predictors import noisy_channels
from tacit.randomness import generator_for
from tacit.sklearn.building import PredictorSpec, Sizes, build_config, plain, split_rows, torch_device
from tacit.sklearn.fitted import Fitted, as_pairs
from tacit.sklearn.saved import NotStored
from tacit.sklearn.tables import Table
from tacit.training import FitResult, LatentGraphModel, Progress, densify_result, fit
from tacit.uncertainty import EdgeUncertainty, bootstrap

MODEL_KEYS = ("loss", "scope", "num_graphs")
TRAINING_KEYS = ("epochs", "batch_size", "learning_rate", "predictor_rate", "replicas", "compile")
# Steps of the fit times resamples, which take a third of the steps: measured with 32 resamples on three nodes and two
# cores, compiling took 12 s and saved 6 ms in every step of each resample.
COMPILE_RESAMPLES_FROM = 6000


@dataclass(frozen=True)
class Problem:
    """What to learn, and from what; all checks that need both are made here.

    ``earlier``  what was fitted before, where the question is about that: names and units are then its own
    """

    parameters: Mapping[str, Any]
    inputs: Table
    targets: Table
    earlier: Fitted | None = None

    @property
    def seed(self) -> int:
        """The seed of everything random."""
        seed: int = self.parameters["seed"]
        return seed

    @cached_property
    def sizes(self) -> Sizes:
        """Nodes and channels."""
        _, num_nodes, in_channels = self.inputs.values.shape
        return Sizes(num_nodes, in_channels, self.targets.values.shape[2])

    @cached_property
    def nodes(self) -> list[str]:
        """The names of the nodes, or their places as words."""
        if self.earlier is not None:
            return self.earlier.nodes
        return self.inputs.nodes or self.targets.nodes or [str(place) for place in range(self.sizes.num_nodes)]

    @cached_property
    def rows(self) -> tuple[Tensor, Tensor]:
        """The pairs to train on and those to validate on."""
        fraction, shuffle = plain(self.parameters["validation_fraction"]), self.parameters["shuffle"]
        return split_rows(len(self.inputs.values), fraction, shuffle, self.seed)

    @cached_property
    def spec(self) -> PredictorSpec:
        """The predictor in words."""
        predictor, hidden, num_hops, noise, loss = (
            self.parameters[name] for name in ("predictor", "hidden", "num_hops", "noise", "loss")
        )
        if isinstance(noise, str) and noise == "auto":
            learnable = loss in ("energy", "mmd") if isinstance(loss, str) else isinstance(loss, KernelScore)
            noise = "node" if learnable and _is_scaled(predictor) else "none"
        return PredictorSpec.of(predictor, hidden, num_hops, noise)

    @cached_property
    def units(self) -> tuple[ChannelUnits, ChannelUnits]:
        """The units of inputs and targets, from the training part."""
        scale = self.parameters["scale"]
        require(scale in ("auto", True, False), f"scale needs 'auto', True or False, got {scale!r}; use 'auto'")
        if scale == "auto":
            scale = _is_scaled(self.parameters["predictor"])
        if not scale:
            return ChannelUnits.unchanged(self.sizes.in_channels), ChannelUnits.unchanged(self.sizes.channels)
        train = self.rows[0].numpy()
        for name, table in (("X", self.inputs), ("y", self.targets)):
            large = float(np.abs(table.values[~np.isnan(table.values)]).max(initial=0))
            require(
                large <= LARGEST, f"{name} needs numbers of at most {LARGEST:g}, got one of size {large:.3g}; {RESCALE}"
            )
        return ChannelUnits.of(self.inputs.values[train]), ChannelUnits.of(self.targets.values[train])

    @cached_property
    def pairs(self) -> Pairs:
        """All pairs, in these units, on the device."""
        if self.earlier is not None:
            return self.earlier.pairs(self.inputs.values, self.targets.values)
        tables = zip(self.units, (self.inputs, self.targets), strict=True)
        device = torch_device(self.parameters["device"])
        inputs, targets = (torch.tensor(u.scaled(t.values), dtype=torch.float32, device=device) for u, t in tables)
        return as_pairs(inputs, targets)

    @cached_property
    def config(self) -> DemoConfig:
        """The checked choices of model and training."""
        model, training = ({key: self.parameters[key] for key in keys} for keys in (MODEL_KEYS, TRAINING_KEYS))
        if not isinstance(model["loss"], str):
            model["scope"] = getattr(model.pop("loss"), "scope", "node")
        elif model["loss"] == "elbo":  # the one loss that holds its prior itself
            model |= {key: self.parameters[key] for key in ("prior", "prior_weight")}
        return build_config(model, training, len(self.rows[0]))

    @cached_property
    def rules(self) -> EdgeRules:
        """What is known of the edges."""
        edges = {key: _edges(key, self.parameters[key]) for key in ("forbidden", "required", "candidates")}
        if self.parameters["correlated"] is not None:
            require(edges["candidates"] is None, "correlated and candidates both say which edges can be; keep one")
            edges["candidates"] = self._correlated(plain(self.parameters["correlated"]))
        prior = self.parameters["prior"]
        return EdgeRules(
            tuple(self.nodes),
            **edges,
            symmetric=self.parameters["symmetric"],
            self_loops=self.parameters["self_loops"],
            priors=prior if isinstance(prior, Mapping) else {},
        )

    def _correlated(self, k: int) -> Slots:
        """Return the candidates whose inputs go most with a node's targets, in the training pairs."""
        train, nodes = self.rows[0].numpy(), self.sizes.num_nodes
        require_whole("correlated", k)
        require(k < nodes, f"correlated needs to be below the number of nodes, {nodes}, got {k}; lower it")
        targets, inputs = (torch.from_numpy(table.values[train]) for table in (self.targets, self.inputs))
        return correlated_pairs(targets, inputs, k)

    @cached_property
    def over_table(self) -> bool:
        """Is the graph held as a table of candidates?"""
        layout = self.parameters["layout"]
        require(
            layout in ("auto", "matrix", "table"),
            f"layout needs one of auto, matrix, table, got {layout!r}; use 'auto'",
        )
        usual, _ = usual_layout(layout, self.rules)
        return (usual if layout == "auto" else layout) == "table"

    def build(self) -> LatentGraphModel:
        """Return a fresh model; what memory would not hold is refused before it is made."""
        self._require_stored()
        self._require_room()
        graph = self.rules.build(generator=generator_for(self.seed, "graph"), over_table=self.over_table)
        predictor = self.spec.build(self.sizes, self.parameters["predictor"], self.seed, graph.slots)
        return self._model(graph, predictor)

    def _require_room(self) -> None:
        nodes, training = self.sizes.num_nodes, self.config.training
        rows, slots = self.rules.slots.senders.shape if self.over_table else (nodes, nodes)
        batch = min(training.batch_size, len(self.rows[0]))
        step = step_bytes(
            rows=rows,
            slots=slots,
            num_graphs=self.config.model.num_graphs,
            draws=batch,
            batch=batch,
            nodes=nodes,
            channels=max(self.sizes.in_channels, *self.spec.hidden) if self.spec.hidden else self.sizes.in_channels,
        )
        what = "the candidates" if self.over_table else "all pairs"
        remedy = "name fewer candidates (candidates, correlated), or lower batch_size, num_graphs or replicas"
        device = torch_device(self.parameters["device"])
        loss = self.parameters["loss"]
        if isinstance(loss, str) and loss in ("energy", "mmd"):
            step += 4 * batch * self.config.model.num_graphs**2 * nodes  # every two graphs are compared
        require_memory(training.replicas * step, device, f"a fit over {what} of {nodes:,} nodes", remedy)

    def _model(self, graph: BernoulliGraph, predictor: nn.Module) -> LatentGraphModel:
        """Return a model of these parts with loss and prior as chosen."""
        loss = self.parameters["loss"]
        if isinstance(loss, str):
            loss = self.config.model.build_loss(self.pairs.targets[self.rows[0]])
        if noisy_channels(predictor) is not None:
            loss = integrating_noise(loss, self.sizes.channels)
        prior = None if self.parameters["loss"] == "elbo" else self._build_prior(graph.slots)
        return LatentGraphModel(graph, predictor, loss, num_graphs=self.config.model.num_graphs, prior=prior)

    def _build_prior(self, slots: Slots | None) -> EdgePrior | None:
        prior, weight = plain(self.parameters["prior"]), plain(self.parameters["prior_weight"])
        if prior is None or isinstance(prior, Mapping):
            return self.rules.prior(weight, over_table=slots is not None)
        if isinstance(prior, list):
            prior = torch.as_tensor(prior, dtype=torch.float32)
            if slots is not None and prior.ndim == 2:
                require(
                    tuple(prior.shape) == (slots.num_nodes, slots.num_nodes),
                    f"prior needs shape {(slots.num_nodes, slots.num_nodes)}, got {tuple(prior.shape)}; pass one "
                    "probability per ordered pair of nodes, or one for all",
                )
                prior = torch.where(slots.used, prior[slots.row_node[:, None], slots.senders], 0.5)
        return EdgePrior(prior, weight)

    def train(self) -> FitResult:
        """Train all replicas from fresh starts."""
        self._warn_of_unseen_nodes()
        training = self.config.training
        train, validation = self.rows
        return fit(
            self.build(),
            self.pairs[train],
            self.pairs[validation],
            training.build(),
            seeds=[self.seed * 1000 + replica for replica in range(training.replicas)],
            compile=training.compile,
            on_progress=_print_epoch if self.parameters["verbose"] else None,
        )

    def bootstrapped(self, earlier: Fitted, num_resamples: int, block: int | None) -> EdgeUncertainty:
        """Return how far the probabilities of an earlier fit may be off; as many epochs count as that fit took."""
        self._require_stored()
        train, validation = self.rows
        if block is None:
            block = 1 if self.parameters["shuffle"] else usual_block(len(train), reach=1)
        settings = replace(self.config.training.build(), epochs=max(1, len(earlier.history)))
        steps = max(1, len(train) // settings.batch_size) * settings.epochs
        auto = self.parameters["compile"] == "auto"
        return bootstrap(
            self._model(earlier.graph, earlier.built_predictor),
            self.pairs[train],
            self.pairs[validation],
            settings,
            replicas=num_resamples,
            block=block,
            seed=self.seed,
            compile=steps * num_resamples >= COMPILE_RESAMPLES_FROM if auto else self.config.training.compile,
            on_progress=_print_epoch if self.parameters["verbose"] else None,
        )

    def fitted(self, result: FitResult) -> Fitted:
        """Return what is kept of a fit, over all pairs of nodes where they are few enough."""
        if self.sizes.num_nodes <= MOST_EXPANDED:
            result = densify_result(result)
        keys = ("epoch", "learning_rate", "train_loss", "validation_loss", "seconds")
        history = [{key: getattr(epoch, key) for key in keys} for epoch in result.history]
        notes = list(result.warnings)
        if self.parameters["epochs"] is None:
            epochs = self.config.training.epochs
            notes.append(f"epochs={epochs}: {result.steps} steps on {len(self.rows[0])} pairs")
        return Fitted(
            self.sizes,
            self.nodes,
            self.inputs.channels,
            self.targets.flat,
            self.units[0],
            self.units[1],
            self.spec,
            result.model.graph,
            result.model.predictor,
            history,
            [asdict(replica) for replica in result.replicas],
            result.best,
            notes,
        )

    def _require_stored(self) -> None:
        for name, value in self.parameters.items():
            if isinstance(value, NotStored):
                raise InputError(f"{name} was a {value.what}, which is not stored; pass it with set_params({name}=...)")

    def _warn_of_unseen_nodes(self) -> None:
        unseen = np.isnan(self.targets.values[self.rows[0].numpy()]).all((0, 2))
        if unseen.any():
            node = self.nodes[int(unseen.argmax())]
            warnings.warn(
                f"y has no value for node {node!r} among the training pairs ({int(unseen.sum())} such nodes); what "
                "it reads cannot be learned well",
                stacklevel=2,
            )


def _is_scaled(predictor: Any) -> bool:
    """Say whether a predictor is one of those that work in any units."""
    return isinstance(predictor, str) and predictor in ("convolution", "filter")


def _edges(name: str, edges: Any) -> Any:
    """Return edges as ``EdgeRules`` takes them; lists of two become pairs, arrays masks."""
    if isinstance(edges, np.ndarray):
        return torch.as_tensor(edges)
    if isinstance(edges, list | tuple | set | frozenset):
        return [tuple(plain(node) for node in edge) if isinstance(edge, list | tuple) else edge for edge in edges]
    if edges is not None and not isinstance(edges, Tensor | Slots):
        raise InputError(f"{name} needs edges as (source, target), got {edges!r}; pass for example [(0, 1)]")
    return edges


def _print_epoch(progress: Progress) -> None:
    """Print a line at the first step of every epoch."""
    if progress.step % max(1, progress.steps // progress.epochs) == 0:
        loss = "" if progress.loss is None else f", loss {progress.loss:.4g}"
        print(f"epoch {progress.epoch + 1} of {progress.epochs}{loss}", flush=True)
