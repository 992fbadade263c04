"""Controls: the same model, trained with no graph and with the full graph.

They show how much a learned graph improves the forecast, compared with no edges and with all edges. Edges that a user's
rule fixes are the same in both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from tacit.data import Pairs
from tacit.errors import require
from tacit.local import start_at_regression, steps_read
from tacit.shapes import EdgeMask
from tacit.training import FitSettings, LatentGraphModel, Progress, fit, with_fixed_graph


@dataclass(frozen=True)
class GraphControls:
    """The control models: ``absent`` has no edge, ``present`` has every edge."""

    absent: LatentGraphModel
    present: LatentGraphModel

    def by_name(self) -> dict[str, LatentGraphModel]:
        """Return the models by the names used in tables."""
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
    """Train the predictor of ``model`` again, from new initial values, with no edge and with every edge.

    The model itself is not changed. A predictor without trainable parameters is used unchanged. Pass the settings and
    seeds of the model's own fit for a fair comparison. ``dropped`` are edges that were fixed because of the data, not
    because of a rule; the control with every edge includes them.
    With ``at_regression`` linear filters start at regressions, and with ``closed_form`` they are not trained further.

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
