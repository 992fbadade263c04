"""Fit: train R replicas, each with its own seed, as one program, and keep the best.

Initial values, order of batches and uniforms of a replica come from its own generators, so that R replicas trained
together equal R separate fits.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

import torch
from jaxtyping import Int
from torch import Tensor

from tacit.data import Pairs
from tacit.errors import InputError, ProcessesError, did_you_mean, require, require_int
from tacit.graph import Context
from tacit.interrupts import deferred_interrupts
from tacit.threads import threads_for
from tacit.training.checkpoint import CheckpointFile, Checkpoints, fingerprint, in_words
from tacit.training.gradient import LiftedGradient, LiftName, Stack
from tacit.training.loop import Loop, Monitor, Trace
from tacit.training.model import LatentGraphModel
from tacit.training.processes import Processes, require_same_in_all_processes, require_shareable
from tacit.training.result import FitResult, Progress
from tacit.training.settings import FitSettings, StepPlan
from tacit.training.state import TrainingState, initial_stacks
from tacit.training.step import TrainingStep


def fit(
    model: LatentGraphModel,
    train: Pairs,
    validation: Pairs,
    settings: FitSettings | None = None,
    *,
    seeds: Sequence[int] = (0,),
    lift: LiftName = "auto",
    compile: bool = True,
    start_at_model: bool = False,
    starts: dict[str, Tensor] | None = None,
    constants: dict[str, Tensor] | None = None,
    resamples: Int[Tensor, "replica pair"] | None = None,
    monitor: Monitor | None = None,
    trace: Trace | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    checkpoint: Checkpoints | None = None,
) -> FitResult:
    """Train one replica per seed on the device the data is on, and keep the best by validation loss.

    The model is trained in place: it moves to the data's device and type and ends with the best replica's parameters.
    ``start_at_model`` starts every replica at the model's current parameters instead of random ones, without the floor
    of the edge probabilities (``min_draws_per_edge``), which would raise probabilities near 0.
    ``starts`` sets initial values of trained parameters per replica, and ``constants`` sets values of known parameters:
    stacks by name, as in ``{"predictor.hop_weights": stack}``, with the replica as first axis.
    ``resamples`` gives each replica its own training pairs: row numbers of ``train``, as many as it has, possibly
    repeated; see :mod:`tacit.data.resampling`.
    ``monitor`` is called with the edge probabilities and parameters of all replicas after each epoch and returns
    numbers to record, one per replica for each name; ``trace`` does the same at an interval of steps.
    ``checkpoint`` resumes from a file that an identical fit left when it was stopped, and writes that file during
    training; on a CPU the result is bit-identical to that of an uninterrupted fit.
    Ctrl-C ends the training; the current state is returned, with ``interrupted`` set.

    Several processes train together if each has joined the default group of ``torch.distributed`` and calls this
    function with the same arguments. Every batch is split among them, and all return the result of a single process, up
    to the rounding of sums. The loss must be a mean over pairs; baselines that mix the pairs of a batch raise an error.
    Ctrl-C then raises; if a process ends, the others raise :class:`~tacit.errors.ProcessesError`. The first process
    writes and reads the checkpoint, and a different number of processes can resume from it.
    """
    settings = settings or FitSettings()
    for name, value, kind in (
        ("train", train, Pairs),
        ("validation", validation, Pairs),
        ("settings", settings, FitSettings),
    ):
        require(isinstance(value, kind), f"{name} must be a {kind.__name__}, got {type(value).__name__}; build one")
    apart = any(given is not None for given in (starts, constants, resamples))  # then replicas with equal seeds differ
    require(
        isinstance(seeds, Sequence) and len(seeds) >= 1 and (len(set(seeds)) == len(seeds) or apart),
        f"seeds must have at least one seed and no seed twice, got {seeds!r}; pass for example range(8)",
    )
    for seed in seeds:
        require_int("each of seeds", seed, 0)
    require(
        lift in get_args(LiftName), f"lift must be one of {', '.join(get_args(LiftName))}, got '{lift}'; use 'auto'"
    )
    if any(epoch > settings.epochs for epoch in settings.halve_after):
        raise InputError(f"halve_after must be at most epochs={settings.epochs}, got {settings.halve_after}; lower it")
    for name in ("inputs", "targets"):
        expected, got = _kind(getattr(train, name)), _kind(getattr(validation, name))
        require(expected == got, f"validation {name} must be like those of train, {expected}, got {got}; convert them")
    if train.observed is not None or validation.observed is not None:  # one compiled program is used for both
        train, validation = train.with_mask(), validation.with_mask()
        for name, mask in (("train", train.observed), ("validation", validation.observed)):
            require(
                bool(mask is not None and mask.any()), f"{name} must have at least one target, got none; check the mask"
            )
    if start_at_model:
        settings = replace(settings, min_draws_per_edge=0.0)
    model = model.to(train.inputs.device, train.inputs.dtype)
    model.check(train.inputs, train.targets, Context.of(train))
    parameters, known = initial_stacks(model, seeds, fresh=not start_at_model)
    for name, stack in (starts or {}).items():
        _require_stack("starts", "trained", name, stack, parameters)
        parameters[name] = stack.to(parameters[name], copy=True)
    for name, stack in (constants or {}).items():
        _require_stack("constants", "known", name, stack, known)
        known[name] = stack.to(known[name])
    if resamples is not None:
        shape = len(seeds), len(train)
        require(
            isinstance(resamples, Tensor) and resamples.dtype == torch.int64 and tuple(resamples.shape) == shape,
            f"resamples must be integers of shape {shape}, a row for each replica and training pair, got "
            f"{getattr(resamples, 'dtype', type(resamples).__name__)} {tuple(getattr(resamples, 'shape', ()))}; use "
            "bootstrap_rows",
        )
        least, most = int(resamples.min()), int(resamples.max())
        require(
            least >= 0 and most < len(train),
            f"resamples must be rows from 0 to {len(train) - 1}, got {least} to {most}; use bootstrap_rows",
        )
        resamples = resamples.to(train.inputs.device)
    processes = Processes.current()
    require_shareable(model, train, settings, processes)
    plan, early_stopping = StepPlan.of(settings, model, len(train)), settings.patience is not None
    state = TrainingState.create(model, seeds, plan, (parameters, known), early_stopping=early_stopping)
    gradient = LiftedGradient(model, lift=lift, compile=compile)
    step = TrainingStep(model, train, settings, state, gradient, processes)
    file = None
    if checkpoint is not None or processes.several:
        found = fingerprint(step, validation, settings, resamples, None if trace is None else trace.every)
        kept = {"checkpoint": "none" if checkpoint is None else "one"}
        require_same_in_all_processes(processes, in_words(found) | kept)
        if checkpoint is not None:
            file = CheckpointFile(checkpoint, state, found, processes)
            file.resume()
    loop = Loop(step, validation, settings, resamples, None if file is None else file.consider)
    interrupted = False
    try:
        with threads_for(model.graph.raw.numel()):
            while not loop.done:
                loop.run_epoch(monitor, on_progress, trace)
        if file is not None:
            file.write()
    except KeyboardInterrupt:
        if state.log.steps_done == 0 or processes.several:  # other processes may be at a different step
            raise
        interrupted = True
    except torch.OutOfMemoryError as error:
        if not processes.several:
            raise
        raise ProcessesError(f"process {processes.rank} ran out of memory; lower batch_size or num_graphs") from error
    except OSError as error:  # the first process could not write, and the others are in the middle of a step
        if not processes.several:
            raise
        raise ProcessesError(
            f"process {processes.rank} could not write its checkpoint: {error}; free some space"
        ) from error
    with deferred_interrupts():
        return loop.finish(interrupted)


def _require_stack(argument: str, kind: str, name: str, value: Tensor, stacks: Stack) -> None:
    if name not in stacks:
        raise InputError(f"{argument} must have names of {kind} parameters, got '{name}'{did_you_mean(name, stacks)}")
    shape = tuple(stacks[name].shape)
    require(
        tuple(value.shape) == shape,
        f"{argument} '{name}' must have shape {shape}, a value for each replica, got {tuple(value.shape)}; stack them",
    )


def _kind(values: Tensor) -> tuple[tuple[int, ...], torch.dtype, torch.device]:
    return tuple(values.shape[1:]), values.dtype, values.device
