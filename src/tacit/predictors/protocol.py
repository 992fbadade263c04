"""The interface of a predictor: a module from (inputs, graphs) to samples.

A custom predictor takes ten lines. ``graphs`` has shape (draw, graph, node, node) with draw = batch, or 1 if the batch
shares its graphs, so use operations that broadcast:

>>> class MeanOfNeighbours(nn.Module):
...     num_hops = 1                       # optional: y_i depends on row i of the graph alone
...     def __init__(self, in_channels: int) -> None:
...         super().__init__()
...         self.lift = nn.Linear(in_channels, 1)
...     def forward(self, inputs, graphs):
...         messages = self.lift(inputs)[:, None]                      # (batch, 1, node, 1)
...         degree = graphs.sum(-1, keepdim=True).clamp_min(1)         # (draw, graph, node, 1)
...         return torch.tanh(graphs @ messages / degree)              # (batch, graph, node, 1)
>>> inputs, graphs = torch.randn(5, 3, 2), torch.ones(1, 4, 3, 3)
>>> MeanOfNeighbours(2)(inputs, graphs).shape
torch.Size([5, 4, 3, 1])

``num_hops = L`` declares locality: the output of node i depends only on rows of the graph that belong to nodes
within L - 1 edges of i. The loss of a node is then credited only to the edges that can affect it. The declaration is
checked numerically before training; a predictor without it is trained with global credit.
Parameters with ``requires_grad=False`` are treated as known.

A predictor returns means; the observation model (:mod:`tacit.observation`) describes the noise. A predictor that
predicts more than the mean of a target returns ``numbers_per_target`` numbers for each target, all means first, and
requires an observation model that uses as many.

A predictor with parameters per edge names them in ``edge_parameters``. Over a table of candidates they have one entry
per slot, and :func:`tacit.training.result` expands them to all pairs of nodes; ``edge_buffers`` names such buffers.

Estimators that differentiate through the graph (straight-through, concrete) call ``relaxed(inputs, graphs)`` if the
predictor has it, else the predictor itself. ``relaxed`` must return the same output for graphs of 0 and 1 and be
differentiable in the graphs. A predictor that multiplies by the graph, as above, already is; one that thresholds the
graph requires ``relaxed``.

Over a table of candidates (:class:`~tacit.graph.CandidateEdges`) a predictor receives
:class:`~tacit.graph.CandidateGraphs`, which support ``graphs @ messages``, ``graphs.sum(-1, keepdim=True)`` and the
diagonal; the predictor above works without changes.
"""

import copy
from typing import Protocol, runtime_checkable

import torch
from torch import Generator, Tensor, nn

from tacit.errors import InputError
from tacit.graph import AnyGraphs
from tacit.shapes import Inputs, Outputs


@runtime_checkable
class Predictor(Protocol):
    """Interface of predictors. Only the call is required; the attributes and methods below are optional.

    ``num_hops``            locality of the output; unknown if missing
    ``numbers_per_target``  numbers per target; if missing 1, the mean
    ``relaxed``             a call that is differentiable in the graphs; if missing, the call itself
    ``initial_parameters``  random weights from a generator; if missing, ``reset_parameters`` of the layers
    ``random_parameters``   random weights, if ``initial_parameters`` returns given ones, as for a warm start
    """

    def __call__(self, inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        """Return the prediction of every pair under each of its graphs."""
        ...


def relaxed_call(predictor: nn.Module) -> Predictor:
    """Return the form of a predictor that is differentiable in the graphs."""
    relaxed: Predictor = getattr(predictor, "relaxed", predictor)
    return relaxed


def num_hops_of(predictor: nn.Module) -> int | None:
    """Return the locality that a predictor declares, or None if it declares none."""
    hops = getattr(predictor, "num_hops", None)
    return hops if isinstance(hops, int) else None


def numbers_per_target_of(predictor: nn.Module) -> int:
    """Return how many numbers a predictor returns for each target; by default 1, the mean."""
    numbers = getattr(predictor, "numbers_per_target", 1)
    if not isinstance(numbers, int) or numbers < 1:
        raise InputError(
            f"numbers_per_target of {type(predictor).__name__} must be a positive integer, got {numbers!r}; set it to "
            "the number of values that it returns for each target channel"
        )
    return numbers


def edge_parameters_of(module: nn.Module) -> tuple[str, ...]:
    """Return the declared names of parameters whose first two axes have one entry per edge."""
    names: tuple[str, ...] = getattr(module, "edge_parameters", ())
    return names


def edge_buffers_of(module: nn.Module) -> tuple[str, ...]:
    """Return the declared names of buffers whose first two axes have one entry per edge."""
    names: tuple[str, ...] = getattr(module, "edge_buffers", ())
    return tuple(name for name in names if getattr(module, name) is not None)


def initial_parameters(module: nn.Module, generator: Generator) -> dict[str, Tensor]:
    """Return random initial values for the trainable parameters of a module.

    A predictor may define a method ``initial_parameters(generator)``. Otherwise every layer that has
    ``reset_parameters`` is reset, as in PyTorch and PyG; parameters that no layer resets keep their current values.
    The state of the global generator does not change.
    """
    own = getattr(module, "initial_parameters", None)
    if own is not None:
        return {name: value.detach() for name, value in own(generator).items()}
    fresh = copy.deepcopy(module)
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(int(torch.randint(2**31, (), generator=generator, device=generator.device)))
        for layer in fresh.modules():
            reset = getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()
    return {name: value.detach() for name, value in fresh.named_parameters() if value.requires_grad}


def random_parameters(module: nn.Module, generator: Generator) -> dict[str, Tensor]:
    """Return random values of the trainable parameters, for checks of the structure of a module.

    A module that starts at given values, which may be 0, has a method ``random_parameters(generator)``.
    """
    own = getattr(module, "random_parameters", None)
    return initial_parameters(module, generator) if own is None else own(generator)


def uniform_within(like: Tensor, bound: float, generator: Generator) -> Tensor:
    """Return uniform numbers in (-bound, bound), with the shape and type of a parameter.

    >>> fresh = uniform_within(torch.zeros(2, 3), 0.1, Generator().manual_seed(0))
    >>> fresh.shape, bool((fresh.abs() <= 0.1).all())
    (torch.Size([2, 3]), True)
    """
    uniforms = torch.rand(like.shape, generator=generator, device=generator.device, dtype=like.dtype)
    return (2 * uniforms - 1) * bound
