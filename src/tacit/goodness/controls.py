"""Controls: the same model, trained with no graph and with the full graph.

What a learned graph is worth is what the model loses when its edges are all taken away, or all put in. Entries that a
rule of the user holds fixed stay as they are in both.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tacit.data import Pairs
from tacit.errors import require
from tacit.graph import BernoulliGraph
from tacit.training import FitSettings, LatentGraphModel, Progress, fit


@dataclass(frozen=True)
class GraphControls:
    """Models like the one asked about: ``absent`` reads no edge, ``present`` reads every edge."""

    absent: LatentGraphModel
    present: LatentGraphModel

    def by_name(self) -> dict[str, LatentGraphModel]:
        """Return the models under the names that tables use."""
        return {"no graph": self.absent, "full graph": self.present}


def graph_controls(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings | None = None,
    *,
    seeds: Sequence[int] = (0,),
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> GraphControls:
    """Train the predictor of ``model`` anew, from fresh starts, under no edge and under every edge.

    The model itself is not touched. A predictor that is known, without anything to train, is taken as it is.
    Pass the settings and seeds of the model's own fit, so that the comparison is fair.

    >>> from tacit.losses import EnergyScore
    >>> from tacit.predictors import HopPredictor
    >>> known = HopPredictor(torch.ones(1, 1, 1)).requires_grad_(False)
    >>> model = LatentGraphModel(BernoulliGraph(torch.full((2, 2), 0.5)), known, EnergyScore())
    >>> pairs = Pairs(torch.ones(4, 2, 1), torch.ones(4, 2, 1))
    >>> graph_controls(model, pairs, pairs).present.graph.edge_probs.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    require(
        isinstance(model, LatentGraphModel),
        f"model needs a LatentGraphModel, got {type(model).__name__}; build one",
    )
    controls = [held_at(model, value) for value in (0.0, 1.0)]
    if any(parameter.requires_grad for parameter in model.predictor.parameters()):
        for control in controls:
            fit(control, train, validation, settings, seeds=seeds, compile=compile, on_progress=on_progress)
    return GraphControls(*controls)


def held_at(model: LatentGraphModel, value: float) -> LatentGraphModel:
    """Return a copy of a model whose edges all have one probability, except those that were held fixed before.

    It has no prior: there is nothing left that one could say something about.
    """
    control, graph = copy.deepcopy(model), model.graph
    probs = torch.where(graph.fixed, graph.fixed_probs, value)
    held = torch.ones_like(graph.fixed)
    control.graph = BernoulliGraph(probs, fixed=held, link=graph.link, symmetric=graph.symmetric)
    control.prior = None
    return control
