"""Write the tables of columns in docs/reference/files.md from the schema of the edge table.

python tools/edge_columns.py
"""

import re
from pathlib import Path

from tacit.edges import schema

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "files.md"
TABLES = {
    "edges.csv": schema.file_columns,
    "lags.csv": lambda: schema.LAG_COLUMNS,
    "edges_by.csv": lambda: schema.BY_COLUMNS,
}


def page() -> str:
    """Return the page with the tables of the schema."""
    text = PAGE.read_text(encoding="utf-8")
    for name, columns in TABLES.items():
        start = text.index(f"## Columns of `{name}`")
        table = re.compile(r"(?:^\|.*\n)+", re.MULTILINE).search(text, start)
        assert table is not None
        text = text[: table.start()] + schema.reference(columns()) + text[table.end() :]
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
