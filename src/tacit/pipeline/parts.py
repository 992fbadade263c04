"""Parts of a model that are passed as objects, and the choice between a matrix of edges and a table of candidates."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from tacit.config import OWN, PredictorOptions
from tacit.errors import InputError, require
from tacit.graph import CandidateEdges
from tacit.losses import Loss
from tacit.predictors import PredictorKind, Sizes
from tacit.registry import PREDICTORS

Predictor = nn.Module | Callable[..., nn.Module]


@dataclass(frozen=True, eq=False)
class OwnParts:
    """A predictor (a module, or a function that makes one), a loss, candidates (a table or a mask); None if named."""

    predictor: Predictor | None = None
    loss: Loss | None = None
    candidates: CandidateEdges | Tensor | None = None

    def kind(self, options: PredictorOptions) -> PredictorKind:
        """Return the kind of predictor of the options, or that of the custom predictor."""
        if options.kind != OWN:
            kind: PredictorKind = PREDICTORS[options.kind]
            return kind
        if self.predictor is None:
            raise InputError(
                f"kind '{OWN}' in [predictor] is a custom module, and only its weights are stored; pass it as "
                "predictor="
            )
        return own_kind(self.predictor)


def own_kind(predictor: Predictor) -> PredictorKind:
    """Return the kind of a custom module, which gets unscaled numbers; a copy of it is trained.

    A function is called with the keywords ``num_nodes``, ``in_channels`` and ``channels``.
    """

    def build(sizes: Sizes, _options: Any, _candidates: CandidateEdges | None, _observation: str) -> nn.Module:
        if isinstance(predictor, nn.Module):
            return copy.deepcopy(predictor)
        require(callable(predictor), f"predictor must be a module or a function that makes one, got {predictor!r}")
        made = predictor(num_nodes=sizes.num_nodes, in_channels=sizes.in_channels, channels=sizes.out_channels)
        if not isinstance(made, nn.Module):
            raise InputError(
                f"predictor must be a function that returns a torch.nn.Module, got {type(made).__name__}; return one"
            )
        return made

    return PredictorKind(
        build,
        scaled=False,
        observation="none",
        learning_rate=0.01,
        replicas=4,
        quick=True,
        compiles=True,
        edge_channels=lambda sizes, _: sizes.in_channels,
    )


# Up to this number of nodes, a learned model is expanded to all pairs of nodes (160,000) for standard errors, flags and
# other graphs; edges.csv is then 6 MB, and a heatmap is still readable. All grow with the square of the nodes.
MOST_EXPANDED = 400
