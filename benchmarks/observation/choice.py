"""Is the same observation model chosen on resamples of the same table?

    python -m benchmarks.observation.choice --half choose test --name after

A resample of one series is ten blocks of a tenth of its rows, and one of several experiments is as many of them, drawn
with replacement. gnw20 networks 1 to 10, two networks of DREAM4 and one series of each system choose the method; the
others are scored once. The record has, for each table, its kinds, and on how many resamples all nodes have the same
kind as on the table itself. ``--name`` is the name of the result, so that two versions can stand beside each other.
Writes ``benchmarks/results/observation/choice-NAME.json``.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from benchmarks.existence import systems as plain
from benchmarks.existence.known import data_folder, known_systems
from benchmarks.observation.records import RESULTS, Figures, read, write
from benchmarks.observation.systems import SEEDS, mixed, network

from tacit.config import FitConfig
from tacit.data import Series
from tacit.pipeline import plan
from tacit.pipeline.observation_kinds import kinds_of
from tacit.pipeline.sources import Source

FAMILIES = ("gaussian", "student_t", "log_normal", "poisson", "negative_binomial", "bernoulli", "ordered")
ROWS, BLOCKS = 800, 10
DREAM4 = {"choose": (1, 2), "test": (3, 4, 5)}
LORENZ = {"choose": ("F_10_T_500_dataset_1", "F_40_T_1000_dataset_1"), "test": ("F_10_T_500_dataset_2",)}
Parts = Sequence[np.ndarray]


class Chosen(Exception):  # noqa: N818  ends the plan: the rest of the fit is not needed
    """The kinds of the nodes of a table."""


def tables(half: str) -> Iterator[tuple[str, str, Parts]]:
    """Yield the group, the name and the series of each table."""
    folder = data_folder()
    for name, system in known_systems(f"gnw20-{half}", folder):
        yield "gnw20", name, system.series
    for name, system in known_systems("dream4-10", folder):
        if int(name.split()[-1]) in DREAM4[half]:
            yield "DREAM4", name, system.series
    for wanted in LORENZ[half]:
        for name, system in known_systems(wanted.split("_dataset")[0], folder):
            if name == wanted:
                yield "Lorenz-96", name, system.series
    seed = SEEDS[half][0]
    yield "VAR", f"VAR {seed}", plain.var(seed, 10, ROWS).series
    for family in FAMILIES:
        yield family, f"{family} {seed}", (network(seed, family, rows=ROWS).series,)
    yield "mixed kinds", f"mixed {seed}", (mixed(seed, rows=ROWS).series,)


def resample(parts: Parts, rng: np.random.Generator) -> list[np.ndarray]:
    """Return blocks of one series, or some of several."""
    if len(parts) > 1:
        return [parts[place] for place in rng.integers(0, len(parts), len(parts))]
    size = len(parts[0]) // BLOCKS
    return [parts[0][start : start + size] for start in rng.integers(0, len(parts[0]) - size + 1, BLOCKS)]


def kinds(parts: Parts) -> tuple[str, ...]:
    """Return the observation model of each node that a fit with defaults would use."""
    names = tuple(f"v{node}" for node in range(parts[0].shape[1]))
    pieces = [Series(np.ascontiguousarray(part)[:, :, None], names, piece=True) for part in parts]
    several = [str(number) for number in range(len(pieces))]
    series = Series(pieces[0].values, names) if len(pieces) == 1 else Series.joined(pieces, several)
    try:
        made = plan.resolve(
            Source("data", series), FitConfig(), seed=0, device=torch.device("cpu"), command="benchmark"
        )
    except Chosen as chosen:
        return tuple(chosen.args[0])
    return kinds_of(made.config, names)


def main() -> None:
    """Run the chosen half, a record for each table at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", nargs="+", choices=("choose", "test"), default=["choose", "test"])
    parser.add_argument("--name", default="after")
    parser.add_argument("--resamples", type=int, default=2)
    options = parser.parse_args()
    path = RESULTS / f"choice-{options.name}.json"
    inside = plan.with_chosen_kinds

    def stop(source: Source, config: FitConfig, dataset: plan.Dataset, *rest: object) -> object:
        found = inside(source, config, dataset, *rest)[0]  # type: ignore[arg-type]
        raise Chosen(["gaussian" if one == "auto" else one for one in kinds_of(found, dataset.nodes)])

    plan.with_chosen_kinds = stop  # type: ignore[assignment]
    for half in options.half:
        for number, (group, name, parts) in enumerate(tables(half)):
            whole, rng = kinds(parts), np.random.default_rng([number, len(half)])
            found = [kinds(resample(parts, rng)) for _ in range(options.resamples)]
            row: Figures = {
                "group": group,
                "kinds": dict(Counter(whole)),
                "resamples": len(found),
                "same": sum(one == whole for one in found),
                "nodes": float(np.mean([a == b for one in found for a, b in zip(one, whole, strict=True)])),
            }
            print(half, name, row, flush=True)
            write(path, half, {**read(path).get(half, {}), name: row})
    for half, rows in read(path).items():
        same, number = (sum(row[key] for row in rows.values()) for key in ("same", "resamples"))
        nodes = float(np.mean([row["nodes"] for row in rows.values()]))
        print(f"{options.name}, {half}: all nodes the same on {same} of {number} resamples; {nodes:.1%} of the nodes")


if __name__ == "__main__":
    main()
