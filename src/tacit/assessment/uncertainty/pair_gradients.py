"""The gradient of each training pair, and the derivative of the mean gradient by the predictor's parameters."""

import copy
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.func import vmap

from tacit.data import Pairs
from tacit.randomness import draw_uniforms
from tacit.training import LatentGraphModel, constants_of, gradient_of_one, trainable_names

Gradients = Float[Tensor, "pair parameter"]
Square = Float[Tensor, "parameter parameter"]
OfEdges = Callable[[dict[str, Tensor]], Gradients]  # from the gradients of all parameters to those of chosen edges
CHUNK = 128
DIFFERENCED_PAIRS = 2048  # for the predictor's columns; both ends of a difference use the same graphs
STEP = 0.02  # finite-difference step of a parameter of the predictor, relative to the size of its tensor


class PairGradients:
    """A model as a function of the graph's parameters, then the parameters ``names`` of the predictor and the noise.

    ``of_edges``  selects the gradients of the graph's parameters from those of all parameters by name
    """

    def __init__(self, model: LatentGraphModel, names: list[str], of_edges: OfEdges, generator: Generator) -> None:
        self.model, self.names, self.of_edges, self.generator = copy.deepcopy(model), names, of_edges, generator
        if model.loss.baseline == "paper":  # it shrinks the gradient of a single pair
            self.model.loss = model.loss.with_baseline("leave_one_out")
        self.model.share_graphs = False
        self.parameters = {name: self.model.get_parameter(name).detach() for name in trainable_names(model)}
        self.constants = constants_of(self.model)
        self.gradient = gradient_of_one(self.model)

    def __call__(self, pairs: Pairs) -> Gradients:
        """Return the gradient of each pair, with separate graphs; pairs are weighted by their observed targets."""
        parts = [self._each(pairs[start : start + CHUNK]) for start in range(0, len(pairs), CHUNK)]
        gradients, weights = (torch.cat(part).double() for part in zip(*parts, strict=True))
        return gradients * weights[:, None] / weights.mean()

    def _each(self, pairs: Pairs) -> tuple[Gradients, Float[Tensor, " pair"]]:
        shape = (len(pairs), *self.model.uniforms_shape(1)[1:])
        uniforms = draw_uniforms(*shape, generator=self.generator, dtype=pairs.inputs.dtype)
        batch = [pairs.inputs, pairs.targets, uniforms.to(pairs.inputs.device)]
        fields = [getattr(pairs, name) for name in self.model.context_fields]
        if pairs.observed is not None or fields:
            batch.append(torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed)
        batch += fields
        given = [*self.parameters.values(), *self.constants.values()]
        places = (*[None] * len(given), *[0] * len(batch))
        outputs = vmap(self.gradient, in_dims=places)(*given, *(values[:, None] for values in batch))
        by_name = dict(zip(self.parameters, outputs, strict=False))
        rest = [by_name[name].flatten(1) for name in self.names]
        _, weights, *_ = outputs[len(self.parameters) :]
        return torch.cat([self.of_edges(by_name), *rest], 1), weights[:, 0]

    def with_predictor(self, top: Float[Tensor, "edge edge"], pairs: Pairs) -> Square:
        """Return the curvature of all parameters: ``top`` for the graph's, differences of gradients for the rest.

        ``pairs`` are thinned to about ``DIFFERENCED_PAIRS``.
        """
        fewer = pairs[:: max(1, len(pairs) // DIFFERENCED_PAIRS)]
        columns = [column for name in self.names for column in self._columns(name, fewer)]
        if not columns:
            return top
        right = torch.stack(columns, 1)  # (numbers of the graph and parameters, parameters)
        count = len(top)
        upper = torch.cat([top, right[:count]], 1)
        lower = torch.cat([right[:count].mT, (right[count:] + right[count:].mT) / 2], 1)
        return torch.cat([upper, lower])

    def _columns(self, name: str, pairs: Pairs) -> list[Tensor]:
        """Return the derivative of the mean gradient by each entry of one parameter."""
        value = self.parameters[name]
        step = STEP * float(value.square().mean().sqrt().clamp_min(torch.finfo(value.dtype).eps ** 0.5))
        state, columns = self.generator.get_state(), []
        for place in range(value.numel()):
            means = []
            for sign in (1, -1):
                moved = value.clone(memory_format=torch.contiguous_format)
                moved.view(-1)[place] += sign * step
                self.generator.set_state(state)  # the same graphs
                view = copy.copy(self)
                view.parameters = {**self.parameters, name: moved}
                means.append(view(pairs).mean(0))
            columns.append((means[0] - means[1]) / (2 * step))
        return columns


def predictor_names(model: LatentGraphModel) -> list[str]:
    """Return the trained parameters of the predictor and the noise."""
    return [name for name in trainable_names(model) if not name.startswith("graph.")]


def some_pairs(train: Pairs, num_pairs: int, block: int) -> Pairs:
    """Return some of the pairs: evenly spread, or neighbours if they are correlated."""
    if len(train) <= num_pairs:
        return train
    if block > 1:
        return train[len(train) - num_pairs :]
    places = torch.linspace(0, len(train) - 1, num_pairs, device=train.inputs.device).round().long()
    return train[places]
