"""What the processes of one training need to have in common, looked at before the first step.

Each brings its facts to a meeting; where they differ, every process raises the same error. A process whose job is
already over brings that instead, so that none waits for it in vain.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

from tacit.data import Pairs
from tacit.errors import InputError, ProcessesError, require
from tacit.training.model import LatentGraphModel
from tacit.training.processes import Processes
from tacit.training.settings import FitSettings

Found = TypeVar("Found")


class Ended(NamedTuple):
    """What a process brings to a meeting when its job is over: its exit code, and what it has to say."""

    code: int
    message: str | None


class EndedElsewhereError(ProcessesError):
    """Another process had ended where this one wanted to train."""

    in_step = True


def require_shareable(model: LatentGraphModel, train: Pairs, settings: FitSettings, processes: Processes) -> None:
    """Raise :class:`InputError` if a batch of this training cannot be shared out exactly."""
    if not processes.several:
        return
    size, count, baseline = min(settings.batch_size, len(train)), processes.count, model.loss.baseline
    require(size >= count, f"batch_size needs a pair for each of {count} processes, got {size}; start fewer processes")
    if baseline == "paper" or (baseline == "moving_average" and train.observed is not None):
        why = "mixes the pairs of a batch" if baseline == "paper" else "weighs pairs by their missing targets"
        raise InputError(
            f"baseline '{baseline}' {why}, which {count} processes share out; use baseline 'leave_one_out', or one "
            "process"
        )


def require_agreement(processes: Processes, facts: Mapping[str, str]) -> None:
    """Raise :class:`InputError` in every process, naming the fact, unless all bring the same facts."""
    met = meet_in_step(processes, dict(facts))
    for rank, other in enumerate(met):
        for name, value in met[0].items():
            require(
                other.get(name) == value,
                f"{name} needs to be the same in every process, got {value} in process 0 and {other.get(name)} in "
                f"process {rank}; give all of them the same data, settings and seeds",
            )


def from_the_first(processes: Processes, find: Callable[[], Found]) -> Found:
    """Return in every process what the first one finds, or raise the :class:`InputError` that it meets.

    A file is read like this: it decides for all, whether or not the others see the same one.
    """
    if not processes.several:
        return find()
    found, refused = None, None
    if processes.first:
        try:
            found = find()
        except InputError as error:
            refused = str(error)
    refused = meet_in_step(processes, refused)[0]  # before anything long is sent: none may have ended
    if refused is not None:
        raise InputError(refused)
    told: Found = processes.told(found)
    return told


def meet_in_step(processes: Processes, brought: Any) -> list[Any]:
    """Wait for all processes and return what each brings; raise if the job of one is over."""
    met = processes.meet(brought)
    for rank, other in enumerate(met):
        if isinstance(other, Ended):
            raise EndedElsewhereError(
                f"process {rank} ended before this training: {other.message or 'its job was done'}"
            )
    return met


def facts_of(
    train: Pairs, validation: Pairs, settings: FitSettings, seeds: Iterable[int], start: Mapping[str, Tensor | None]
) -> dict[str, str]:
    """Return in words, with digests for what is long, all that a training depends on."""
    rates = [settings.schedule(epoch, settings.epochs) for epoch in range(settings.epochs)]
    data = {
        name: f"{len(pairs)} pairs {_digest([pairs.inputs, pairs.targets, pairs.observed])}"
        for name, pairs in (("train", train), ("validation", validation))
    }
    return {
        "device": train.inputs.device.type,
        **data,
        "seeds": str(list(seeds)),
        "settings": str({**vars(settings), "schedule": [rates[0], rates[len(rates) // 2], rates[-1]]}),
        "the start": f"{', '.join(start)} {_digest(start.values())}",
    }


def _digest(tensors: Iterable[Tensor | None]) -> str:
    """Return a few letters that stand for numbers, their order and their shape."""
    digest = hashlib.blake2b(digest_size=4)
    for tensor in tensors:
        if tensor is not None:
            digest.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().numpy().data)
    return digest.hexdigest()
