"""Kinds of predictors by name: how each is built, and its defaults.

A kind is registered by one line in the file of its module. From outside the package:

>>> from tacit.registry import PREDICTORS
>>> kind = PredictorKind(lambda sizes, options, candidates, observation: nn.Identity(), uses=("hidden",))
>>> PREDICTORS.add("identity", kind)
>>> PREDICTORS["identity"].replicas
1
>>> PREDICTORS.remove("identity")
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import nn

from tacit.errors import InputError
from tacit.graph import CandidateEdges


@dataclass(frozen=True)
class Sizes:
    """The sizes of the data that a predictor is built for; pairs without time have a window of 1.

    ``known``, ``levels``  columns of a node after its window, and how many of them are levels; see
                           :class:`~tacit.predictors.SeriesLayout`
    ``background``         how many of them are columns of the background: the last ones
    """

    num_nodes: int
    window: int
    num_features: int
    out_channels: int
    known: int = 0
    levels: int = 0
    background: int = 0

    @property
    def in_channels(self) -> int:
        """Number of inputs of one node: lags times features, and the known columns."""
        return self.window * self.num_features + self.known


@runtime_checkable
class Options(Protocol):
    """User options, ``[predictor]`` in the config; ``uses`` of a kind names the ones that it supports."""

    kind: str
    hidden: int | tuple[int, ...]
    layers: int
    num_hops: int
    activation: Any
    residual: bool | None
    options: Mapping[str, Any]


def one_width(options: Options) -> int:
    """Return the width of the hidden layers, for a predictor whose layers have equal width."""
    if isinstance(options.hidden, int):
        return options.hidden
    raise InputError(
        f"hidden in [predictor] must be one number for '{options.kind}', got {options.hidden}; pass for example 32"
    )


def widest(sizes: Sizes, options: Options) -> int:
    """Return the largest number of channels of a message: the width of the hidden layers."""
    hidden = options.hidden
    return max(hidden, default=sizes.in_channels) if isinstance(hidden, tuple) else hidden


@dataclass(frozen=True)
class PredictorKind:
    """A factory of predictors, with defaults.

    ``build``          builds the module from sizes, options, the table of candidates (None for all pairs of nodes) and
                       the name of the observation model; a fit replaces its initial weights
    ``uses``           the options that it supports; others raise an error
    ``scaled``         it is trained on data with mean 0 and standard deviation 1; otherwise on the original values
    ``predicts_change``  for series the last value is added to its output by default
    ``warm_start``     the module is a :class:`~tacit.predictors.GraphFilter`, whose weights start at a ridge regression
    ``background``     each node has weights of its own for the columns of the background
    ``observation``    name of its default observation model for series
    ``learning_rate``, ``steps``, ``replicas``  defaults of its training
    ``quick``          it trains in seconds on a CPU: standard errors and controls are computed by default
    ``compiles``       compiling its step saves time in long training runs
    ``lag_ranges``     it can restrict the lags at which an edge acts: its module has ``restrict_lags``
    ``gated_by_inputs``  edges may depend on the inputs of their nodes: the module has no layer that could absorb this
    ``edge_weights``   number of weights per edge
    ``edge_channels``  number of channels of a message, for memory estimates
    ``num_layers``     number of message-passing layers
    """

    build: Callable[[Sizes, Any, CandidateEdges | None, str], nn.Module]
    uses: tuple[str, ...] = ()
    scaled: bool = True
    predicts_change: bool = False
    warm_start: bool = False
    background: bool = False
    observation: str = "gaussian"
    learning_rate: float = 0.003
    steps: int = 1500
    replicas: int = 1
    quick: bool = False
    compiles: bool = False
    lag_ranges: bool = False
    gated_by_inputs: bool = False
    edge_weights: Callable[[Sizes], int] = lambda _: 0  # all edges share the weights
    edge_channels: Callable[[Sizes, Any], int] = widest
    num_layers: Callable[[Any], int] = lambda options: options.layers
