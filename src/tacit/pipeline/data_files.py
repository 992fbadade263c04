"""The files that DATA names (one, several, or those of a folder), and their names."""

from collections.abc import Sequence
from pathlib import Path

from tacit.data import TABLE_ENDINGS, is_parquet_folder
from tacit.errors import require


def data_files(sources: Sequence[str]) -> list[str]:
    """Return the files of the sources; a folder is replaced by the tables in it, sorted by name.

    A folder of Parquet files that form one table counts as one file; see :func:`tacit.data.is_parquet_folder`.
    """
    files: list[str] = []
    for source in sources:
        require(bool(source), "DATA must be a file (.csv, .parquet, .npz) or a folder, got ''; check the path")
        path = Path(source)
        if not path.is_dir() or is_parquet_folder(path):
            files.append(source)
            continue
        tables = sorted(str(one) for one in path.iterdir() if one.is_file() and one.name.endswith(TABLE_ENDINGS))
        found = [table for table in tables if not table.endswith(".txt")] or tables  # a readme.txt is not a table
        require(
            bool(found),
            f"{source}: the folder must have tables ({', '.join(TABLE_ENDINGS)}), got none; pass another folder",
        )
        files += found
    for position, file in enumerate(files):
        require(file not in files[:position], f"DATA must name every file once, got {file} twice; leave one out")
    return files


def series_labels(files: Sequence[str]) -> list[str]:
    """Return a name for the series of each file: the file name, with more of the path if two names are equal.

    >>> series_labels(["north/2020.csv", "north/2021.csv.gz"]), series_labels(["north/a.csv", "south/a.csv"])
    (['2020', '2021'], ['north/a', 'south/a'])
    >>> series_labels(["a.csv", "a.parquet"])
    ['a.csv', 'a.parquet']
    """
    paths = [Path(file).with_name(Path(file).name.split(".")[0]) for file in files]
    for labels in ([path.name for path in paths], [str(path) for path in paths]):
        if len(set(labels)) == len(labels):
            return labels
    return list(files)


def few_names(sources: Sequence[str]) -> str:
    """Return the name of several files in a title.

    >>> few_names(["a.csv"]), few_names(["data/a.csv", "data/b.csv"]), few_names(["a.csv", "b.csv", "c.csv"])
    ('a.csv', 'a.csv and b.csv', 'a.csv and 2 more files')
    """
    if len(sources) == 1:
        return sources[0]
    names = [Path(source).name for source in sources]
    return " and ".join(names) if len(names) == 2 else f"{names[0]} and {len(names) - 1} more files"
