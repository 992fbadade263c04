"""Do the intervals of forecast paths contain what they say? Paths of 24 steps on vector autoregressions.

``--seeds`` is the number of data sets; the records are of 20.
"""

from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from benchmarks.studies.var_system import VARSystem

from tacit.config import AssessmentOptions, FitConfig
from tacit.experiments.replication import quick_note
from tacit.experiments.study import Listener, Options, Records, Study, Table, Tasks, Values, Work
from tacit.pipeline import conclude, learn, path_table, read_table, resolve

STEPS = 24
SHOWN_STEPS = (1, 6, 24)
INTERVALS = {"0.8": ("q10", "q90"), "0.95": ("q2.5", "q97.5")}
ORIGINS, QUICK_ORIGINS = 200, 3  # paths do not overlap
FIRST_DATA_SEED = 700


@dataclass(frozen=True)
class Setting:
    """A row of the table; ``rows`` are given to the fit, which trains on 70% of them."""

    lags: int
    gate: float
    rows: int

    @property
    def words(self) -> str:
        """The system in words."""
        acts = "edges always act" if self.gate == 1 else f"edges act with probability {self.gate:g}"
        return f"VAR({self.lags}), {acts}"


SETTINGS = {
    "var1-always-200": Setting(1, 1.0, 200),
    "var1-always-1000": Setting(1, 1.0, 1000),
    "var1-always-2000": Setting(1, 1.0, 2000),
    "var1-gates-1000": Setting(1, 0.6, 1000),
    "var2-always-1000": Setting(2, 1.0, 1000),
    "var2-gates-1000": Setting(2, 0.6, 1000),
}


class ForecastPaths(Study):
    """The share of values inside the intervals of each step."""

    name = "forecast-paths"
    title = "Paths of 24 steps on VARs with 10 nodes: the share of later values inside the intervals."

    def tasks(self) -> Tasks:
        """One per setting."""
        return {name: _work(setting) for name, setting in SETTINGS.items()}

    def tables(self, records: Records) -> list[Table]:
        """The shares at some steps, and the lowest and highest over all steps, for each level."""
        found = {name: records[name] for name in SETTINGS if name in records}
        columns = ["data", "rows", *(f"step {step}" for step in SHOWN_STEPS), "lowest", "highest", "std. error"]
        notes = [
            "lowest, highest: over the 24 steps; data sets and origins of each are in the records",
            "std. error: of the share at one step, over data sets, the largest of the 24",
            "a fit trains on 70% of the rows, as tacit fit --quick does; paths start in later rows and do not overlap",
            *quick_note(list(found.values())),
        ]
        return [
            Table(
                f"Share of values inside the {float(level):.0%} interval",
                columns,
                [_row(SETTINGS[name], values, level) for name, values in found.items()],
                notes,
            )
            for level in INTERVALS
        ]


def _row(setting: Setting, values: Values, level: str) -> list[str]:
    shares = np.array([one[level] for one in values["runs"]])  # (data set, step)
    means, count = shares.mean(0), len(shares)
    error = shares.std(0, ddof=1).max() / np.sqrt(count) if count > 1 else np.nan
    cells = [f"{means[step - 1]:.3f}" for step in SHOWN_STEPS] + [f"{means.min():.3f}", f"{means.max():.3f}"]
    return [setting.words, f"{setting.rows:,}", *cells, f"{error:.3f}"]


def _work(setting: Setting) -> Work:
    def work(options: Options, listener: Listener) -> Values:
        origins = QUICK_ORIGINS if options.quick else ORIGINS
        runs = []
        for number in range(options.seeds):
            listener.stage(f"forecast-paths, {setting.words}, {setting.rows} rows: {number + 1} of {options.seeds}")
            runs.append(_shares(setting, FIRST_DATA_SEED + number, origins, options))
        return {**asdict(setting), "origins": origins, "runs": runs}

    return work


def _shares(setting: Setting, seed: int, origins: int, options: Options) -> Values:
    """Return the shares of one data set: fitted on the first rows, forecast from origins in the others."""
    system = VARSystem.random(seed, lags=setting.lags, gate=setting.gate)
    table = pd.DataFrame(system.generate(setting.rows + STEPS * (origins + 1), seed))
    table.columns = [f"node {number}" for number in table.columns]
    config = FitConfig(assessment=AssessmentOptions(enabled=False))
    source = read_table(table[: setting.rows], config.data)
    plan = resolve(source, config, seed=0, device=options.torch_device, command="forecast-paths")
    fitted = conclude(learn(plan))
    later = read_table(table, config.data, piece=True)
    found = path_table(fitted, later, STEPS, origin=setting.rows, every=STEPS)
    found = found[found["origin"] < setting.rows + STEPS * origins]
    shares = {
        level: found["actual"].between(found[low], found[high]).groupby(found["step"]).mean().tolist()
        for level, (low, high) in INTERVALS.items()
    }
    return {"seed": seed, "window": fitted.preparation.sizes.window, "origins": found["origin"].nunique(), **shares}
