"""Dates written as text: ISO dates, and dates such as 03/04/2021 with the same order in the whole column."""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import InputError

NUMERIC_DATE = r"^\s*(\d{1,2})[/.\-](\d{1,2})[/.\-](\d{4}|\d{2})(?!\d)(.*)$"  # day and month in either order, then year
ISO = "write YYYY-MM-DD"


@dataclass(frozen=True)
class Dates:
    """Parsed dates (NaT if a cell is not a date), and whether the day is first; None if that has no meaning."""

    parsed: Any  # pandas.Series of datetimes in UTC
    dayfirst: bool | None = None
    notes: tuple[str, ...] = ()


def parse_dates(text: Any, dayfirst: bool | None, column: str) -> Dates:
    """Return the dates of a column of text.

    With ``dayfirst`` None, dates such as 03/04/2021 are read only if the column is unambiguous.

    >>> import pandas as pd
    >>> found = parse_dates(pd.Series(["11/04/2021", "12/04/2021", "13/04/2021"]), None, "day")
    >>> found.dayfirst, found.parsed.dt.strftime("%Y-%m-%d").tolist()
    (True, ['2021-04-11', '2021-04-12', '2021-04-13'])
    >>> found.notes
    ("dates of column 'day' were read with the day first, as in '13/04/2021'",)
    """
    import pandas as pd
    from pandas.tseries.api import guess_datetime_format

    first = str(text.iloc[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a format that pandas has to guess cell by cell
        one_format = guess_datetime_format(first) is not None
        if one_format and not re.match(NUMERIC_DATE, first):
            return Dates(pd.to_datetime(text, utc=True, errors="coerce"))
        parts = text.str.extract(NUMERIC_DATE)
        numeric = parts[0].notna()
        if not numeric.any():
            return Dates(pd.to_datetime(text, utc=True, errors="coerce"))
        others = np.flatnonzero(~numeric)
        if len(others):
            row, like = int(others[0]), int(np.flatnonzero(numeric)[0])
            raise InputError(
                f"column '{column}' must have dates of one form, got '{text.iloc[like]}' in row {like + 1} and "
                f"'{text.iloc[row]}' in row {row + 1}; {ISO}"
            )
        dayfirst, notes = _reading(text, parts, dayfirst, column)
        day, month = (parts[0], parts[1]) if dayfirst else (parts[1], parts[0])
        iso = parts[2] + "-" + month.str.zfill(2) + "-" + day.str.zfill(2) + parts[3]
        return Dates(pd.to_datetime(iso, utc=True, errors="coerce"), dayfirst, notes)


def _reading(text: Any, parts: Any, dayfirst: bool | None, column: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether the day comes first, with a note if this was found from the column."""
    short = np.flatnonzero(parts[2].str.len() == 2)
    if len(short):
        raise InputError(
            f"column '{column}' must have years of four digits, got '{text.iloc[short[0]]}' in row {short[0] + 1}; "
            f"{ISO}"
        )
    leading, second = (parts[part].astype(int).to_numpy() for part in (0, 1))
    wrong = {True: np.flatnonzero(second > 12), False: np.flatnonzero(leading > 12)}
    words = {True: "day", False: "month"}
    if dayfirst is None and (leading == second).all():
        return False, ()
    if dayfirst is None and not any(len(rows) for rows in wrong.values()):
        raise InputError(
            f"column '{column}' must have unambiguous dates, got '{text.iloc[int((leading != second).argmax())]}', in "
            "which day and month cannot be distinguished; use --dayfirst, or --set data.dayfirst=false for month first"
        )
    reading = bool(len(wrong[False])) if dayfirst is None else dayfirst
    if len(wrong[reading]):
        row = int(wrong[reading][0])
        other = "--set data.dayfirst=false" if reading else "use --dayfirst"
        raise InputError(
            f"column '{column}' must have dates with the {words[reading]} first, got '{text.iloc[row]}' in row "
            f"{row + 1}; " + (other if not len(wrong[not reading]) else f"correct it, or {ISO}")
        )
    if dayfirst is not None:
        return reading, ()
    shown = text.iloc[int(wrong[not reading][0])]
    return reading, (f"dates of column '{column}' were read with the {words[reading]} first, as in '{shown}'",)


def looks_like_dates(text: Any) -> bool:
    """Return whether every cell of a column of text is a date.

    >>> import pandas as pd
    >>> looks_like_dates(pd.Series(["2020-01-05", "2020-01-06"])), looks_like_dates(pd.Series(["north", "May"]))
    (True, False)
    """
    import pandas as pd
    from pandas.tseries.api import guess_datetime_format

    if bool(text.str.match(NUMERIC_DATE).all()):
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        guess = guess_datetime_format(str(text.iloc[0]))
        return guess is not None and bool(pd.to_datetime(text, errors="coerce", format=guess, utc=True).notna().all())
