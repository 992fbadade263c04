"""The interface of a predictor: a module from (inputs, graphs) to samples.

A user's own, in ten lines. ``graphs`` has shape (draw, graph, node, node) with draw = batch, or 1 when the batch
shares its graphs, so write it to broadcast:

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
within L - 1 edges of i. It lets credit for a node's loss go to the edges that could have caused it. This is
checked numerically before training; a predictor without it is trained with global credit.
Parameters with ``requires_grad=False`` are taken as known.

A predictor returns means; what the graph does not explain is a matter of the observation model
(:mod:`tacit.observation`). One that has more to say about a target returns ``numbers_per_target`` numbers for each,
all means first, and goes with an observation model that reads so many.

A predictor with parameters per edge names them in ``edge_parameters``. Over a table of candidates they have an entry
per slot, and :func:`tacit.training.densify` lays them out over all pairs of nodes; buffers of this kind are in
``edge_buffers``.

Estimators that differentiate through the graph (straight-through, concrete) call ``relaxed(inputs, graphs)`` where a
predictor has it, else the predictor itself. It must give the same output for graphs of 0 and 1 and have derivatives for
the graphs; a predictor that multiplies by the graph, as above, has them already, one that thresholds needs ``relaxed``.

Over a table of candidates (:class:`~tacit.graph.CandidateEdges`) a predictor is given
:class:`~tacit.graph.CandidateGraphs`,
which know ``graphs @ messages``, ``graphs.sum(-1, keepdim=True)`` and the diagonal: the one above works as it is.
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
    """The call that training makes. The rest is optional, and read by the functions of this file.

    ``num_hops``            how local the output is; unknown when it is left out
    ``numbers_per_target``  1 when it is left out: the mean
    ``relaxed``             the same call with derivatives for the graphs; the call itself when it is left out
    ``initial_parameters``  fresh weights from a generator; ``reset_parameters`` of its layers when it is left out
    """

    def __call__(self, inputs: Inputs, graphs: AnyGraphs) -> Outputs:
        """Return the prediction of every pair under each of its graphs."""
        ...


def relaxed_call(predictor: nn.Module) -> Predictor:
    """Return the form of a predictor that can be differentiated for the graphs."""
    relaxed: Predictor = getattr(predictor, "relaxed", predictor)
    return relaxed


def num_hops_of(predictor: nn.Module) -> int | None:
    """Return the locality that a predictor declares, or None when it declares none."""
    hops = getattr(predictor, "num_hops", None)
    return hops if isinstance(hops, int) else None


def numbers_per_target_of(predictor: nn.Module) -> int:
    """Return how many numbers a predictor gives for each target; 1, the mean, where it does not say."""
    numbers = getattr(predictor, "numbers_per_target", 1)
    if not isinstance(numbers, int) or numbers < 1:
        raise InputError(
            f"numbers_per_target of {type(predictor).__name__} must be a positive integer, got {numbers!r}; set it to "
            "how many numbers it returns for each target channel"
        )
    return numbers


def edge_parameters_of(module: nn.Module) -> tuple[str, ...]:
    """Return the names of parameters that have an entry per edge in their first two axes, as a module declares them."""
    names: tuple[str, ...] = getattr(module, "edge_parameters", ())
    return names


def edge_buffers_of(module: nn.Module) -> tuple[str, ...]:
    """Return the names of the buffers of a module that have an entry per edge in their first two axes."""
    names: tuple[str, ...] = getattr(module, "edge_buffers", ())
    return tuple(name for name in names if getattr(module, name) is not None)


def initial_parameters(module: nn.Module, generator: Generator) -> dict[str, Tensor]:
    """Return fresh initial values for the trainable parameters of a module.

    A predictor may say how by a method ``initial_parameters(generator)``. Otherwise every layer that has
    ``reset_parameters`` is reset, as in PyTorch and PyG; parameters that no layer resets start where they are.
    The global generator is left as it was.
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


def uniform_within(like: Tensor, bound: float, generator: Generator) -> Tensor:
    """Return numbers uniform in (-bound, bound), with the shape and type of a parameter.

    >>> fresh = uniform_within(torch.zeros(2, 3), 0.1, Generator().manual_seed(0))
    >>> fresh.shape, bool((fresh.abs() <= 0.1).all())
    (torch.Size([2, 3]), True)
    """
    uniforms = torch.rand(like.shape, generator=generator, device=generator.device, dtype=like.dtype)
    return (2 * uniforms - 1) * bound
