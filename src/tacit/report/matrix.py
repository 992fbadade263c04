"""A number of every edge as an image: targets down, sources across, names of the nodes where they fit."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tacit.report.shared import LABELS, PROBABILITY_COLOURS, short

MOST_TICKS = 40  # names along a side; of more nodes every second, third, ... is named
LONGEST_NAME = 18  # letters
NOT_KNOWN = "#e4e6e9"  # of cells without a number


def draw_matrix(
    axes: Axes,
    matrix: Float[np.ndarray, "target source"],
    *,
    title: str = "",
    colours: str = PROBABILITY_COLOURS,
    limits: tuple[float, float] = (0.0, 1.0),
    names: Sequence[str] | None = None,
    label: str = "",
) -> None:
    """Draw a matrix with its colour bar; without ``names`` the sides have the numbers of the nodes."""
    low, top = limits
    axes.set_facecolor(NOT_KNOWN)
    image = axes.imshow(matrix, cmap=colours, vmin=low, vmax=top, interpolation="nearest")
    axes.set(xlabel=LABELS["matrix"]["x"], ylabel=LABELS["matrix"]["y"])
    axes.set_title(title, parse_math=False)
    if names is None:
        for side in (axes.xaxis, axes.yaxis):
            side.set_major_locator(MaxNLocator(integer=True, nbins=6))
    else:
        _name_sides(axes, names)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label(label, parse_math=False)


def _name_sides(axes: Axes, names: Sequence[str]) -> None:
    """Write the names of the nodes along both sides, as large as they fit."""
    shown = np.arange(0, len(names), -(-len(names) // MOST_TICKS) if names else 1)
    texts = [short(names[int(place)], LONGEST_NAME) for place in shown]
    size = float(np.clip(180 / max(1, len(texts)), 4.5, 9))
    upright = len(texts) > 5 or max(map(len, texts), default=0) > 8
    axes.set_xticks(shown, texts, rotation=90 if upright else 0, fontsize=size, parse_math=False)
    axes.set_yticks(shown, texts, fontsize=size, parse_math=False)
