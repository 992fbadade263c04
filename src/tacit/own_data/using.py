"""``tacit predict`` and ``tacit evaluate``: a finished run on new data."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tacit.errors import require
from tacit.evaluation import forecast_scores, predict
from tacit.graph import require_memory
from tacit.own_data.new_file import write_asked_for
from tacit.own_data.stages import TOO_FEW, fit_test
from tacit.own_data.stored import StoredRun
from tacit.randomness import generator_for

if TYPE_CHECKING:
    import pandas as pd

LEVELS = (0.025, 0.1, 0.5, 0.9, 0.975)
KINDS = (".csv", ".parquet")
BYTES_OF_A_CELL = 30  # while the table is made and written as text
CHUNK = 64  # pairs whose predictions are put into units together
NOT_TESTED = "This run has no fit test of its own, as it was stopped before or is older; pass DATA to test it."


def predict_run(stored: StoredRun, source: str, *, seed: int = 0, num_samples: int = 0) -> "pd.DataFrame":
    """Return one row per time, node and variable: mean, median, quantiles and, if asked for, samples.

    Every window of ``source`` is predicted, those whose target is not known yet included.
    """
    import pandas as pd

    new, preparation = stored.preparation.apply(source, stored.config.data), stored.preparation
    device = next(stored.model.parameters()).device
    cells = new.pairs.targets.numel() * (num_samples + len(LEVELS) + 1)
    what = f"a table with {num_samples:,} samples in each of {new.pairs.targets.numel():,} rows"
    require_memory(BYTES_OF_A_CELL * cells, "cpu", what, "lower --samples, or pass fewer rows")
    generator, parts = generator_for(seed, "predict", device), []
    for start in range(0, len(new.pairs), CHUNK):
        inputs = new.pairs.inputs[start : start + CHUNK].to(device)
        found = predict(stored.model, inputs, generator=generator, levels=LEVELS, num_samples=num_samples)
        values = [found.mean, *found.quantiles]
        if found.samples is not None:
            values += list(found.samples.unbind(1))
        parts.append(torch.stack([preparation.to_units(value).cpu() for value in values], -1))
    numbers = torch.cat(parts)  # (pair, node, channel, column)
    pairs, nodes, channels, _ = numbers.shape
    names = ["mean", *(f"q{100 * level:g}" for level in LEVELS), *(f"sample_{s}" for s in range(num_samples))]
    table: dict[str, Any] = {} if new.series is None else {"series": np.repeat(new.series, nodes * channels)}
    table |= {
        preparation.row_name: np.repeat(new.times, nodes * channels),
        "node": np.tile(np.repeat(preparation.nodes, channels), pairs),
        "variable": np.tile(preparation.target_names, pairs * nodes),
    }
    flat = numbers.reshape(-1, len(names)).numpy()
    table |= {name: flat[:, column] for column, name in enumerate(names)}
    return pd.DataFrame(table).rename(columns={"q50": "median"})


def evaluate_run(stored: StoredRun, source: str | None, *, seed: int = 0) -> dict[str, Any]:
    """Return scores and findings of the run on its own test part, as they were recorded, or on new data."""
    if source is None:
        record = stored.record
        return {
            "data": "the test part",
            "metrics": record.metrics,
            "references": record.references,
            "findings": record.findings or [NOT_TESTED],
            "goodness": record.goodness,
        }
    new, device = stored.preparation.apply(source, stored.config.data), next(stored.model.parameters()).device
    pairs = new.pairs
    seen = torch.ones_like(pairs.targets) if pairs.observed is None else pairs.observed
    require(bool(seen.any()), f"{source}: no target is known, so that there is nothing to score; pass more rows")
    known = pairs[seen.flatten(1).any(1)]
    spread = stored.preparation.spread
    scores = forecast_scores(
        stored.model, known.to(device), generator=generator_for(seed, "score", device), spread=spread
    )
    by_node = {
        name: dict(zip(stored.preparation.nodes, values, strict=True)) for name, values in scores.by_node.items()
    }
    goodness = fit_test(stored.model, known.to(device), stored.preparation, seed)
    return {
        "data": source,
        "pairs": len(known),
        "metrics": scores.numbers(),
        "by_node": by_node,
        "findings": [TOO_FEW] if goodness is None else goodness.sentences(),
        "goodness": {} if goodness is None else goodness.to_dict(),
    }


def require_new_table(path: Path) -> None:
    """Refuse a place for a table before the work begins."""
    require(path.suffix in KINDS, f"out needs a .csv or .parquet file, got {path}; choose another --out")
    require(not path.exists(), f"out needs a new file, got {path}, which exists; choose another --out")


def write_table(frame: "pd.DataFrame", path: Path) -> None:
    """Write a table as CSV or parquet, by the name of the file: whole, or not at all, and never over another."""
    require_new_table(path)
    if path.suffix == ".csv":
        data = frame.to_csv(index=False, float_format="%.6g").encode()
    else:
        data = frame.to_parquet(index=False)
    write_asked_for(path, data, option="out", other="--out", folder=True)


def as_json(values: dict[str, Any]) -> str:
    """Return scores as JSON; what is not a number is null."""
    return json.dumps(_finite(values), indent=2)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
