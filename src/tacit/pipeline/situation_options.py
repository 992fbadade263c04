"""``depends_on`` and ``regimes``: compatible options, and the columns that they require."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from tacit.config import FitConfig
from tacit.data import PHASES
from tacit.errors import InputError, require
from tacit.registry import PREDICTORS

SERIES, TIME, SOURCE, TARGET = "series", "time", "source", "target"
ENDS = (SOURCE, TARGET)
SPECIAL = (SERIES, TIME, *ENDS)
AUTO, FILTER = "auto", "filter"
CHOICE = "predictor = filter: a network could absorb the dependence of edges on the inputs of their nodes"
PLAIN_GRAPH, PLAIN_LINK = "bernoulli", "sigmoid"


def settle_situations(config: FitConfig) -> FitConfig:
    """Return the config with the columns that ``depends_on`` names; incompatible options are refused.

    A part of the date is added to ``calendar`` and any other name to ``covariates``, so that nodes can depend on it
    too, and new data is read in the same way.
    """
    graph, data = config.graph, config.data
    require(
        graph.regimes is not None or graph.blocks == "rows",
        "blocks in [graph] requires regimes, got none; set regimes = 2, or leave blocks out",
    )
    if not graph.depends_on and graph.regimes is None:
        return config
    _require_together(config)
    names = tuple(_meant(name, config) for name in graph.depends_on)
    for position, name in enumerate(names):
        require(name not in names[:position], f"depends_on in [graph] names '{name}' twice; name it once")
    columns = [name for name in names if name not in SPECIAL and name not in (*data.covariates, *data.calendar)]
    dates = tuple(name for name in columns if name in PHASES)
    others = tuple(name for name in columns if name not in PHASES)
    changes: dict[str, Any] = {"calendar": (*data.calendar, *dates), "covariates": (*data.covariates, *others)}
    changes |= {"cut_series": True} if SERIES in names else {}
    return config.model_copy(
        update={
            "data": data.model_copy(update=changes),
            "graph": graph.model_copy(update={"depends_on": names}),
        }
    )


def _meant(name: str, config: FitConfig) -> str:
    """Return ``series`` or ``time`` for the column with this role, and any other name unchanged."""
    roles = {config.data.series: SERIES, config.data.time: TIME}
    return roles.get(name, name)


def _require_together(config: FitConfig) -> None:
    graph, what = config.graph, "depends_on" if config.graph.depends_on else "regimes"
    require(
        not graph.depends_on or graph.regimes is None,
        f"depends_on and regimes in [graph] cannot be combined, got {', '.join(graph.depends_on)} and {graph.regimes}; "
        "leave one of them out",
    )
    require(
        not graph.simultaneous,
        f"{what} in [graph] is not possible with simultaneous: effects within a step are those of a constant graph; "
        "leave one of them out",
    )
    for key, usual in (("graph", PLAIN_GRAPH), ("link", PLAIN_LINK)):
        got = getattr(config.model, key)
        require(got == usual, f"{what} in [graph] requires {key} = '{usual}' in [model], got '{got}'; leave it out")
    require(
        graph.regimes is None or not graph.symmetric or graph.blocks == "all",
        'symmetric in [graph] requires blocks = "all" with regimes, got "rows": an edge without direction is in two '
        "rows; set it, or leave one of them out",
    )
    kind = config.predictor.kind
    for name in graph.depends_on:
        require(
            name not in ENDS or not graph.symmetric,
            f"depends_on in [graph] names '{name}', but an edge without direction has no {name}; leave out symmetric, "
            "or name another variable",
        )
        absorbs = kind != AUTO and not (kind in PREDICTORS and PREDICTORS[kind].gated_by_inputs)
        require(
            name not in ENDS or not absorbs,
            f"depends_on in [graph] names '{name}', the input of a node, which requires a predictor without layers "
            f"(filter, hops), got '{kind}'; leave one of them out",
        )


def settle_own_inputs(config: FitConfig) -> tuple[FitConfig, list[str]]:
    """Return the config with the filter if edges may depend on the inputs of their nodes, and the reason."""
    if config.predictor.kind != AUTO or not set(config.graph.depends_on) & set(ENDS):
        return config, []
    return config.model_copy(update={"predictor": config.predictor.model_copy(update={"kind": FILTER})}), [CHOICE]


@contextmanager
def about_depends_on(config: FitConfig) -> Iterator[None]:
    """Change the errors of a reader so that they name ``depends_on``, if the user named the column there."""
    try:
        yield
    except InputError as error:
        text = str(error)
        for key in ("covariates", "calendar"):
            names = [name for name in getattr(config.data, key) if name in config.graph.depends_on]
            for name in names:
                for said in (f"{key} names the column '{name}'", f"{key} names '{name}'"):
                    if said in text:
                        text = _nearer(text.replace(said, f"depends_on{said.removeprefix(key)}"), name)
            if names and f"{key} in [data] has no meaning" in text:
                text = re.sub(rf"{key} in \[data\] has no meaning", f"depends_on names '{names[0]}', a column", text)
                text = text.replace("; leave it out", f"; use a part of the date, {', '.join(SPECIAL)}")
        raise InputError(text) from None


def _nearer(text: str, name: str) -> str:
    """Suggest a similar part of the date, or another name that is not a column."""
    near = get_close_matches(name, [*PHASES, *SPECIAL], n=1)
    head, known, _ = text.partition("; known are ")
    return f"{head}; did you mean '{near[0]}'?" if near and known and near[0] != name else text
