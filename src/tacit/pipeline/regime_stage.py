"""The stage of a fit that looks for regimes: of the edges into each node, or of the whole graph.

A block of edges must have two listed edges: the regimes of a single edge are not identifiable.
"""

import math
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from tacit.assessment.regimes import (
    RegimeFit,
    has_regime_likelihood,
    regime_posterior,
    regimes_by_likelihood,
    regimes_by_training,
)
from tacit.data import Pairs, Split
from tacit.edges import REGIME, EdgesBy
from tacit.graph import Blocks
from tacit.pipeline.dataset import Dataset
from tacit.pipeline.situation_stage import CONSTANT, MIXTURE, SituationFit, StageInputs, edge_ends, listed_in, once
from tacit.pipeline.situation_words import (
    NO_BLOCK,
    NO_GATES,
    TRAINED_REGIMES,
    one_regime,
    regime_sentence,
    undetermined_regimes,
)
from tacit.randomness import generator_for
from tacit.shapes import EdgeMask
from tacit.training import LatentGraphModel

MOST_SHOWN, MOST_NUMBERS = 2000, 400_000  # observations in a record, and numbers of them together
WHOLE = "all"
DIGITS = 3


def find_regimes(
    fit: StageInputs, dataset: Dataset, num_regimes: int | Literal["auto"], blocks: Blocks
) -> SituationFit:
    """Fit regimes, and return the fit with them; if one regime is enough, the constant graph is kept."""
    names = [WHOLE] if blocks == WHOLE else list(fit.nodes)
    shown = _in_blocks_of_two(fit.model, listed_in(fit.model.graph, fit.edges), blocks)
    record: dict[str, Any] = {"kind": CONSTANT, "blocks": names}
    if not shown.any():
        return SituationFit(None, {}, record, sentences=(NO_BLOCK[blocks],))
    found = _fitted(fit, num_regimes, blocks)
    if found.model is None:
        return SituationFit(None, {}, record, sentences=(one_regime(found) if found.steps else NO_GATES[blocks],))
    shown &= found.in_regimes
    if not shown.any():  # the regimes are those of edges that are not listed
        return SituationFit(None, {}, record, sentences=(NO_GATES[blocks],))
    rows = regime_rows(found, shown)
    record |= {
        "kind": MIXTURE,
        "graph": found.graph.to_dict(),
        "weights": [[round(value, 6) for value in block] for block in found.weights.value.tolist()],
        "posterior": posterior_over_time(found.model, fit.split, dataset, fit.seed),
    }
    arrow = "-" if fit.model.graph.symmetric else "->"
    said = regime_sentence(rows, record["weights"], names, fit.nodes, arrow)
    unknown = int((shown & found.regime_probs.unknown.any(0).cpu()).sum())
    notes = [undetermined_regimes(unknown, int(shown.sum()))] if unknown else []
    if not has_regime_likelihood(fit.model, fit.split.train, blocks):
        notes.append(TRAINED_REGIMES)
    return SituationFit(found.model, _marginals(found, fit), record, rows, (said,), tuple(notes))


def _fitted(fit: StageInputs, num_regimes: int | Literal["auto"], blocks: Blocks) -> RegimeFit:
    """Fit by likelihood if the model has one for each node, otherwise by training."""
    model, train, validation = fit.model, fit.split.train, fit.split.validation
    if has_regime_likelihood(model, train, blocks):
        return regimes_by_likelihood(
            model, train, validation, num_regimes=num_regimes, blocks=blocks, seed=fit.seed, block=fit.block
        )
    return regimes_by_training(
        model,
        train,
        validation,
        fit.settings,
        num_regimes=num_regimes,
        blocks=blocks,
        seed=fit.seed,
        compile=fit.compile,
        block=fit.block,
        on_progress=fit.listener.step,
    )


def _in_blocks_of_two(model: LatentGraphModel, listed: EdgeMask, blocks: Blocks) -> EdgeMask:
    """Return the listed edges in blocks with at least two of them."""
    graph = model.graph
    each = once(graph, listed)
    if blocks == WHOLE:
        return each if int(each.sum()) > 1 else torch.zeros_like(each)
    row_node = torch.arange(len(each)) if graph.candidates is None else graph.candidates.row_node.cpu()
    counts = torch.zeros(graph.num_nodes).index_add(0, row_node, each.sum(1).float())
    return each & (counts[row_node] > 1)[:, None]


def regime_rows(found: RegimeFit, shown: EdgeMask) -> EdgesBy:
    """Return how often edges act in each regime."""
    sources, targets = edge_ends(found.graph, shown)
    count, chosen = found.num_regimes, shown.to(found.regime_probs.value.device)
    numbers = {
        name: [None if math.isnan(value) else value for value in values[:, chosen].mT.flatten().tolist()]
        for name, values in zip(("probability", "std_error", "low", "high"), found.regime_probs, strict=True)
    }
    return EdgesBy(
        source=np.repeat(sources, count).tolist(),
        target=np.repeat(targets, count).tolist(),
        by=[REGIME] * (count * len(sources)),
        value=[str(number + 1) for number in range(count)] * len(sources),
        **numbers,
    )


def _marginals(found: RegimeFit, fit: StageInputs) -> dict[str, Tensor | None]:
    """Return errors and intervals of the marginal probabilities, which replace those of the constant graph.

    After training they are not known: those of the constant graph belong to other probabilities. Edges that are not in
    a regime keep theirs, and so do edges that act together: their states are those of one gate.
    """
    if "std_error" not in fit.edges:
        return {}
    graph = fit.model.graph
    names = ("std_error", "low", "high")
    known = graph.learned.cpu() & ~found.marginals.std_error.isnan().cpu()
    if not known.any():
        return dict.fromkeys(names)
    if "together" in fit.edges:
        known &= graph.placed(fit.edges["together"], math.nan).isnan()
    new = {name: values.cpu().double() for name, values in zip(names, found.marginals[1:], strict=True)}
    old = {name: graph.placed(fit.edges[name]) for name in names}
    return {name: torch.where(known, values, old[name].double()) for name, values in new.items()}


def posterior_over_time(model: LatentGraphModel, split: Split, dataset: Dataset, seed: int) -> dict[str, Any]:
    """Return the probability of each regime for some observations of all parts, for the record."""
    parts = {"train": split.train, "validation": split.validation, "test": split.test}
    order = _in_time_order(list(parts.values()))
    numbers = model.graph.weight_logits.numel()  # type: ignore[operator]
    most = max(1, min(MOST_SHOWN, MOST_NUMBERS // int(numbers)))
    chosen = order[np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int)]
    ends = np.cumsum([0, *(len(part) for part in parts.values())])
    found: dict[int, tuple[Any, ...]] = {}
    for number, (name, pairs) in enumerate(parts.items()):
        rows = np.sort(chosen[(chosen >= ends[number]) & (chosen < ends[number + 1])]) - ends[number]
        if not len(rows):
            continue
        some = pairs[torch.from_numpy(rows).to(pairs.inputs.device)]
        generator = generator_for(seed, "regimes over time", pairs.inputs.device)
        probs = regime_posterior(model, some, generator=generator).cpu().double()
        for row, one in zip(rows.tolist(), probs.numpy().round(DIGITS).tolist(), strict=True):
            found[int(ends[number]) + row] = name, row, one
    times = [_time(parts[found[key][0]], found[key][1], int(key), dated=dataset.dated) for key in chosen]
    series = [_series(parts[found[key][0]], found[key][1], dataset) for key in chosen]
    return {
        "times": times,
        **({"series": series} if len(dataset.series_names) > 1 else {}),
        "parts": [found[key][0] for key in chosen],
        "probs": [found[key][2] for key in chosen],
    }


def _in_time_order(parts: list[Pairs]) -> np.ndarray:
    """Return the order of all pairs by series and time; unchanged without time."""
    count = sum(len(part) for part in parts)
    if any(part.times is None for part in parts):
        return np.arange(count)
    times = torch.cat([part.times.cpu() for part in parts if part.times is not None]).numpy()
    series = [torch.zeros(len(part)) if part.series is None else part.series.cpu().float() for part in parts]
    order: np.ndarray = np.lexsort((times, torch.cat(series).numpy()))
    return order


def _time(pairs: Pairs, row: int, place: int, *, dated: bool) -> str | float | int:
    if pairs.times is None:
        return place
    number = float(pairs.times[row])
    return str(np.datetime64(round(number), "s")) if dated else number


def _series(pairs: Pairs, row: int, dataset: Dataset) -> str:
    return "" if pairs.series is None else dataset.series_names[int(pairs.series[row])]
