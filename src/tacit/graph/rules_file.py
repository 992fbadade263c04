"""Rules for edges from a CSV file, one rule in each row.

    source,target,kind,probability,min_lag,max_lag
    a,b,forbidden,,,
    c,a,required,,1,2
    b,a,prior,0.9,,
    c,b,allowed,,2,4

``kind`` is forbidden, required, candidate, prior or allowed; only a prior has a probability. If any row is a candidate,
all other edges between two nodes are impossible. The lags at which an edge may act are optional; ``allowed`` only sets
the lags of an edge. Lag 0 is an effect within the step. Rows are counted as in an editor: the header is row 1.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tacit.errors import InputError, did_you_mean, require
from tacit.graph.edge_rules import ANY_LAG, Edge, EdgeRules, LagRange, NamedNodes

COLUMNS = ("source", "target", "kind", "probability", "min_lag", "max_lag")
KINDS = ("forbidden", "required", "candidate", "prior", "allowed")
# Kinds that can be combined for one edge: candidate with prior or required, and lags with any of them.
TOGETHER = (
    {"candidate", "required"},
    {"candidate", "prior"},
    *({"allowed", kind} for kind in ("candidate", "required", "prior")),
)


class _Row(NamedTuple):
    where: str  # file and row, the beginning of an error message
    edge: tuple[int, int]
    kind: str
    probability: float | None
    lags: LagRange


def read_edge_rules(
    path: str | Path,
    nodes: Sequence[str],
    *,
    symmetric: bool = False,
    self_loops: bool = False,
    simultaneous: bool = False,
) -> EdgeRules:
    """Read the rules of a file; errors name the file and the row."""
    path, named = Path(path), NamedNodes(tuple(nodes), symmetric)
    edges: dict[str, list[Edge]] = {kind: [] for kind in KINDS}
    priors: dict[Edge, float] = {}
    lags: dict[Edge, LagRange] = {}
    seen: dict[tuple[int, int], list[_Row]] = {}
    for where, cells in _cells(path):
        row = _row(where, cells, named)
        source, target = row.edge
        require(
            source != target or self_loops or row.kind == "forbidden",
            f"{row.where}: {row.kind} edge {named.edge(source, target)} is a self-loop, and self-loops are disabled; "
            "delete the row, or set self_loops=True",
        )
        same = seen.setdefault((min(row.edge), max(row.edge)) if symmetric else row.edge, [])
        for before in same:
            _require_agreement(before, row, named)
        same.append(row)
        edges[row.kind].append(row.edge)
        if row.probability is not None:
            priors[row.edge] = row.probability
        if not row.lags.is_open:
            lags[row.edge] = row.lags
    candidates = frozenset(edges["candidate"]) or None
    for name in ("required", "prior", "allowed"):
        for row in (row for rows in seen.values() for row in rows if row.kind == name):
            source, target = row.edge
            known = candidates is None or row.edge in candidates or (symmetric and (target, source) in candidates)
            require(
                known or source == target,
                f"{row.where}: {row.kind} edge {named.edge(source, target)} is not among the candidates; add a row "
                "that makes it one",
            )
    forbidden, required = frozenset(edges["forbidden"]), frozenset(edges["required"])
    return EdgeRules(
        named.names,
        forbidden,
        required,
        symmetric,
        self_loops,
        candidates,
        priors,
        lags=lags,
        simultaneous=simultaneous,
    )


def _cells(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield file and row, and the cells by column, of each row."""
    try:
        require(
            path.is_file() or not path.exists(), f"{path} is a directory or a device; pass a CSV file of edge rules"
        )
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = [cell.strip() for cell in next(reader, [])]
            for column in header:
                if column not in COLUMNS:
                    raise InputError(f"{path} has unknown column '{column}'{did_you_mean(column, COLUMNS)}")
                require(header.count(column) == 1, f"{path} has column '{column}' twice; delete one")
            for column in COLUMNS[:3]:
                require(
                    column in header,
                    f"{path} must have the columns source, target and kind, got {', '.join(header) or 'none'}; add "
                    f"{column}",
                )
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    where = f"{path}, row {reader.line_num}"
                    require(
                        len(cells) <= len(header) and len(cells) >= 3,
                        f"{where} must have {len(header)} cells like the header, got {len(cells)}; correct it",
                    )
                    yield where, dict(zip(header, (cell.strip() for cell in cells), strict=False))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); pass a CSV file of edge rules") from None
    except InputError:
        raise
    except (ValueError, csv.Error) as error:  # not UTF-8, or an invalid file name
        raise InputError(f"{path} is not a CSV file in UTF-8 ({error}); save it as one") from None


def _row(where: str, row: dict[str, str], named: NamedNodes) -> _Row:
    for name in ("min_lag", "max_lag"):
        lag = row.get(name, "")
        require(
            not lag or lag.isdecimal(),
            f"{where}: {name} must be a non-negative integer, got '{lag}'; write for example 2",
        )
    low, high = (int(row[name]) if row.get(name) else None for name in ("min_lag", "max_lag"))
    kind, text, lags = row.get("kind", ""), row.get("probability", ""), LagRange(low, high, where).filled(ANY_LAG)
    if kind not in KINDS:
        raise InputError(f"{where} has unknown kind '{kind}'{did_you_mean(kind, KINDS)}")
    edge = named.number(f"{where}: source", row["source"]), named.number(f"{where}: target", row["target"])
    require(kind != "forbidden" or lags.is_open, f"{where}: forbidden takes no lags; leave min_lag and max_lag empty")
    require(kind != "allowed" or not lags.is_open, f"{where}: allowed must have lags; write min_lag or max_lag")
    require(edge[0] != edge[1] or lags.is_open, f"{where}: a self-loop takes no lags; leave min_lag and max_lag empty")
    if kind != "prior":
        require(not text, f"{where}: {kind} takes no probability, got '{text}'; leave it empty, or use kind prior")
        return _Row(where, edge, kind, None, lags)
    require(bool(text), f"{where}: prior must be a probability; write one in the column probability")
    try:
        probability = float(text)
    except ValueError:
        raise InputError(f"{where}: probability must be a number, got '{text}'; write for example 0.9") from None
    require(
        0 < probability < 1,
        f"{where}: probability must be strictly between 0 and 1, got {text}; use kind forbidden or required for "
        "what is certain",
    )
    return _Row(where, edge, kind, probability, lags)


def _require_agreement(before: _Row, row: _Row, named: NamedNodes) -> None:
    """Raise :class:`InputError` if two rows about one edge contradict each other."""
    name = f"{row.where}: edge {named.edge(*row.edge)}"
    earlier = before.where.rsplit(", ", 1)[1]
    require(
        before.lags.is_open or row.lags.is_open or row.lags[:2] == before.lags[:2],
        f"{name} has different lags here and in {earlier}; delete one",
    )
    if row.kind == before.kind:
        require(
            row.probability == before.probability,
            f"{name} has prior {row.probability} here and {before.probability} in {earlier}; delete one",
        )
        return
    require(
        {row.kind, before.kind} in TOGETHER,
        f"{name} is {row.kind} here and {before.kind} in {earlier}; delete one",
    )
