"""Tables of forecasts: quantiles, classes, regimes, the series of new data, and the part that the page shows.

Forecasts of discrete targets: probabilities of the values, and quantiles that are possible values.

Forecasts of the test part that a run keeps, so that its page can show them beside what was observed.

The number of rows and nodes is bounded: the last rows of the test part (of several series the last ones of each), and
of many nodes those into which the most edges are expected.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from tacit.assessment.evaluation import SharedDraws, discrete_nodes, point_prediction
from tacit.config import FitConfig
from tacit.data import Pairs, SeriesUnits
from tacit.edges import EdgeTable
from tacit.errors import InputError, did_you_mean
from tacit.graph import MixtureGraph, require_memory
from tacit.observation import ObservationModel, Support
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.fitted import Fitted
from tacit.pipeline.observation_kinds import supports_of, target_values
from tacit.pipeline.preparation import OfSeries, Preparation, SeriesPreparation
from tacit.randomness import generator_for
from tacit.records import FORECAST_NUMBERS, QUANTILES, ForecastTable
from tacit.shapes import TargetParams
from tacit.training import LatentGraphModel

if TYPE_CHECKING:
    import pandas as pd


YES_NO = (0.0, 1.0)
CLASSES: tuple[Support, ...] = ("two values", "categories")
WHOLE: tuple[Support, ...] = ("counts", "two values")


def classes_of(config: FitConfig, support: Support) -> tuple[float, ...]:
    """Return the values of yes-or-no targets or of ordered categories; empty for other targets."""
    return {"two values": YES_NO, "categories": config.observation.categories or ()}.get(support, ())


@dataclass(frozen=True, eq=False)
class ClassForecasts:
    """Values whose probabilities are part of a forecast.

    ``classes``  the values in increasing order, those of all nodes together
    ``targets``  the values as scaled targets
    ``has``      which values a node can have
    """

    classes: tuple[float, ...]
    targets: Float[Tensor, "class node channel"]
    has: Bool[Tensor, "class node"]

    @classmethod
    def of(cls, config: FitConfig, preparation: Preparation) -> "ClassForecasts | None":
        """Return the class forecasts of a fit; None if no node has classes."""
        each = [classes_of(config, support) for support in supports_of(config, preparation.nodes)]
        classes = tuple(sorted({value for values in each for value in values}))
        if not classes:
            return None
        known = target_values(config, preparation)
        targets = (torch.tensor(classes)[:, None, None] - known.offset) / known.unit
        return cls(classes, targets, torch.tensor([[value in values for values in each] for value in classes]))

    @torch.no_grad()
    def probs(
        self, observation: ObservationModel, described: TargetParams
    ) -> Float[Tensor, "batch node channel class"]:
        """Return the mean probability over graphs of each value; NaN for a value that its node cannot have."""
        found = []
        for targets, has in zip(self.targets.to(described), self.has.to(described.device), strict=True):
            masses = observation.log_prob(described, targets.expand(len(described), -1, -1)).exp().mean(1)
            found.append(torch.where(has[:, None], masses, torch.nan))
        return torch.stack(found, -1).cpu()

    def columns(
        self,
        probs: Float[Tensor, "key node channel class"],
        means: Float[Tensor, "key node channel"],
        supports: tuple[Support, ...],
    ) -> dict[str, Float[np.ndarray, "key node channel"]]:
        """Return the columns of a table: ``probability`` of yes, which is the mean, and ``P(value)`` of categories."""
        yes_no, ordered = (torch.tensor([one == support for one in supports]) for support in CLASSES)
        table = {"probability": torch.where(yes_no[:, None], means, torch.nan)} if yes_no.any() else {}
        for place, value in enumerate(self.classes):
            if bool((self.has[place] & ordered).any()):
                table[f"P({value:g})"] = torch.where(ordered[:, None], probs[..., place], torch.nan)
        return {name: values.double().numpy() for name, values in table.items()}


def as_values(
    values: Float[Tensor, "*any node channel"], config: FitConfig, nodes: tuple[str, ...]
) -> Float[Tensor, "*any node channel"]:
    """Return samples or quantiles in the units of the data, rounded to the possible values: integers, categories.

    >>> from tacit.config import ObservationOptions
    >>> config = FitConfig(observation=ObservationOptions(kind="poisson"))
    >>> as_values(torch.tensor([[[2.9999998]]]), config, ("a",)).item()
    3.0
    """
    supports = supports_of(config, nodes)
    whole, ordered = (
        torch.tensor([support in among for support in supports])[:, None] for among in (WHOLE, ("categories",))
    )
    found = torch.where(whole, values.round() + 0.0, values)  # no -0
    if ordered.any():
        known = torch.tensor(config.observation.categories, dtype=values.dtype)
        nearest = known[torch.bucketize(values.contiguous(), (known[1:] + known[:-1]) / 2)]
        found = torch.where(ordered & ~values.isnan(), nearest, found)
    return found


def are_whole(config: FitConfig, nodes: tuple[str, ...]) -> bool:
    """Return whether the values of all nodes are integers."""
    whole = all(float(value).is_integer() for value in config.observation.categories or ())
    return all(support in WHOLE or (support == "categories" and whole) for support in supports_of(config, nodes))


Columns = dict[str, Shaped[np.ndarray, "key node channel"]]


def regime_columns(fitted: Fitted, pairs: Pairs, seed: int) -> Columns:
    """Return the most likely regime of each pair and node, counted from 1, and its probability; none without regimes.

    With regimes of the whole graph, all nodes have the same regime; with regimes of each node, it is inferred from the
    target of the node.
    """
    graph = fitted.model.graph
    if not isinstance(graph, MixtureGraph):
        return {}
    from tacit.assessment.regimes import regime_posterior

    device = graph.raw.device
    probs = regime_posterior(fitted.model, pairs.to(device), generator=generator_for(seed, "regimes", device))
    return _columns(probs.cpu(), pairs.num_nodes, pairs.targets.shape[2])


def weight_columns(fitted: Fitted, count: int, channels: int) -> Columns:
    """Return the columns of ``count`` forecasts without known targets, from the weights of the regimes."""
    graph = fitted.model.graph
    if not isinstance(graph, MixtureGraph):
        return {}
    weights = graph.regime_weights.detach().cpu()[None]
    return _columns(weights.expand(count, -1, -1), graph.num_nodes, channels)


def _columns(probs: Float[Tensor, "key block regime"], num_nodes: int, channels: int) -> Columns:
    best, regime = probs.expand(-1, num_nodes, -1).max(-1)  # (key, node)
    shape = (*best.shape, channels)
    return {
        "regime": (regime + 1)[..., None].expand(shape).contiguous().numpy(),
        "regime_probability": best.double()[..., None].expand(shape).contiguous().numpy(),
    }


def needs_series(fitted: Fitted) -> bool:
    """Return whether the graph depends on the series."""
    return "series" in fitted.graph.context_fields


def training_names(fitted: Fitted) -> list[str]:
    """Return the names of the training series, in the order of their numbers."""
    assert isinstance(fitted.preparation, SeriesPreparation)
    return list(fitted.preparation.scaling.series_names)


def training_series(
    fitted: Fitted,
    names: Shaped[np.ndarray, " row"],
    numbers: Int[Tensor, " row"] | None,
    units: SeriesUnits | None,
    source: str,
) -> tuple[Int[Tensor, " row"], SeriesUnits | None]:
    """Return the training number of the series of each row, and the units in this order.

    ``names`` and ``numbers``  name and number of the series of each row of the new data; ``units`` has these numbers
    """
    known = training_names(fitted)
    place = {name: number for number, name in enumerate(known)}
    for name in dict.fromkeys(names.tolist()):
        if name not in place:
            raise InputError(
                f"{source}: edges depend on the series, and '{name}' was not in the training data"
                f"{did_you_mean(str(name), known)}; leave it out, or fit again with it"
            )
    series = torch.tensor([place[name] for name in names.tolist()], dtype=torch.int64)
    if units is None or numbers is None:
        return series, units
    tables = [np.full((len(known), *table.shape[1:]), np.nan) for table in (units.mean, units.deviation)]
    for new, old in {(int(new), int(old)) for new, old in zip(numbers, series, strict=True)}:
        tables[0][old], tables[1][old] = units.mean[new], units.deviation[new]
    return series, SeriesUnits(*tables)


LEVELS = (0.025, 0.1, 0.5, 0.9, 0.975)
BYTES_OF_A_CELL = 30  # while the table is made and written as text


def require_memory_for_table(rows: int, num_samples: int) -> None:
    """Raise :class:`InputError` if a table of this size would not fit in memory."""
    what = f"a table of {rows:,} rows" + (f" with {num_samples:,} samples each" if num_samples else "")
    remedy = "lower --steps or --samples, or pass fewer rows"
    require_memory(BYTES_OF_A_CELL * rows * (num_samples + len(LEVELS) + 2), "cpu", what, remedy)


def forecast_frame(
    fitted: Fitted,
    keys: dict[str, np.ndarray],
    numbers: Float[Tensor, "key node channel column"],
    actual: Float[np.ndarray, "key node channel"],
    notes: Sequence[str],
    further: Mapping[str, Float[np.ndarray, "key node channel"]] | None = None,
) -> "pd.DataFrame":
    """Return the table; ``numbers`` are mean, quantiles and samples in the units of the data.

    ``keys`` name the first axis: the time of each forecast and its series. ``further`` columns follow the quantiles.
    Quantiles and samples are integers if those of all nodes are.
    """
    import pandas as pd

    preparation = fitted.preparation
    count, nodes, channels, columns = numbers.shape
    table: dict[str, Any] = {name: np.repeat(values, nodes * channels) for name, values in keys.items()}
    table["node"] = np.tile(np.repeat(preparation.nodes, channels), count)
    table["variable"] = np.tile(preparation.target_names, count * nodes)
    flat, known = numbers.reshape(-1, columns).numpy(), 1 + len(LEVELS)
    table["mean"] = flat[:, 0]
    if are_whole(fitted.config, fitted.nodes):
        flat = flat.astype(np.int64)
    for place, level in enumerate(LEVELS):
        table["median" if level == 0.5 else f"q{100 * level:g}"] = flat[:, 1 + place]
    table |= {name: values.reshape(-1) for name, values in (further or {}).items()}
    table["actual"] = actual.reshape(-1)
    table |= {f"sample_{place}": flat[:, known + place] for place in range(columns - known)}
    frame = pd.DataFrame(table)
    frame.attrs["notes"] = list(notes)
    return frame


def in_units(fitted: Fitted, values: Tensor, pairs: OfSeries) -> Float[Tensor, "..."]:
    """Return predictions in the units of the data, in double precision because an offset may be large."""
    return fitted.preparation.to_units(values.double().cpu(), pairs)


def values_in_units(fitted: Fitted, values: Tensor, pairs: OfSeries) -> Float[Tensor, "..."]:
    """Return samples or quantiles in the units of the data: integers for counts, values for categories."""
    return as_values(in_units(fitted, values, pairs), fitted.config, fitted.nodes)


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
