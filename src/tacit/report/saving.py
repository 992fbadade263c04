"""A figure in the formats that papers take: PNG, PDF and SVG, the same bytes for the same figure."""

import warnings
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

# No date in any file, and names inside an SVG that do not change from one drawing to the next.
METADATA: dict[str, dict[str, Any]] = {
    "png": {},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}
STEADY: Any = {"svg.hashsalt": "tacit"}
DOTS_PER_INCH = 150


def figure_files(
    figure: Figure, name: str, suffixes: Sequence[str] = tuple(METADATA), *, dots_per_inch: int = DOTS_PER_INCH
) -> dict[str, bytes]:
    """Return the file of each format by its name."""
    files = {}
    with mpl.rc_context(STEADY), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # a name in letters that the font lacks
        engine = figure.get_layout_engine()
        if engine is not None:  # the layout of labels and titles is computed once for all formats
            engine.execute(figure)
            figure.set_layout_engine(None)
        for suffix in suffixes:
            drawn = BytesIO()
            figure.savefig(drawn, format=suffix, dpi=dots_per_inch, metadata=METADATA[suffix])
            files[f"{name}.{suffix}"] = drawn.getvalue()
    return files
