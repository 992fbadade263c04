"""What is printed about a table before the fit: each finding with what the fit does about it and what changes that."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.config import FitConfig
from tacit.data import Finding, Series, look_at
from tacit.errors import InputError
from tacit.pipeline.backgrounds import background_of, background_words
from tacit.pipeline.choices import settle_events
from tacit.pipeline.sources import Source, about, read_sources
from tacit.words.table import sentence, sentences, time_words

NOTHING_FOUND = "nothing was found that may mislead a fit"
BACKGROUND = "{words}: edges are tested beside it; --background none leaves it out"


def check_table(sources: Sequence[str], config: FitConfig) -> tuple[dict[str, Any], list[str]]:
    """Read a table as a fit does; return its size, notes and findings as values, and the sentences to print."""
    source = read_sources(sources, config.data)
    series = source.content
    if not isinstance(series, Series):
        raise InputError(f"{source.name}: a check requires time series, got pairs (x, y); pass a table with times")
    found, background = _looked(series), []
    lines = sentences(found, series)
    try:
        background = background_words(background_of(source, settle_events(config)[0]), series.nodes)
        lines += [BACKGROUND.format(words=words) for words in background]
    except InputError as error:  # such as a constant node
        lines.append(f"a fit refuses this table: {error}")
    if not lines and not config.data.events:  # in counts of events nothing is looked for
        lines = [NOTHING_FOUND]
    times = series.row_times
    checked = {
        "data": source.name,
        "nodes": list(series.nodes),
        "variables": list(series.channels),
        "rows": len(series),
        "series": series.num_series,
        "first": time_words(series, 0),
        "last": time_words(series, len(series) - 1),
        "missing": float(np.isnan(series.values).mean()),
        "notes": list(series.notes),
        "background": background,
        "findings": [
            {
                "kind": one.kind,
                "nodes": list(one.nodes),
                "rows": list(one.rows),
                "times": [str(times[row]) for row in one.rows],
                "numbers": {name: number for name, number in one.numbers.items() if np.isfinite(number)},
                "sentence": sentence(one, series),
            }
            for one in found
        ],
    }
    return checked, lines


def looked_at(source: Source) -> list[str]:
    """Return the sentences on a table of series for a fit; none for pairs."""
    series = source.content
    with about(source.name):
        return sentences(_looked(series), series) if isinstance(series, Series) else []


def _looked(series: Series) -> list[Finding]:
    """Return the findings of a table; none for counts of events, which are mostly 0 and have no unit to change."""
    return [] if "bin" in series.settled else look_at(series)
