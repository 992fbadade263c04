"""Number of steps until each baseline or estimator reaches a given error on theta."""

import statistics
from functools import partial

from matplotlib.figure import Figure

from tacit.config import ModelConfig
from tacit.experiments.replication import PAPER_MODEL, paper_pairs, quick_note, train
from tacit.experiments.study import Listener, Options, Records, Study, Table, Task, Values
from tacit.report import bands
from tacit.systems import CommunitySystem

ERRORS = (0.05, 0.03, 0.02)
EVERY = 10  # steps between two evaluations
WAYS = {
    "no baseline": PAPER_MODEL.model_copy(update={"baseline": "none"}),
    "paper's baseline": PAPER_MODEL,
    "leave-one-out": PAPER_MODEL.model_copy(update={"baseline": "leave_one_out"}),
    "moving average": PAPER_MODEL.model_copy(update={"baseline": "moving_average"}),
    "DisARM": PAPER_MODEL.model_copy(update={"baseline": "auto", "estimator": "disarm"}),
    "ours: node scope, receptive field": ModelConfig(loss="mmd"),
}


class Variance(Study):
    """Steps to a given error."""

    name = "variance"
    title = "Steps until the mean absolute error on theta falls below a value, psi known, the paper's schedule."

    def tasks(self) -> list[Task]:
        """One per gradient estimator."""
        return [Task(_slug(name), partial(_work, config)) for name, config in WAYS.items()]

    def tables(self, records: Records) -> list[Table]:
        """Steps with their spread, and as a ratio to training without a baseline."""
        rows = []
        base = {error: steps_to(records["no-baseline"], error) for error in ERRORS}
        for name in WAYS:
            values, cells = records[_slug(name)], []
            for error in ERRORS:
                steps = steps_to(values, error)
                reached = [step for step in steps if step is not None]
                if not steps:  # the training was too short for an evaluation
                    cells.append("–")
                elif len(reached) < len(steps):
                    cells.append(f"not reached by {len(steps) - len(reached)} of {len(steps)}")
                else:
                    cells.append(_with_ratio(reached, base[error]))
            paper = "roughly 50% faster" if name == "paper's baseline" else "–"
            rows.append([name, paper, *cells, str(len(values["errors"]))])
        columns = ["gradient", "paper", *(f"steps to {error}" for error in ERRORS), "runs"]
        notes = [
            f"mean ± deviation over runs, measured every {EVERY} steps; in brackets the ratio to no baseline",
            *quick_note(list(records.values())),
        ]
        return [Table("Steps to a given error", columns, rows, notes)]

    def figures(self, records: Records) -> dict[str, Figure]:
        """The error on theta, step by step."""
        steps = records["no-baseline"]["steps_seen"]
        if not steps:
            return {}
        panels = {"MAE on theta": {name: records[_slug(name)]["errors"] for name in WAYS}}
        return {"errors": bands(panels, steps, {}, "step")}


def steps_to(values: Values, error: float) -> list[int | None]:
    """Return for each run the first evaluated step with an error below ``error``, or None."""
    seen = values["steps_seen"]
    return [next((s for s, e in zip(seen, line, strict=True) if e < error), None) for line in values["errors"]]


def _with_ratio(steps: list[int], base: list[int | None]) -> str:
    spread = f" ± {statistics.stdev(steps):.0f}" if len(steps) > 1 else ""
    text = f"{statistics.mean(steps):.0f}{spread}"
    ratios = [step / other for step, other in zip(steps, base, strict=False) if other is not None]
    if len(ratios) < len(steps):
        return text
    ratio_spread = f" ± {statistics.stdev(ratios):.2f}" if len(ratios) > 1 else ""
    return f"{text} ({statistics.mean(ratios):.2f}{ratio_spread})"


def _slug(name: str) -> str:
    return name.replace("'", "").replace(":", "").replace(",", "").replace(" ", "-").lower()


def _work(config: ModelConfig, options: Options, listener: Listener) -> Values:
    system, pairs = CommunitySystem(), paper_pairs(options)
    listener.stage(f"variance, {config.estimator}, baseline {config.baseline}: training")
    predictor = system.true_predictor()
    result = train(config, system, pairs, options, listener, predictor=predictor, trace_every=EVERY)
    by_run = zip(*(line["edge_prob_mae"] for line in result.trace), strict=True)
    return {
        "steps_seen": [line["step"] for line in result.trace],
        "errors": [[round(error, 5) for error in line] for line in by_run],
        "train_seconds": result.train_seconds,
    }
