"""Controls: the same model, trained with no graph and with the full graph.

They show how much a learned graph improves the forecast: what the model loses when its edges are all taken away, or
all put in. Entries that a rule of the user holds fixed stay as they are in both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tacit.data import Pairs
from tacit.errors import require
from tacit.shapes import EdgeMask
from tacit.training import (
    FitSettings,
    LatentGraphModel,
    Progress,
    fit,
    start_at_regression,
    steps_read,
    with_fixed_graph,
)


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
    dropped: EdgeMask | None = None,
    at_regression: bool = False,
    closed_form: bool = False,
    seeds: Sequence[int] = (0,),
    compile: bool = True,
    on_progress: Callable[[Progress], None] | None = None,
) -> GraphControls:
    """Train the predictor of ``model`` again, from new starts, under no edge and under every edge.

    The model itself is not touched. A predictor that is known, without anything to train, is taken as it is.
    Pass the settings and seeds of the model's own fit, so that the comparison is fair. Edges that are fixed because the
    data speak against them, not because of a rule, are ``dropped``: among every edge they are too.
    With ``at_regression`` linear filters start where regressions point, and with ``closed_form`` they stay there.

    >>> from tacit.graph import BernoulliGraph
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
        f"model must be a LatentGraphModel, got {type(model).__name__}; build one",
    )
    graph = model.graph
    graph.require_all_pairs("graph_controls")
    ruled = graph.fixed if dropped is None else graph.fixed & ~dropped.to(graph.fixed.device)
    controls = [with_fixed_graph(model, torch.where(ruled, graph.fixed_probs, value)) for value in (0.0, 1.0)]
    if any(parameter.requires_grad for part in (model.predictor, model.observation) for parameter in part.parameters()):
        for control in controls:
            started = at_regression and start_at_regression(control, train)
            read, window = steps_read(control, train)
            if started and closed_form and (read == window or control.observation.joint):
                continue
            result = fit(
                control,
                train,
                validation,
                settings,
                seeds=seeds,
                compile=compile,
                start_at_model=started,
                on_progress=on_progress,
            )
            if result.interrupted:
                raise KeyboardInterrupt
    return GraphControls(*controls)
