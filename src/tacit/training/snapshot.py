"""All that a training has become, as text and tensors, and back: another process goes on from there, bit for bit.

What a fit makes anew from its arguments is not in it: data, constants, the plan of learning rates, compiled code.
"""

from dataclasses import asdict
from typing import Any

import torch

from tacit.training.lift import Stack
from tacit.training.loop import Loop
from tacit.training.standing import read_standing


def snapshot(loop: Loop) -> tuple[dict[str, Any], Stack]:
    """Return text and tensors of a loop that stands between two steps, or between two epochs.

    Inside an epoch the order of its batches is that of its start: it is drawn again, and the steps taken are left out.
    """
    state, inside = loop.state, bool(loop.epoch_losses)
    orders = loop.epoch_orders if inside else [order.get_state() for order in loop.orders]
    places = [stream.place() for stream in loop.stepper.streams]
    waited, best_losses, best = (0, None, {}) if loop.best_epochs is None else loop.best_epochs.taken_in()
    text = {
        "steps_done": loop.steps_done,
        "active": loop.active,
        "dropped": list(loop.dropped.items()),
        "history": [asdict(epoch) for epoch in loop.history],
        "traced": loop.traced,
        "seconds": loop.seconds,
        "epoch_seconds": loop.seconds_of_epoch() if inside else 0.0,
        "compile_seconds": loop.stepper.compile_seconds,
        "lifted": loop.gradient.lifted,
        "fallback": loop.gradient.fallback,
        "has_average": state.has_average,
        "waited": waited,
        "steps_of_streams": [steps for _, steps in places],
    }
    parts: dict[str, Stack] = {
        "parameters": state.parameters,
        "averages": state.averages,
        "changing": {name: state.frozen[name] for name in _changing(loop)},
        "best": best,
        **{f"adam:{name}": {"first": first, "second": second} for name, (first, second) in state.moments.items()},
        "loop": {
            "validation_loss": loop.validation_loss,
            "orders": torch.stack(orders),
            "streams": torch.stack([before for before, _ in places]),
            **({} if best_losses is None else {"best_losses": best_losses}),
            **({"epoch_losses": torch.stack(loop.epoch_losses)} if inside else {}),
        },
    }
    return text, {f"{part}/{name}": value for part, stack in parts.items() for name, value in stack.items()}


def restore(loop: Loop, text: dict[str, Any], tensors: Stack) -> None:
    """Bring a loop that has not taken a step to where another one stood.

    Values go into the tensors that are there, or take the place of others: nothing has been recorded or compiled yet.
    What cannot have been written by such a loop is refused (ValueError, or another where a part is missing).
    """
    stood = read_standing(loop, text, tensors, snapshot(loop)[1])
    state, device = loop.state, loop.train.inputs.device
    parts: dict[str, Stack] = {}
    for full_name, value in tensors.items():
        part, _, name = full_name.partition("/")
        parts.setdefault(part, {})[name] = value
    own = parts["loop"]
    for name, value in parts["parameters"].items():
        state.parameters[name].copy_(value)
    for name, value in parts["averages"].items():
        state.averages[name].copy_(value)
    state.has_average = stood.has_average
    state.frozen |= _there(parts.get("changing", {}), device)
    for name, (first, second) in state.moments.items():
        first.copy_(parts[f"adam:{name}"]["first"])
        second.copy_(parts[f"adam:{name}"]["second"])
    if loop.best_epochs is not None:
        loop.best_epochs.take_over(stood.waited, own.get("best_losses"), _there(parts.get("best", {}), device))
    for order, bytes_ in zip(loop.orders, own["orders"], strict=True):
        order.set_state(bytes_.clone())
    for stream, bytes_, steps in zip(loop.stepper.streams, own["streams"], stood.steps_of_streams, strict=True):
        stream.go_to(bytes_.clone(), steps)
    loop.gradient.go_on_as(stood.lifted, stood.fallback)
    loop.gradient.compile_seconds = stood.compile_seconds
    loop.validation_loss = own["validation_loss"].clone()
    loop.epoch_losses = [row.to(device, copy=True) for row in own.get("epoch_losses", ())]
    loop.steps_done, loop.active, loop.traced = stood.steps_done, stood.active, stood.traced
    loop.dropped = dict(stood.dropped)
    loop.history = stood.epochs
    loop.seconds, loop.epoch_seconds = stood.seconds, stood.epoch_seconds


def _changing(loop: Loop) -> list[str]:
    """Return the names of what is not trained and still differs from step to step."""
    return [*loop.model.carried, *(["progress"] if loop.model.estimator.scheduled else [])]


def _there(stack: Stack, device: torch.device) -> Stack:
    """Return copies on a device: what a file holds need not lie where vector instructions want it."""
    return {name: value.to(device, copy=True) for name, value in stack.items()}
