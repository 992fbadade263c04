"""The columns of edge tables: what each means, its unit and format, which stage fills it, and where it is shown.

Files, data frames, the terminal, the page, exports and the reference page of the documentation are made from these
lines. A new column takes one line here and the place that computes it.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

FLAGS = ("", "yes", "no")  # whether an edge is identifiable; "" for a fixed edge
DIRECTIONS = ("", "time", "learned", "lagged parents", "open", "rule")
OPEN = DIRECTIONS.index("open")  # either direction within the step fits the data
VARIES = ("", "no", "yes")  # "" for an edge that was not tested
ACTS = ("", "always", "at times", "undecided")
UNKNOWN = "–"  # on the page

Kind = Literal["node", "number", "word", "text", "flag"]


@dataclass(frozen=True)
class Column:
    """A column of the edge table.

    ``meaning``  what it is, in the Markdown of the reference page; ``empty_if`` is when it is empty
    ``kind``     ``word``: places in ``words``; ``text``: any text, "" for none
    ``unit``     of the numbers
    ``stage``    the stage of a fit that fills it
    ``style``    how the page and the terminal format a number; files have six digits
    ``heading``  on the page; "" if the page does not show it. ``plain`` is the heading of a fit without evidence
    ``printed``  heading in the terminal; "" if it is not printed
    ``explained``  what the report says below the table
    ``labels``   of the words on the page, if they differ
    ``acting``   it says how often an edge acts: empty for an edge that is not kept
    ``in_file``  it is a column of ``edges.csv``, of ``edges_`` and of networkx graphs
    ``in_pyg``   it is an attribute of PyG graphs
    ``exported``  the page's exports of the drawn edges have it
    ``remedy``   how to have it computed
    """

    name: str
    meaning: str
    kind: Kind = "number"
    empty_if: str = ""
    unit: str = ""
    stage: str = ""
    style: str = ".3f"
    heading: str = ""
    plain: str = ""
    printed: str = ""
    explained: str = ""
    words: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    acting: bool = False
    in_file: bool = True
    in_pyg: bool = False
    exported: bool = False
    remedy: str = "call estimate_std_errors, or set bootstrap_replicas in AssessmentOptions"

    @property
    def empty(self) -> Any:
        """The value of an edge for which it is not known."""
        return {"number": np.nan, "word": 0, "text": "", "flag": False, "node": -1}[self.kind]

    def is_empty(self, values: np.ndarray) -> np.ndarray:
        """Return the edges for which it is not known."""
        return np.isnan(values) if self.kind == "number" else np.asarray(values == self.empty)

    def cells(self, values: np.ndarray) -> list[str]:
        """Return the values as text for a file: six digits, empty where they are not known."""
        if self.kind == "number":
            empty = np.isnan(values)
            return ["" if no else f"{value:.6g}" for value, no in zip(values.tolist(), empty.tolist(), strict=True)]
        if self.kind == "word":
            return np.array(self.words, dtype=object)[values].tolist()  # type: ignore[no-any-return]
        return values.tolist()  # type: ignore[no-any-return]

    def label(self, value: Any, missing: str = UNKNOWN) -> str:
        """Return a value as the page and the terminal show it.

        >>> column("effect").label(0.25), column("lag").label(2.0), column("varies").label(0)
        ('+0.250', '2', '–')
        """
        if self.kind == "number":
            return missing if value != value else f"{value:{self.style}}"
        return str((self.labels or self.words)[int(value)] if self.kind == "word" else value) or missing


_EVIDENCE = "leave evidence in GraphOptions at 'auto'"
_WITHIN = "set simultaneous=True in GraphOptions"
EFFECT_UNIT = "standard deviations of the target per standard deviation of the source"

COLUMNS: tuple[Column, ...] = (
    Column("source", "the node that the edge starts at", "node", empty_if="never empty", heading="source"),
    Column("target", "the node that depends on the source", "node", empty_if="never empty", heading="target"),
    Column(
        "exists",
        "the probability, given the data, that the edge is needed at all",
        empty_if='there is no evidence stage (`tacit demo`, `evidence = "none"`), or for a self-loop that was not '
        "tested",
        unit="probability",
        stage="evidence",
        heading="exists",
        printed="exists",
        explained="Exists: the probability, given the data, that the edge exists.",
        in_pyg=True,
        exported=True,
        remedy=_EVIDENCE,
    ),
    Column(
        "probability",
        "how often the edge acts, given that it exists",
        empty_if="`exists` is below 0.1: the edge was not kept, and the probability counts as 0; the edge is not the "
        "first of its `group`; or the direction within the step is open: the probability is not identifiable",
        unit="probability",
        stage="fit",
        heading="acts",
        plain="probability",
        printed="acts",
        explained="Acts: the probability that an existing edge is active in one observation; not estimated where "
        "exists is below {keep:g}.",
        acting=True,
        exported=True,
    ),
    Column(
        "std_error",
        "the standard error of `probability`, or of `bagged` if bootstrap replicas were trained",
        empty_if="`probability` is empty, or no standard errors were computed",
        unit="probability",
        stage="standard errors",
        heading="standard error",
        printed="std. error",
        acting=True,
        exported=True,
    ),
    Column(
        "low",
        "the lower end of the 95% interval of `probability`, or of `bagged`",
        empty_if="as `std_error`",
        unit="probability",
        stage="standard errors",
        heading="95% from",
        printed="95% interval",
        acting=True,
        exported=True,
    ),
    Column(
        "high",
        "the upper end of this interval",
        empty_if="as `std_error`",
        unit="probability",
        stage="standard errors",
        heading="95% to",
        acting=True,
        exported=True,
    ),
    Column(
        "effect",
        "size and sign of the effect, in standard deviations of the target per standard deviation of the source",
        empty_if="there is no evidence stage",
        unit=EFFECT_UNIT,
        stage="evidence",
        style="+.3f",
        heading="effect",
        printed="effect",
        explained=f"Effect: {EFFECT_UNIT}.",
        in_pyg=True,
        exported=True,
        remedy=_EVIDENCE,
    ),
    Column(
        "lag",
        "the lag with the largest effect in absolute value, in steps before the target: the newest input has lag "
        "1, or `horizon`; 0 is an effect within the step",
        empty_if="the evidence is not by regressions, the data are pairs without time, `exists` is below 0.1, or there "
        "are too few rows for a regression on each lag",
        unit="steps before the target",
        stage="evidence",
        style=".0f",
        heading="lag",
        printed="lag",
        explained="Lag: how many steps before the target the effect is largest. Bars: the effect of each lag, the "
        "newest on the left; up raises the target, down lowers it.",
        in_pyg=True,
        exported=True,
        remedy=f"{_EVIDENCE}, and fit a series",
    ),
    Column(
        "identifiable",
        "`yes` or `no` ([reading the answer](../concepts/reading.md))",
        "word",
        empty_if="the edge was not learned, or identifiability was not computed",
        stage="identification",
        heading="identifiable",
        words=FLAGS,
        labels=("fixed", "yes", "no"),
    ),
    Column(
        "bagged",
        "the mean probability over the bootstrap replicas",
        empty_if="as `std_error`",
        unit="probability",
        stage="standard errors",
        acting=True,
    ),
    Column(
        "within_step",
        "the probability that the edge acts within the step, at lag 0",
        empty_if="`simultaneous` is off, or for a self-loop",
        unit="probability",
        stage="evidence",
        heading="within step",
        explained="Within step: the probability that the edge acts at lag 0.",
        in_pyg=True,
        remedy=_WITHIN,
    ),
    Column(
        "direction",
        "how the direction is known: `time`, `learned`, `lagged parents`, `rule` or `open` ([effects within a "
        "step](../how-to/within-a-step.md#how-to-read-the-answer))",
        "word",
        empty_if="as `within_step`",
        stage="evidence",
        heading="direction",
        printed="direction",
        explained="Direction: how it is known; a pair whose direction is open is one row, and exists is then the "
        "probability of an edge in either direction.",
        words=DIRECTIONS,
        remedy=_WITHIN,
    ),
    Column(
        "exists_either",
        "the probability of an edge in one direction or the other, or that any edge of the `group` exists; the same "
        "in all rows of the pair or group",
        empty_if="as `within_step`, and the edge is in no `group`",
        unit="probability",
        stage="evidence",
        remedy=_WITHIN,
    ),
    Column(
        "varies",
        "`yes` if the edge depends on the situation, `no` if a test found no evidence of it "
        "([situations](../how-to/situations.md))",
        "word",
        empty_if="`depends_on` is not set, or the edge was not tested: it is not listed, its interval reaches 0 or 1, "
        "or the predictor is not a linear filter",
        stage="situations",
        heading="varies",
        printed="varies",
        explained="Varies: whether the edge depends on the situation; – where it was not tested.",
        words=VARIES,
    ),
    Column(
        "changed",
        "the time at which a listed edge changes: it acts only before or only after it, or its sign changes "
        "([situations](../how-to/situations.md#edges-that-act-in-a-part-of-the-table))",
        "text",
        empty_if="no change was found, the edge is not listed, or the data are pairs without time",
        stage="evidence",
        heading="changed",
        printed="changed",
        explained="Changed: the time from which the edge acts, until which it acts, or at which its sign changes; – "
        "where no change was found.",
    ),
    Column(
        "group",
        "sources that are copies of each other, for example `inlet or inlet_copy`; their edges are one edge of the "
        "list ([copies](../concepts/what-an-edge-means.md#copies))",
        "text",
        empty_if="the edge is in no group",
        stage="evidence",
        exported=True,
    ),
    Column(
        "acting",
        "`always`, `at times` or `undecided` ([definition](../concepts/two-numbers.md#always-at-times-undecided))",
        "word",
        empty_if="as `std_error`",
        stage="standard errors",
        heading="acting",
        explained="Acting: always, at times, or undecided, from the interval and a test.",
        words=ACTS,
        acting=True,
    ),
    Column(
        "gate_nats",
        "log likelihood of an edge that acts at times less that of an edge that always acts with noise that grows "
        "with the source, in nats",
        empty_if="the variance of the target does not grow with the source, or the noise of the target is not added to "
        "its mean (counts, yes or no)",
        unit="nats",
        stage="standard errors",
        style="+.1f",
        heading="gate against noise",
        explained="Gate against noise: the log likelihood of an edge that acts at times less that of noise that grows "
        "with the source.",
        acting=True,
    ),
    Column(
        "together",
        "edges with the same number act in the same rows ([gates](../how-to/situations.md#edges-that-act-together))",
        empty_if="the edge shares its gate with no other edge, or this was not estimated",
        stage="standard errors",
        style=".0f",
        heading="together",
        explained="Together: edges with the same number act together.",
        acting=True,
    ),
    Column("truth", "the true probability of a made system", stage="", heading="truth", in_file=False),
    Column(
        "error",
        "the absolute error of the probability against the truth",
        heading="error",
        in_file=False,
    ),
    Column("undirected", "whether the edge has no arrow: its direction is open", "flag", in_file=False),
    Column("learned", "whether the edge is learned, not fixed by a rule", "flag", in_file=False),
    Column("required", "whether a rule requires the edge", "flag", in_file=False),
)

LAG_COLUMNS: tuple[Column, ...] = (
    COLUMNS[0],
    COLUMNS[1],
    Column(
        "lag",
        "the lag, in steps before the target; there is no row for a lag that was not estimated or is not allowed",
        empty_if="never empty",
        unit="steps before the target",
        stage="evidence",
    ),
    Column(
        "effect",
        "the effect at this lag, in standard deviations of the target per standard deviation of the source",
        empty_if="never empty",
        unit=EFFECT_UNIT,
        stage="evidence",
    ),
    Column(
        "share",
        "the fraction of resamples of the data in which this lag has the largest effect",
        empty_if="there are no resamples",
        stage="evidence",
    ),
)
BY_COLUMNS: tuple[Column, ...] = (
    COLUMNS[0],
    COLUMNS[1],
    Column("by", "the variable in `depends_on`, or `regime`", "text", "never empty", stage="situations"),
    Column(
        "value",
        "the level, the hour, the name of the series, a number in the units of the data, or a date. For `regime` its "
        "number; 1 has the largest weight. Values of one variable are in their natural order",
        "text",
        "never empty",
        stage="situations",
    ),
    Column(
        "probability",
        "how often the edge acts in this situation. With several variables, the others are at their average",
        empty_if="never empty",
        unit="probability",
        stage="situations",
    ),
    Column(
        "std_error",
        "the standard error of this probability",
        empty_if="it was not computed",
        unit="probability",
        stage="situations",
    ),
    Column("low", "the lower end of its 95% interval", empty_if="as `std_error`", stage="situations"),
    Column("high", "the upper end of this interval", empty_if="as `std_error`", stage="situations"),
)


def column(name: str) -> Column:
    """Return a column of the edge table by its name; other names are numbers without a meaning."""
    return next((one for one in COLUMNS if one.name == name), Column(name, ""))


def file_columns() -> list[Column]:
    """Return the columns of ``edges.csv``, in their order."""
    return [one for one in COLUMNS if one.in_file]


def page_columns() -> list[Column]:
    """Return the columns that the page can show, in their order."""
    return [one for one in COLUMNS if one.heading]


def embedded_columns() -> list[Column]:
    """Return the columns that the page's script gets."""
    return [one for one in COLUMNS if one.heading or one.exported or one.name == "undirected"]


def script_columns() -> dict[str, dict[str, Any]]:
    """Return what the page's script knows of the columns, by name."""
    return {
        one.name: {
            "kind": one.kind,
            "digits": int(one.style[-2]),
            "signed": one.style.startswith("+"),
            "words": list(one.words),
            "labels": list(one.labels or one.words),
            "inFile": one.in_file,
            "exported": one.exported,
        }
        for one in embedded_columns()
    }


def names(columns: Iterable[Column]) -> tuple[str, ...]:
    """Return the names of columns."""
    return tuple(one.name for one in columns)


def csv_text(columns: Sequence[Column], found: Mapping[str, Any]) -> str:
    """Return columns as the text of a CSV file; those that are not found are empty."""
    empty = [""] * len(found[columns[0].name])
    cells = [
        one.cells(np.asarray(found[one.name], dtype=float if one.kind == "number" else None))
        if one.name in found
        else empty
        for one in columns
    ]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(names(columns))
    lines.writerows(zip(*cells, strict=True))
    return text.getvalue()


def reference(columns: Iterable[Column]) -> str:
    """Return a table in Markdown of what columns hold, for the documentation."""
    rows = [f"| `{one.name}` | {one.meaning} | {one.empty_if} |" for one in columns]
    return "\n".join(["| column | content | empty if |", "|---|---|---|", *rows]) + "\n"
