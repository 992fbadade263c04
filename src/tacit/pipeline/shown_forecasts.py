"""Forecasts of the test part that a run keeps, so that its page can show them beside what was observed.

The number of rows and nodes is bounded: the last rows of the test part (of several series the last ones of each), and
of many nodes those into which the most edges are expected.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from tacit.assessment.evaluation import SharedDraws, discrete_nodes, point_prediction
from tacit.config import FitConfig
from tacit.data import Pairs
from tacit.edges import EdgeTable
from tacit.pipeline.class_forecasts import as_values
from tacit.pipeline.dataset import Dataset
from tacit.randomness import generator_for
from tacit.records import FORECAST_NUMBERS, QUANTILES, ForecastTable
from tacit.training import LatentGraphModel

MOST_ROWS, FEWEST_ROWS = 200, 20  # of all series, and of each of several
MOST_SHOWN = 50  # nodes, times variables
# Graphs of a forecast: with 400 the standard error of the lowest quantile is 0.8% in probability. Of many nodes fewer,
# so that a forecast of all rows takes about a second.
MOST_GRAPHS, FEWEST_GRAPHS, MOST_VALUES = 400, 100, 20_000_000
Restore = Callable[[Tensor, Pairs], Tensor]


def shown_forecasts(
    model: LatentGraphModel, test: Pairs, dataset: Dataset, config: FitConfig, edges: EdgeTable, seed: int
) -> ForecastTable:
    """Return the forecasts of the test part of a fit that are kept, in the units of the data."""
    preparation = dataset.preparation
    pairs = test[last_rows(test)]

    def restore(values: Tensor, some: Pairs) -> Tensor:
        return as_values(preparation.to_units(values.double().cpu(), some), config, dataset.nodes)

    nodes = shown_nodes(model.graph.described(edges), MOST_SHOWN // len(preparation.target_names))
    series = [] if pairs.series is None else [dataset.series_names[number] for number in pairs.series.tolist()]
    numbers = quantiles_and_targets(model, pairs, nodes, restore, seed)
    several = series if len(dataset.series_names) > 1 else []
    return ForecastTable(
        preparation.row_name,
        row_labels(pairs, dated=dataset.dated),
        several,
        nodes,
        list(preparation.target_names),
        numbers,
    )


def pair_forecasts(model: LatentGraphModel, test: Pairs, seed: int) -> ForecastTable:
    """Return the forecasts of pairs that are in the units of the data, for a run that was not made by a fit."""
    pairs = test[last_rows(test)]
    edges = model.graph.described(EdgeTable(model.graph.index([str(node) for node in range(pairs.num_nodes)])))
    nodes = shown_nodes(edges, MOST_SHOWN // pairs.targets.shape[2])
    variables = [f"y{channel}" for channel in range(pairs.targets.shape[2])] if pairs.targets.shape[2] > 1 else ["y"]
    numbers = quantiles_and_targets(model, pairs, nodes, lambda values, _: values.double().cpu(), seed)
    return ForecastTable("pair", row_labels(pairs, dated=False), [], nodes, variables, numbers)


def quantiles_and_targets(
    model: LatentGraphModel, pairs: Pairs, nodes: Sequence[int], restore: Restore, seed: int
) -> Float[np.ndarray, "row node variable column"]:
    """Return quantiles of the forecasts of some nodes and their targets, in the order of ``FORECAST_NUMBERS``."""
    device = model.graph.raw.device
    graphs = MOST_VALUES // (len(pairs) * model.graph.num_nodes)
    graphs = max(FEWEST_GRAPHS, min(MOST_GRAPHS, graphs))
    draws = SharedDraws(model, graphs, generator_for(seed, "forecasts", device))
    discrete, chosen = discrete_nodes(model.observation, pairs.num_nodes), list(nodes)
    parts = []
    for start in range(0, len(pairs), draws.pairs_at_once):
        some = pairs[start : start + draws.pairs_at_once]
        samples = draws.values(some)
        found = [restore(point_prediction(samples, level, discrete), some) for level in QUANTILES.values()]
        actual = restore(some.targets, some)
        if some.observed is not None:
            actual = actual.masked_fill(some.observed.cpu() == 0, math.nan)
        parts.append(torch.stack([*found, actual], -1)[:, chosen])
    numbers = torch.cat(parts).numpy()
    assert numbers.shape[-1] == len(FORECAST_NUMBERS)
    return numbers


def last_rows(pairs: Pairs) -> Int[Tensor, " row"]:
    """Return the places of the last pairs, of several series those of each, in their order.

    >>> last_rows(Pairs(torch.zeros(300, 2, 1), torch.zeros(300, 2, 1)))[[0, -1]].tolist()
    [100, 299]
    """
    if pairs.series is None:
        return torch.arange(max(0, len(pairs) - MOST_ROWS), len(pairs))
    numbers = sorted(set(pairs.series.tolist()))
    each = max(FEWEST_ROWS, MOST_ROWS // len(numbers))
    found = [(pairs.series == number).nonzero()[:, 0][-each:] for number in numbers[: MOST_ROWS // each]]
    return torch.cat(found).cpu()


def shown_nodes(edges: EdgeTable, most: int) -> list[int]:
    """Return all nodes, or of many those into which the most edges are expected, in their order."""
    count = len(edges.index.target_names)
    if count <= max(1, most):
        return list(range(count))
    expected = torch.from_numpy(np.bincount(edges.index.target, edges.decides, count)).float()
    return sorted(expected.argsort(descending=True, stable=True)[: max(1, most)].tolist())


def row_labels(pairs: Pairs, *, dated: bool) -> list[str]:
    """Return the time of each pair, or its number, as text."""
    if pairs.times is None:
        return [str(row) for row in range(len(pairs))]
    times = pairs.times.cpu().numpy()
    if not dated:
        return [f"{time:.15g}" for time in times]
    unit, factor = ("s", 1) if np.allclose(times, times.round(), rtol=0, atol=1e-6) else ("ms", 1000)
    dates = (times * factor).round().astype("int64").astype(f"datetime64[{unit}]")
    return [str(date) for date in dates]
