"""The records of the studies: a file for each study, in it a record for each setting."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results" / "situations"
Figures = dict[str, Any]


def read(path: Path) -> Figures:
    """Return the records of a file, none if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write(path: Path, key: str, found: Figures) -> None:
    """Put one record in a file, a line for each row of its lists."""
    records = read(path) | {key: rounded(found)}
    parts = []
    for name in sorted(records):
        fields = []
        for field, value in records[name].items():
            rows = isinstance(value, list) and value and isinstance(value[0], dict)
            text = "[\n" + ",\n".join(f"   {json.dumps(row)}" for row in value) + "\n  ]" if rows else json.dumps(value)
            fields.append(f"  {json.dumps(field)}: {text}")
        parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n }")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def rounded(value: Any) -> Any:
    """Return the same with five digits after the point."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 5) if isinstance(value, float) else value
