"""What a fit found: enough to predict, and to be put away and read back."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn

from tacit.data import Pairs
from tacit.data.units import ChannelUnits
from tacit.errors import InputError, require, require_whole
from tacit.graph import BernoulliGraph, GraphDistribution, Slots, require_memory
from tacit.losses import EnergyScore
from tacit.observation import ObservationModel
from tacit.own_data.layout import MOST_EXPANDED
from tacit.randomness import generator_for
from tacit.records import SLOT_PARTS, with_observation
from tacit.shapes import EdgeMask, Samples
from tacit.sklearn.building import PredictorSpec, Sizes
from tacit.sklearn.edge_errors import EdgeErrors
from tacit.sklearn.tables import Values
from tacit.training import LatentGraphModel

# Numbers per channel that a prediction works on at once: 2^22 floats are 16 MiB.
MOST_NUMBERS = 2**22
OLD_ERRORS = "standard errors of an older kind were left out; call estimate_std_errors(X, y) for those of today"


@dataclass
class Fitted:
    """The trained parts, the units they work in and how they came about.

    ``spec``  the words and numbers that the predictor is built from again
    ``flat``  targets had no axis of channels
    ``errors``, ``identifiable``  how far edge probabilities may be off, and which edges the data can tell, once asked
    ``weights``  those of a predictor that was read from a file and is not built yet
    """

    sizes: Sizes
    nodes: list[str]
    channels: list[str] | None
    flat: bool
    input_units: ChannelUnits
    target_units: ChannelUnits
    spec: PredictorSpec
    graph: GraphDistribution
    predictor: nn.Module | None
    observation: ObservationModel
    history: list[dict[str, Any]]
    replicas: list[dict[str, Any]]
    best_replica: int
    notes: list[str]
    errors: EdgeErrors | None = None
    identifiable: EdgeMask | None = None
    weights: dict[str, Tensor] = field(default_factory=dict)

    @property
    def edge_probs(self) -> Float32[np.ndarray, "node node"]:
        """The learned probabilities, row receives, column sends."""
        self.require_matrix("edge_probs_")
        probs: np.ndarray = self.graph.edge_probs.detach().cpu().numpy()
        return probs

    def require_matrix(self, name: str) -> None:
        """Raise :class:`InputError` if what is asked needs an entry for each pair of nodes, and there is a table."""
        require(
            self.graph.slots is None,
            f"{name} needs all pairs of nodes, which are kept for up to {MOST_EXPANDED} nodes, got "
            f"{self.sizes.num_nodes:,}; use edges_, which lists the candidates",
        )

    @property
    def built_predictor(self) -> nn.Module:
        """The trained predictor."""
        if self.predictor is None:
            raise InputError("predictor is not built yet; call take_predictor first")
        return self.predictor

    def model(self) -> LatentGraphModel:
        """Return the trained parts as a model to ask, not to train: its loss is not that of the fit."""
        return LatentGraphModel(self.graph, self.built_predictor, EnergyScore(), observation=self.observation)

    def pairs(self, inputs: Values, targets: Values) -> Pairs:
        """Return pairs in the units of training, on the device of the graph."""
        device = self.graph.raw.device
        scaled = self.input_units.scaled(inputs), self.target_units.scaled(targets)
        return as_pairs(*(torch.tensor(values, dtype=torch.float32, device=device) for values in scaled))

    def samples(self, inputs: Values, num_graphs: int, seed: int, *, noise: str) -> Iterator[Samples]:
        """Yield samples for some pairs after another, in the units of training, all under the same graphs.

        Where the predictor has ``noise``, it is "left out" (samples are means), "shared" by all pairs, so that a
        prediction does not depend on its neighbours, or drawn for each pair of its "own".
        """
        predictor, device = self.built_predictor, self.graph.raw.device
        generator = generator_for(seed, "graphs of a prediction", device)
        require_whole("num_graphs", num_graphs)
        what, remedy = f"a prediction under {num_graphs:,} graphs", "lower point_graphs, or num_graphs"
        require_memory(9 * num_graphs * self.graph.fixed.numel(), device, what, remedy)
        graphs = self.graph.sample(num_graphs, generator=generator)
        rows = max(1, MOST_NUMBERS // (num_graphs * self.sizes.num_nodes))
        uniforms: Tensor | None = None
        for start in range(0, len(inputs), rows):
            scaled = self.input_units.scaled(inputs[start : start + rows])
            with torch.no_grad():
                inputs_now = torch.tensor(scaled, dtype=graphs.dtype, device=device)
                outputs = predictor(inputs_now, self.graph.for_reading(graphs))
                described = self.observation.describe(outputs, inputs_now)
                means = samples = self.observation.mean(described)
                if self.observation.random and noise == "own":
                    samples = self.observation.draw(described, generator=generator)
                elif self.observation.random and noise == "shared":
                    if uniforms is None:
                        normals = torch.randn(means[:1].shape, generator=generator, device=device, dtype=means.dtype)
                        uniforms = torch.special.ndtr(normals)
                    samples = self.observation.sample(described, uniforms)
            yield samples.cpu()

    def in_units_of_targets(self, values: Tensor) -> np.ndarray:
        """Return predictions or samples as the user's targets were given."""
        numbers = self.target_units.restored(values.double().numpy())
        return numbers[..., 0] if self.flat else numbers

    def text(self) -> dict[str, Any]:
        """Return what JSON can hold of it."""
        return {
            "sizes": asdict(self.sizes),
            "nodes": self.nodes,
            "channels": self.channels,
            "flat": self.flat,
            "units": [units.to_dict() for units in (self.input_units, self.target_units)],
            "spec": asdict(self.spec),
            "symmetric": self.graph.symmetric,
            "history": self.history,
            "replicas": self.replicas,
            "best_replica": self.best_replica,
            "notes": self.notes,
            "errors": None if self.errors is None else self.errors.text(),
        }

    def tensors(self) -> dict[str, Tensor]:
        """Return the rest."""
        weights = self.predictor_weights()
        tensors = {f"graph.{name}": value for name, value in self.graph.state_dict().items()}
        tensors |= {f"predictor.{name}": value for name, value in weights.items()}
        tensors |= {f"observation.{name}": value for name, value in self.observation.state_dict().items()}
        if self.graph.slots is not None:
            tensors |= {f"slots.{name}": getattr(self.graph.slots, name) for name in SLOT_PARTS}
        if self.errors is not None:
            tensors |= {f"errors.{name}": value for name, value in self.errors.tensors().items()}
        return tensors if self.identifiable is None else {**tensors, "identifiable": self.identifiable}

    def predictor_weights(self) -> dict[str, Tensor]:
        """Return the weights of the predictor, built or not."""
        return self.weights if self.predictor is None else self.predictor.state_dict()

    @classmethod
    def restored(cls, text: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> "Fitted":
        """Return what was stored; a predictor of the user's own still has to be taken in.

        Files written before there was a bagged estimate hold ``std_errors``, those of one fit: they are left out.
        """
        names = ("graph", "predictor", "observation", "errors", "identifiable", "std_errors", "slots")
        parts: dict[str, dict[str, Tensor]] = {name: {} for name in names}
        for name, value in with_observation(dict(tensors)).items():
            part, _, rest = name.partition(".")
            parts[part][rest] = value
        start = torch.where(parts["graph"]["fixed"], parts["graph"]["fixed_probs"], 0.5)
        table = parts["slots"]
        slots = Slots(len(text["nodes"]), *(table[name] for name in SLOT_PARTS)) if table else None
        graph = BernoulliGraph(start, parts["graph"]["fixed"], symmetric=text["symmetric"], slots=slots)
        graph.load_state_dict(parts["graph"])
        input_units, target_units = (ChannelUnits.from_dict(stored) for stored in text["units"])
        errors, sizes = text.get("errors"), Sizes(**text["sizes"])
        spec = PredictorSpec(**{**text["spec"], "hidden": tuple(text["spec"]["hidden"])})
        observation = spec.observation(sizes)
        observation.load_state_dict(parts["observation"])
        fitted = cls(
            sizes,
            text["nodes"],
            text["channels"],
            text["flat"],
            input_units,
            target_units,
            spec,
            graph.to(device),
            None,
            observation.to(device),
            text["history"],
            text["replicas"],
            text["best_replica"],
            text["notes"] + [OLD_ERRORS] * len(parts["std_errors"]),
            None if errors is None else EdgeErrors.restored(errors, parts["errors"]),
            parts["identifiable"].get(""),
            parts["predictor"],
        )
        if fitted.spec.predictor is not None:
            fitted.take_predictor(None)
        return fitted

    def take_predictor(self, own: Any) -> None:
        """Build the predictor, of the user's ``own`` if it has no name, and give it the stored weights."""
        predictor = self.spec.build(self.sizes, own, seed=0, slots=self.graph.slots).to(self.graph.raw.device)
        try:
            predictor.load_state_dict(self.weights)
        except RuntimeError as error:
            first = str(error).splitlines()[-1].strip()
            raise InputError(f"predictor needs to be like the one that was fitted, but: {first}; pass that") from None
        self.predictor = predictor


def as_pairs(inputs: Tensor, targets: Tensor) -> Pairs:
    """Return pairs; NaN marks a missing target."""
    return Pairs.with_missing(inputs, targets) if targets.isnan().any() else Pairs(inputs, targets)
