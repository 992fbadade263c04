r"""Events with a known graph: multivariate Hawkes processes on several units, and the scores of the listed edges.

Events of type $a$ on unit $u$ start at the rate $\mu_{a} m_u(t)$, where $m_u(t)$ is 1, or switches between calm and
busy phases that all types of the unit share. Each event of type $a$ causes Poisson($\alpha_{ab}$) events of type $b$,
on the same unit, at delays that are exponential or log-normal with mean $\tau_{ab}$.

    python -m benchmarks.events [--seeds 3]
"""

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Setting:
    """Sizes of a system of events; times are seconds."""

    types: int = 10
    units: int = 20
    events: int = 10_000  # about
    density: float = 0.15
    branching: tuple[float, float] = (0.1, 0.4)  # range of alpha
    delays: tuple[float, float] = (30.0, 300.0)  # range of tau
    log_normal: bool = False
    own: float = 0.1  # share of events that repeat by themselves
    rate: float = 1 / 5_000  # of starts per unit, all types together
    bursts: bool = False
    spread: float = 1.0  # standard deviation of the logarithm of the rates of types


SETTINGS = {
    "small": Setting(types=5, units=1, events=3_000),
    "panel": Setting(),
    "large": Setting(types=18, units=50, events=30_000, density=0.2, branching=(0.03, 0.25)),
    "bursts": Setting(bursts=True),
    "slow": Setting(delays=(300.0, 3_000.0), log_normal=True, rate=1 / 20_000),
    "dense": Setting(types=6, units=1, events=20_000, delays=(2.0, 5.0), rate=1 / 5, density=0.3),
}


def simulate(setting: Setting, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return columns of events (time, type, unit), sorted by time, and the graph as [source, target]."""
    rng = np.random.default_rng(seed)
    count = setting.types
    graph = (rng.random((count, count)) < setting.density) & ~np.eye(count, dtype=bool)
    alpha = np.where(graph, rng.uniform(*setting.branching, (count, count)), 0.0)
    alpha[np.diag_indices(count)] = setting.own * rng.random(count)
    largest = max(abs(np.linalg.eigvals(alpha)))
    alpha *= min(1.0, 0.8 / largest)  # so that the process is stable
    tau = np.exp(rng.uniform(*np.log(setting.delays), (count, count)))
    share = np.exp(setting.spread * rng.normal(size=count))
    share /= share.sum()
    per_start = float(share @ np.linalg.inv(np.eye(count) - alpha).sum(axis=1))
    starts = setting.events / per_start
    length = starts / (setting.rate * setting.units)
    made = rng.poisson(starts)
    when, unit = rng.random(made) * length, rng.integers(setting.units, size=made)
    if setting.bursts:  # all starts of a unit fall into busy phases, a tenth of the time
        phase = length / 50
        busy = rng.integers(50, size=(setting.units, 5))
        when = phase * (busy[unit, rng.integers(5, size=made)] + rng.random(made))
    kind = rng.choice(count, size=made, p=share)
    times, kinds, units = [when], [kind], [unit]
    while len(when):
        children = rng.poisson(alpha[kind])  # (event, target)
        parent, target = np.nonzero(children)
        repeat = children[parent, target]
        parent, target = np.repeat(parent, repeat), np.repeat(target, repeat)
        mean = tau[kind[parent], target]
        width = 0.7
        delay = np.exp(np.log(mean) - width**2 / 2 + width * rng.normal(size=len(mean)))
        delay = delay if setting.log_normal else rng.exponential(mean)
        when, kind, unit = when[parent] + delay, target, unit[parent]
        times.append(when)
        kinds.append(kind)
        units.append(unit)
    when, kind, unit = (np.concatenate(one) for one in (times, kinds, units))
    order = np.argsort(when)
    return {"time": np.round(when[order], 1), "type": kind[order], "unit": unit[order]}, graph


def scores(name: str, seed: int) -> dict[str, Any]:
    """Return the scores of the edges that a fit of events with defaults lists, and its processor time."""
    import pandas as pd

    from tacit import LatentGraphForecaster
    from tacit.config import AssessmentOptions, DataOptions

    events, graph = simulate(SETTINGS[name], seed)
    start = time.process_time()
    options = {"data": DataOptions(events=True), "assessment": AssessmentOptions(enabled=False)}
    listed = LatentGraphForecaster(**options).fit(pd.DataFrame(events)).listed_edges()
    found = {(int(source), int(target)) for source, target in zip(listed["source"], listed["target"], strict=True)}
    true = {(int(source), int(target)) for source, target in np.argwhere(graph)}
    both = len(found & true)
    return {
        "setting": name,
        "seed": seed,
        "events": len(events["time"]),
        "true": len(true),
        "listed": len(found),
        "precision": both / max(1, len(found)),
        "recall": both / len(true),
        "f1": 2 * both / (len(found) + len(true)),
        "cpu_seconds": time.process_time() - start,
    }


def main() -> None:
    """Print a row for each setting and seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", nargs="*", default=[*SETTINGS], choices=[*SETTINGS])
    arguments = parser.parse_args()
    for name in arguments.settings:
        for seed in range(arguments.seeds):
            row = scores(name, seed)
            print(
                "  ".join(
                    f"{key}={value:.3g}" if isinstance(value, float) else f"{key}={value}" for key, value in row.items()
                )
            )


if __name__ == "__main__":
    main()
