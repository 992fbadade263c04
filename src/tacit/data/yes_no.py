"""Conversion of columns with yes and no, or true and false, to 1 and 0."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.data.cells import Table

WORDS = ({"yes": 1.0, "no": 0.0}, {"true": 1.0, "false": 0.0})


def with_yes_no(table: "Table", columns: Sequence[str]) -> "Table":
    """Return the table with 1 and 0 in the columns that contain only two such words and empty cells.

    The notes of the table list the changed columns.

    >>> import pandas as pd
    >>> from tacit.data.cells import Table
    >>> frame = pd.DataFrame([["yes", "1.5"], ["No", "2"], [None, "3"]], dtype="str")
    >>> table = with_yes_no(Table("alarms.csv", ("alarm", "level"), frame), ["alarm", "level"])
    >>> table.numbers("alarm").tolist(), table.notes
    ([1.0, 0.0, nan], ("yes and no were read as 1 and 0: 'alarm'",))
    """
    import pandas as pd

    frame, notes = table.frame, []
    for words in WORDS:
        changed = []
        for column in columns:
            cells = table.cells(column)
            first = cells.dropna().iloc[:1].astype("str").str.strip().str.lower()
            if not first.isin(words).all() or not len(first):  # most columns are numbers, and end here
                continue
            said = cells.astype("str").where(cells.notna()).str.strip().str.lower()
            if (said.isin(words) | cells.isna()).all():
                place = table.columns.index(column)
                frame = frame.copy(deep=False) if frame is table.frame else frame
                frame[place] = pd.to_numeric(said.map(words).astype("float64"))
                changed.append(f"'{column}'")
        if changed:
            notes.append(f"{' and '.join(words)} were read as 1 and 0: {', '.join(changed)}")
    return replace(table, frame=frame, notes=(*table.notes, *notes)) if notes else table
