"""``tacit fit``: read, choose, train, score beside simple references, write a run directory with its report."""

import copy
import math
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tacit.config import FitConfig
from tacit.data import Pairs, Split
from tacit.data.ridge import ridge_regression
from tacit.errors import require
from tacit.evaluation import (
    forecast_scores,
    gaussian_coverage,
    gaussian_scores,
    persistence,
    predictive_metrics,
    residual_sigmas,
)
from tacit.evaluation.forecasts import LEVELS
from tacit.interrupts import deferred_interrupts
from tacit.locks import Lock
from tacit.own_data.call import Call, files_read
from tacit.own_data.layout import MOST_EXPANDED
from tacit.own_data.plan import Plan
from tacit.own_data.preparation import Preparation, SeriesPreparation
from tacit.own_data.stages import assess
from tacit.own_data.trust import Question, Trust
from tacit.own_data.unfinished import CHECKPOINT, begun, finish, taken_up
from tacit.randomness import generator_for
from tacit.records import CandidateCount, Record, Run, describe_device, read_run, versions, write_run
from tacit.report import draw_run
from tacit.training import (
    Checkpoints,
    CosineDecay,
    FitResult,
    FitSettings,
    Listener,
    Processes,
    densify,
    densify_result,
    fit,
    meet_in_step,
)

MOST_RIDGE_FEATURES = 3000  # of one regression: its time grows with the cube
CAVEAT = (
    "A probability between 0 and 1 says that a relation is used at some times and not at others, or that the model "
    "uses chance to imitate noise: on real data it is not by itself evidence of a random graph."
)


@dataclass(frozen=True)
class FitJob:
    """What the job made."""

    run: Run
    directory: Path
    report: Path
    complete: bool


def run_fit(
    source: str,
    config: FitConfig,
    directory: Path,
    *,
    seed: int = 0,
    device: torch.device,
    command: str = "tacit fit",
    listener: Listener | None = None,
) -> FitJob | None:
    """Learn the graph behind ``source`` and write a run directory; nothing is written when the input is refused.

    Where several processes train together all go through the same stages; the first writes, the others return None.
    """
    require(
        directory.resolve() != Path.cwd(),
        f"out needs a directory for this run alone, got '{directory}', where the command runs; choose another --out",
    )
    processes = Processes.current()
    call = Call(
        source=source,
        config=config.model_dump(mode="json"),
        seed=seed,
        device=_named(str(device), processes),
        command=command,
        folder=str(Path.cwd()),
        files=files_read(source, config),
        versions=versions(),
    )
    plan = Plan.read(call, device, listener or Listener())
    with begun(directory, call, processes) as lock:
        return _work(plan, directory, processes, lock)


def resume_fit(
    directory: Path, *, find_device: Callable[[str], torch.device] = torch.device, listener: Listener | None = None
) -> FitJob | None:
    """Go on with a run that was stopped: it ends with the files that it would have ended with.

    Paths that were given are read from the folder in which the run was begun. Several processes may go on with what
    one began, and the other way round.
    """
    processes = Processes.current()
    with taken_up(directory, processes) as (call, lock):
        whole = directory.resolve()
        with chdir(call.folder if Path(call.folder).is_dir() else "."):
            call.require_same_files()
            plan = Plan.read(call, find_device(_named(call.device, processes)), listener or Listener())
            job = _work(plan, whole, processes, lock)
    return None if job is None else replace(job, directory=directory, report=directory / job.report.name)


def _work(plan: Plan, directory: Path, processes: Processes, lock: Lock) -> FitJob | None:
    """Train, look at the fit, write the run; until it is complete the directory keeps what it takes to go on."""
    problem, config, seed, listener = plan.problem, plan.config, plan.call.seed, plan.listener
    split = problem.split.to(plan.device)
    listener.stage(f"{plan.name}: {'compiling' if config.training.compile else 'starting'}")
    training, settings, untrained = config.training, fit_settings(config), copy.deepcopy(plan.model)
    result = fit(
        plan.model,
        split.train,
        split.validation,
        settings,
        seeds=[seed * 1000 + replica for replica in range(training.replicas or 1)],
        compile=bool(training.compile),
        on_progress=listener.step,
        checkpoint=Checkpoints(directory / CHECKPOINT, before=lock.require),
    )
    if len(problem.nodes) <= MOST_EXPANDED:
        result, untrained = densify_result(result), densify(untrained)
    trust, complete = Trust(), not result.interrupted
    try:
        if complete:
            question = Question(result, untrained, split, config, settings, problem.preparation, seed, listener)
            assess(trust, question)
    except KeyboardInterrupt:  # what was learned is kept
        if processes.several:
            raise
        complete = False
    job = _write(plan, split, result, trust, directory, lock, complete=complete) if processes.first else None
    meet_in_step(processes, None)  # if the first dies in its last moments, the others say how to go on
    return job


def _write(
    plan: Plan, split: Split, result: FitResult, trust: Trust, directory: Path, lock: Lock, *, complete: bool
) -> FitJob:
    """Score the fit, write the run and draw its report."""
    listener = plan.listener
    with deferred_interrupts():
        listener.stage(f"{plan.name}: scoring on the test part")
        record = _record(plan, split, result, trust)
        lock.require()
        write_run(directory, record, result, trust.edges)
        listener.stage("drawing the report")
        run = read_run(directory)
        report = draw_run(directory, run)
        if complete:
            finish(directory)
    return FitJob(run, directory, report, complete)


def _named(device: str, processes: Processes) -> str:
    """Return the name of a device that holds for all processes: each has a GPU of its own."""
    return torch.device(device).type if processes.several else device


def fit_settings(config: FitConfig) -> FitSettings:
    """Return the settings of the training; the worse half of the replicas stops after the first epochs."""
    training = config.training
    epochs, rate = training.epochs or 1, training.predictor_learning_rate or training.learning_rate
    halvings = {max(1, round(part * epochs)) for part in (0.1, 0.2)} if (training.replicas or 1) > 1 else set()
    return FitSettings(
        epochs=epochs,
        batch_size=training.batch_size or 1,
        schedule=CosineDecay(training.learning_rate),
        predictor_rate=rate / training.learning_rate,
        halve_after=tuple(sorted(epoch for epoch in halvings if epoch < epochs)),
        patience=training.patience,
    )


def references(preparation: Preparation, split: Split, *, ridge: bool = True) -> dict[str, dict[str, float]]:
    """Return scores of the simplest forecasts on the test part, in units: the last value, and a ridge regression.

    The regression is one on all nodes, with a weight for every pair of them.
    """
    window, features, out = preparation.sizes
    spread, found = preparation.spread, {}
    parts = {name: _on_cpu(part) for name, part in vars(split).items()}
    start = {name: torch.zeros_like(part.targets) for name, part in parts.items()}
    if preparation.is_series:
        start = {
            name: persistence(part.inputs, num_features=features, out_channels=out) for name, part in parts.items()
        }
        sigmas = residual_sigmas(start["train"], parts["train"])
        found["the last value"] = _in_units(start["test"], sigmas, parts["test"], spread)
    if ridge and len(preparation.nodes) * window * features <= MOST_RIDGE_FEATURES:
        changes = {  # of a series the regression predicts the change from the last value
            name: Pairs(part.inputs, part.targets - start[name], part.observed) for name, part in parts.items()
        }
        fitted = ridge_regression(changes["train"], changes["validation"])
        means = fitted.predict(parts["test"].inputs) + start["test"]
        found["ridge regression"] = _in_units(means, fitted.sigmas, parts["test"], spread)
    return found


def _in_units(means: torch.Tensor, sigmas: torch.Tensor, pairs: Pairs, spread: torch.Tensor) -> dict[str, float]:
    scaled = Pairs(pairs.inputs, pairs.targets * spread, pairs.observed)
    coverage = {f"coverage_{level:g}": gaussian_coverage(means, sigmas, pairs, level) for level in LEVELS}
    return {**gaussian_scores(means * spread, sigmas * spread, scaled), **coverage}


def _on_cpu(pairs: Pairs) -> Pairs:
    return pairs.to("cpu")


def _record(plan: Plan, split: Split, result: FitResult, trust: Trust) -> Record:
    config, problem, seed = plan.config, plan.problem, plan.call.seed
    model, device = result.model, split.test.inputs.device
    spread = problem.preparation.spread
    scores = trust.scores
    if scores is None:
        scores = forecast_scores(model, split.test, generator=generator_for(seed, "score", device), spread=spread)
    scaled = predictive_metrics(
        model, split.test, model.loss, generator=generator_for(seed, "scaled", device), point_graphs=64
    )
    metrics = {**scores.numbers(), "energy_score": scaled["energy_score"]}
    metrics["distribution_loss"] = scaled["distribution_loss"]
    places, slots = problem.coordinates, model.graph.slots
    compared = {**references(problem.preparation, split, ridge=slots is None), **trust.references}
    return Record(
        title=f"{plan.name}, {_ahead(problem.preparation)}",
        command=plan.call.command,
        config=config.model_dump(mode="json"),
        seed=seed,
        versions=versions(),
        device=describe_device(device, Processes.current().count),
        timings={
            "train_seconds": result.train_seconds,
            "compile_seconds": result.compile_seconds,
            "steps": result.steps,
        },
        metrics=_finite(metrics),
        replicas=[vars(replica) for replica in result.replicas],
        best_replica=result.best,
        node_names=list(problem.nodes),
        warnings=[*plan.notes, *result.warnings, CAVEAT],
        choices=plan.choices,
        references={name: _finite(numbers) for name, numbers in compared.items()},
        preparation=problem.preparation.to_dict(),
        coordinates=None if places is None else places.tolist(),
        findings=trust.findings,
        goodness=trust.goodness,
        uncertainty=trust.uncertainty,
        candidates=None if slots is None else CandidateCount(count=slots.num_edges),
    )


def _finite(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers that could be computed: others are absent from a record."""
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def _ahead(preparation: Preparation) -> str:
    names = ", ".join(preparation.target_names)
    if not isinstance(preparation, SeriesPreparation):
        return names
    steps = preparation.windows.horizon
    return f"{names}, {steps} step{'s' if steps > 1 else ''} ahead"
