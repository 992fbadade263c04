"""A figure in the formats that papers take: PNG, PDF and SVG, the same bytes for the same figure."""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from tacit.whole_files import write_whole

# No date in any file, and names inside an SVG that do not change from one drawing to the next.
METADATA: dict[str, dict[str, Any]] = {
    "png": {},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}
STEADY: Any = {"svg.hashsalt": "tacit"}
DOTS_PER_INCH = 150


def save_figure(figure: Figure, directory: Path, name: str) -> list[Path]:
    """Write ``name`` in every format under a directory and return the paths."""
    with mpl.rc_context(STEADY):
        figure.draw_without_rendering()  # room for labels and titles is found once, for all formats
        figure.set_layout_engine(None)
        paths = []
        for suffix, metadata in METADATA.items():
            drawn = BytesIO()
            figure.savefig(drawn, format=suffix, dpi=DOTS_PER_INCH, metadata=metadata)
            paths.append(directory / f"{name}.{suffix}")
            write_whole(paths[-1], drawn.getvalue())
    return paths
