"""``tacit demo``: learn the system of the paper with psi known and psi learned, and compare with the truth."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tacit.assessment.evaluation import edge_prob_errors, oracle_edge_prob_mae, predictive_metrics
from tacit.assessment.fit_tests import goodness_of_fit
from tacit.assessment.identification import Identifiability, identify
from tacit.config import DemoConfig, SystemConfig
from tacit.data import Split
from tacit.edges import EdgeTable
from tacit.experiments.study import LOSS_METRICS, LOSS_TABLE, Listener
from tacit.graph import BernoulliGraph
from tacit.interrupts import deferred_interrupts
from tacit.pipeline import MOST_TESTED, pair_forecasts
from tacit.predictors import HopPredictor
from tacit.randomness import generator_for, replica_seeds
from tacit.records import (
    DEMO_RUNS,
    Record,
    Run,
    describe_device,
    history_line,
    new_directory,
    read_run,
    versions,
    write_run,
)
from tacit.report import draw_demo
from tacit.systems import CommunitySystem
from tacit.training import FitResult, fit


@dataclass(frozen=True)
class Demo:
    """The result of the demo: the runs by name, their directory, and whether it is complete."""

    runs: dict[str, Run]
    directory: Path
    report: Path
    complete: bool


def run_demo(
    config: DemoConfig,
    directory: Path,
    *,
    seed: int = 0,
    device: torch.device,
    command: str = "tacit demo",
    listener: Listener | None = None,
) -> Demo:
    """Run the job and write ``known/``, ``joint/`` and ``report.html`` under a new or empty directory."""
    listener = listener or Listener()
    system = config.system.build()
    some = system.generate(50, seed).targets
    config.training.build()  # refuse before work
    config.model.build(system.true_graph(), system.true_predictor(), some)
    runs, interrupted = dict[str, Run](), False
    with new_directory(directory) as lock:
        listener.stage(f"drawing {config.system.num_pairs:,} pairs of {system.num_nodes} nodes")
        pairs = system.generate(config.system.num_pairs, seed).to(device).split()
        listener.stage("computing the optimal values")
        optimal = _optimal(system, config, pairs, seed)
        try:
            for name in DEMO_RUNS:
                if interrupted:
                    break
                result = _train(name, system, config, pairs, seed, listener)
                with deferred_interrupts() as held:
                    listener.stage(f"{DEMO_RUNS[name]}: scoring on the test pairs")
                    train, generator = pairs.train, generator_for(seed, "identify", pairs.train.inputs.device)
                    identified = identify(
                        result.model, train.inputs, train.targets, generator=generator, num_pairs=len(train)
                    )
                    scored = _scored(result, system, pairs, seed, identified)
                    record = Record(
                        title=DEMO_RUNS[name],
                        command=command,
                        config={**config.model_dump(mode="json"), "psi": name},
                        seed=seed,
                        versions=versions(),
                        device=describe_device(pairs.test.inputs.device),
                        optimal=optimal,
                        paper=_paper(config),
                        node_names=[str(node) for node in range(system.num_nodes)],
                        true_edge_probs=system.true_edge_probs.tolist(),
                        **scored,
                    )
                    graph = result.model.graph
                    edges = graph.described(EdgeTable(graph.index(record.node_names)))
                    lock.require()
                    write_run(
                        directory / name,
                        record,
                        result.model,
                        [history_line(epoch) for epoch in result.history],
                        edges.updated(identifiable=graph.vector(identified.flags())),
                        pair_forecasts(result.model, pairs.test, seed),
                    )
                    runs[name] = read_run(directory / name)
                interrupted = result.interrupted or bool(held)
        except KeyboardInterrupt:  # between two fits: finished runs are kept
            if not runs:
                raise
            interrupted = True
        with deferred_interrupts():
            listener.stage("drawing the report")
            lock.require()
            report = draw_demo(directory, runs)
    return Demo(runs, directory, report, complete=len(runs) == len(DEMO_RUNS) and not result.interrupted)


def _train(
    name: str, system: CommunitySystem, config: DemoConfig, pairs: Split, seed: int, listener: Listener
) -> FitResult:
    generator = generator_for(seed, name)
    known, sizes = name == "known", system.hop_weights.shape
    predictor = system.true_predictor() if known else HopPredictor.random(*sizes, generator=generator)
    graph = BernoulliGraph.uniform(system.num_nodes, generator=generator, link=config.model.build_link())
    model = config.model.build(graph, predictor, pairs.train.targets)
    listener.stage(f"{DEMO_RUNS[name]}: compiling the training step")
    truth = system.true_edge_probs.to(pairs.train.inputs.device)
    return fit(
        model,
        pairs.train,
        pairs.validation,
        config.training.build(),
        seeds=replica_seeds(seed, 1 if known else config.training.replicas),
        compile=config.training.compile,
        monitor=lambda edge_probs, _: {"edge_prob_mae": (edge_probs - truth).abs().mean((1, 2)).tolist()},
        on_progress=listener.step,
    )


def _scored(
    result: FitResult, system: CommunitySystem, pairs: Split, seed: int, identified: Identifiability
) -> dict[str, Any]:
    """Return the parts of a record that follow from a fit."""
    model, device = result.model, pairs.test.inputs.device
    scores = predictive_metrics(model, pairs.test, model.loss, generator=generator_for(seed, "score", device))
    tested = pairs.test[:MOST_TESTED]
    goodness = goodness_of_fit(model, tested, generator=generator_for(seed, "goodness", device))
    errors = edge_prob_errors(model.graph.edge_probs, system.true_edge_probs, identified.identifiable)
    return {
        "timings": {name: getattr(result, name) for name in ("train_seconds", "compile_seconds", "steps")},
        "metrics": {**errors, **scores},
        "replicas": [vars(replica) for replica in result.replicas],
        "best_replica": result.best,
        "warnings": result.warnings,
        "findings": [*goodness.sentences(), *identified.sentences()],
        "goodness": goodness.to_dict(),
    }


def _optimal(system: CommunitySystem, config: DemoConfig, pairs: Split, seed: int) -> dict[str, float]:
    device = pairs.test.inputs.device
    truth = config.model.build(system.true_graph(), system.true_predictor(), pairs.train.targets).to(device)
    generator = generator_for(seed, "optimal", device)
    validation = predictive_metrics(truth, pairs.validation, truth.loss, generator=generator, point_graphs=32)
    optimal = {
        "edge_prob_mae": oracle_edge_prob_mae(system.true_edge_probs, len(pairs.train)),
        "validation_loss": validation["distribution_loss"],
        **predictive_metrics(truth, pairs.test, truth.loss, generator=generator),
    }
    if truth.prior is not None:  # then the minimised loss is another one
        del optimal["validation_loss"]
    if not getattr(truth.loss, "proper", False):  # the truth does not minimise such a loss
        optimal = {name: value for name, value in optimal.items() if not name.endswith("_loss")}
    return optimal


def _paper(config: DemoConfig) -> dict[str, float]:
    """Return the row of the paper for the loss, if the system is that of the paper; the best row for the default."""
    if config.system != SystemConfig():
        return {}
    row = LOSS_TABLE["mmd" if config.model.loss == "energy" and config.model.scope == "node" else config.model.loss]
    return dict(zip(LOSS_METRICS, (mean for mean, _ in row), strict=True))
