"""Where a training stood, as a checkpoint tells it: looked at before anything is taken over from it.

A checksum says that a file is as somebody wrote it, not that what was written can be.
"""

from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from tacit.training.lift import Stack
from tacit.training.loop import Loop
from tacit.training.result import Epoch

Count = Annotated[int, Field(ge=0)]
Loss = Annotated[float, Field(allow_inf_nan=True)] | None


class _Epoch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    epoch: Count
    learning_rate: FiniteFloat
    train_loss: list[Loss]
    validation_loss: list[Loss]
    seconds: FiniteFloat
    monitored: dict[str, list[Loss]]


class Standing(BaseModel):
    """The text of a checkpoint."""

    model_config = ConfigDict(extra="ignore")

    steps_done: Count
    active: list[Count] = Field(min_length=1)
    dropped: list[tuple[Count, Count]]
    history: list[_Epoch]
    traced: list[dict[str, Any]]
    seconds: FiniteFloat
    epoch_seconds: FiniteFloat
    compile_seconds: FiniteFloat
    lifted: bool
    fallback: str | None
    has_average: bool
    waited: Count
    steps_of_streams: list[Count]

    @property
    def epochs(self) -> list[Epoch]:
        """The history of the training."""
        return [Epoch(**line.model_dump()) for line in self.history]


def read_standing(loop: Loop, text: dict[str, Any], tensors: Stack, own: Stack) -> Standing:
    """Return the text, checked; ValueError where text or tensors cannot be of this loop, whose own are ``own``."""
    try:
        found = Standing.model_validate(text)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from None
    replicas, steps, epochs = len(loop.seeds), loop.stepper.steps_per_epoch, len(found.history)
    left = tensors.get("loop/epoch_losses", torch.zeros(0, replicas))
    possible = {
        "active": max(found.active) < replicas and len(set(found.active)) == len(found.active),
        "dropped": sorted([*found.active, *(replica for replica, _ in found.dropped)]) == list(range(replicas)),
        "history": all(
            len(line.train_loss) == replicas
            and len(line.validation_loss) == replicas
            and any(loss is not None for loss in line.train_loss)
            for line in found.history
        ),
        "epoch_losses": left.ndim == 2 and left.shape[1] == replicas and len(left) <= steps,
        "best_losses": tensors.get("loop/best_losses", loop.validation_loss).shape == (replicas,),
        "steps_done": found.steps_done == epochs * steps + len(left) <= loop.stepper.total_steps,
    }
    for name, is_possible in possible.items():
        if not is_possible:
            raise ValueError(f"{name} cannot be")
    best = [name.replace("parameters/", "best/") for name in own if name.startswith("parameters/")]
    needed = [name for name in own if name != "loop/best_losses" and not name.startswith("best/")]
    for name in [*needed, *(best if "loop/best_losses" in tensors else ())]:
        if name not in tensors:
            raise ValueError(f"{name} is missing")
    for name, value in tensors.items():
        part, _, rest = name.partition("/")
        like = own.get(f"parameters/{rest}" if part == "best" else name)
        if part != "loop" and like is None:
            raise ValueError(f"{name} is not of this training")
        if like is not None and (value.shape, value.dtype) != (like.shape, like.dtype):
            raise ValueError(f"{name} has another shape or type")
        if like is not None and value.is_floating_point():
            there = value.isfinite() | (value == like.to(value.device)) | torch.tensor(name == "loop/validation_loss")
            if not there.all():
                raise ValueError(f"{name} is not finite")
    return found
