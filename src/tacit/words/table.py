"""What may mislead a fit of a table, in sentences: what was found, what a fit does about it, what changes that."""

import shlex
from collections.abc import Sequence

from tacit.data import Finding, Series

SHOWN, NAMED = 3, 5  # findings of a kind that are written out, and names in a list
CLEAR = "clear the cells if they are wrong (empty cells are missing values)"


def sentences(found: Sequence[Finding], series: Series) -> list[str]:
    """Return a sentence for each finding; of many of one kind, the first ones and the names of the others."""
    lines = []
    for kind in dict.fromkeys(one.kind for one in found):
        alike = [one for one in found if one.kind == kind]
        lines += [sentence(one, series) for one in alike[:SHOWN]]
        if others := list(dict.fromkeys(node for one in alike[SHOWN:] for node in one.nodes)):
            named = ", ".join(f"'{node}'" for node in others[:NAMED])
            more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
            lines.append(f"the same kind of finding for {named}{more}; tacit check --json lists all")
    return lines


def sentence(finding: Finding, series: Series) -> str:
    """Return what was found, what a fit does about it, and the option that changes that."""
    names, numbers = " and ".join(f"'{node}'" for node in finding.nodes), finding.numbers
    at = [time_words(series, row) for row in finding.rows]
    drop = f"--drop {shlex.quote(','.join(finding.nodes[1:] or finding.nodes))}"
    match finding.kind:
        case "unit" | "jump":
            before, after = numbers["before"], numbers["after"]
            rises = "rises" if after > before else "falls"
            change = f"{rises} from {before:.4g} to {after:.4g} at {at[0]}"
            if finding.kind == "unit":
                change += f", as if its unit changed (a factor of about {numbers['unit']:g})"
            side = "" if series.series_names else f", or fit one side with --where {_side(series, finding.rows[0])}"
            remedy = f"if the unit changed, correct the values{side}"
            allowed = "with 50 rows on both sides the fit allows for a new level"
            return f"{names} {change}, and stays there: {allowed}; {remedy}"
        case "spikes":
            farthest, values, them = f"{numbers['value']:.6g} at {at[0]}", "a value", "it"
            if len(at) > 1:
                farthest, values, them = f"the farthest is {farthest}", f"{len(at)} values", "them"
            return (
                f"{names} has {values} far from the rows before and after ({farthest}): the fit uses {them}; {CLEAR}, "
                f"or give {them} less weight with --set observation.kind=student_t"
            )
        case "copy" | "near_copy":
            alike = "are copies of each other, up to unit and offset"
            if finding.kind == "near_copy":
                alike = (
                    f"are nearly the same (correlation {_close(numbers['correlation'])} of the values, "
                    f"{_close(numbers['correlation_of_changes'])} of the changes)"
                )
            return (
                f"{names} {alike}: the data cannot tell which of them acts on another node, so the fit lists one edge "
                f"from either; leave one out with {drop}"
            )
        case "stuck":
            rows, value = finding.rows[1] - finding.rows[0] + 1, numbers["value"]
            begin = at[0].split(" of series ")[0]
            same = "is exactly 0" if value == 0 else f"has the same value, {value:.6g},"
            return f"{names} {same} in {rows} rows from {begin} to {at[1]}: the fit uses these rows; {CLEAR}"
        case "still":
            if numbers["fraction"] < 0.5:
                return (
                    f"{names} varies by less than a millionth of its size: the fit uses it, and rounding may hide its "
                    f"changes; subtract a constant from the column, or leave it out with {drop}"
                )
            return (
                f"{names} is {numbers['value']:.6g} in {_percent(numbers['fraction'])} of the rows: the fit uses it, "
                f"but few rows can show its edges; leave it out with {drop}"
            )
        case "zeros":
            return (
                f"{names} is exactly 0 in {_percent(numbers['fraction'])} of the rows: the fit uses 0 like any other "
                f"number; if it only drives other nodes, use --set data.covariates={shlex.quote(finding.nodes[0])}"
            )
        case "rounded":
            return (
                f"{names} has only {numbers['values']:.0f} values, at steps of {numbers['step']:.3g}: the fit treats "
                f"them as real numbers; pass finer values if there are some, or leave it out with {drop}"
            )


def time_words(series: Series, row: int) -> str:
    """Return the time of a row, or its number from 1 in a table without times; with the name of its series."""
    numbered = series.times is None or series.settled.get("time") is False
    time = series.row_times[row]
    text = f"row {int(time) + 1}" if numbered else str(time).removesuffix("T00:00:00")
    which = int(series.series_of_row[row])
    return f"{text} of series '{series.series_names[which]}'" if series.series_names else text


def _side(series: Series, row: int) -> str:
    """Return a condition for the rows before this one, as it is written on the command line."""
    time = series.row_times[row]
    text = str(time).removesuffix("T00:00:00")
    return shlex.quote(f'time < "{text}"' if time.dtype.kind == "M" else f"time < {text}")


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}%" if fraction > 0.95 else f"{100 * fraction:.0f}%"


def _close(correlation: float) -> str:
    """Return a correlation near 1 with digits that differ from 1."""
    return f"{correlation:.3f}" if correlation < 0.9995 else f"1 - {1 - correlation:.0e}"
