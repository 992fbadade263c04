"""The move of all parameters as one compiled program: a kernel or two instead of a dozen of a microsecond each.

Like the gradient (:mod:`tacit.training.lift`) the move is first traced into a flat list of tensor operations. What is
compiled then belongs to this one fit: compiled as a method, the moves of all fits of a process would share one cache,
each would be compiled anew, and from the ninth on the compiler would give up.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import chain

import torch
from jaxtyping import Float
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from tacit.training.lift import Outcome
from tacit.training.settings import FitSettings
from tacit.training.state import ReplicaState, StepNumbers


class CompiledMove:
    """:meth:`ReplicaState.move`, compiled at the first call; equal and slower where that cannot be.

    ``compile_seconds``  what compiling took
    """

    def __init__(self, state: ReplicaState, settings: FitSettings) -> None:
        self.compile_seconds = 0.0
        self._state, self._settings = state, settings
        self._program: Callable[..., Tensor] | None = None
        self._usable = True

    @property
    def compiled(self) -> bool:
        """Is the compiled program in use?"""
        return self._program is not None

    def __call__(self, outcome: Outcome, numbers: StepNumbers) -> Float[Tensor, " replica"]:
        """Move by what a step gave, in place, and return the loss of each replica."""
        if self._program is None and self._usable:
            self._compile(outcome, numbers)
        if self._program is None:
            return self._state.move(outcome, numbers, self._settings)
        return self._program(*self._flat(outcome, numbers))

    def _flat(self, outcome: Outcome, numbers: StepNumbers) -> list[Tensor]:
        state = self._state
        moved = (state.parameters.values(), chain(*state.moments.values()), state.averages.values())
        given = ([outcome.gradients[name] for name in state.parameters], (outcome.losses, outcome.weights))
        return [*chain(*moved, *given), *(number for number in numbers if isinstance(number, Tensor))]

    def _compile(self, outcome: Outcome, numbers: StepNumbers) -> None:
        """Trace and compile on copies: nothing moves before the first real call."""
        start, self._usable = time.perf_counter(), False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the compiler's own deprecations are not the user's business
                tensors = self._flat(outcome, numbers)
                traced = make_fx(self._moving(numbers))(*(tensor.clone() for tensor in tensors))
                program = torch.compile(traced, dynamic=False)
                program(*(tensor.clone() for tensor in tensors))
            self._program = program
        except torch.OutOfMemoryError:
            raise
        except Exception:  # whatever the toolchain raises: the eager version is equal, only slower
            self._program = None
        self.compile_seconds += time.perf_counter() - start

    def _moving(self, numbers: StepNumbers) -> Callable[..., Tensor]:
        """Return the move as a function of the tensors of :meth:`_flat`."""
        names = list(self._state.parameters)
        given = [name for name, number in numbers._asdict().items() if isinstance(number, Tensor)]

        def move(*tensors: Tensor) -> Tensor:
            rest = iter(tensors)
            parameters = {name: next(rest) for name in names}
            moments = {name: (next(rest), next(rest)) for name in names}
            averages = {name: next(rest) for name in names}
            state = replace(self._state, parameters=parameters, moments=moments, averages=averages)
            outcome = Outcome({name: next(rest) for name in names}, next(rest), next(rest), {})
            here = numbers._replace(**{name: next(rest) for name in given})
            return state.move(outcome, here, self._settings)

        return move
