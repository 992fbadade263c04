"""Names beside the nodes of a drawing: those that matter most first, and of many nodes only names that do not overlap.

The size of a text is estimated from its number of letters: to measure it takes as long as to draw it.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from tacit.report.places import Places, label_sides
from tacit.report.shared import LABELLED_UP_TO, short

SIZE, LETTER, LINE = 7.0, 0.6, 1.25  # points; width of a letter and height of a line, in sizes
GAP = 4.0  # points between a node and its name
LONGEST_NAME = 24  # letters
CORNERS = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]])
Boxes = Float[np.ndarray, "box 4"]  # left, bottom, right, top in pixels


def draw_labels(axes: Axes, places: Places, names: Sequence[str], weight: Float[np.ndarray, " drawn"]) -> None:
    """Write the names of the drawn nodes, those of the largest ``weight`` first.

    Up to 40 nodes all have their name. Of more only those with a positive weight, where there is space for it.
    """
    axes.autoscale_view()
    axes.apply_aspect()
    unit = axes.figure.dpi / 72
    at = axes.transData.transform(np.stack([places.x, places.y], axis=1))
    texts = [short(names[node], LONGEST_NAME) for node in places.node]
    preferred, all_named = label_sides(places), len(places.node) <= LABELLED_UP_TO
    dots = np.concatenate([at - 2 * unit, at + 2 * unit], axis=1)
    taken = dots[weight > 0] if not all_named else dots
    for place in np.argsort(-weight, kind="stable"):
        if not all_named and weight[place] <= 0:
            break
        sides = np.unique(np.vstack([preferred[place], CORNERS]), axis=0, return_index=True)[1]
        options = np.vstack([preferred[place], CORNERS])[np.sort(sides)]
        boxes = np.stack([_box(at[place], side, len(texts[place]), unit) for side in options])
        crossed = np.array([_overlaps(box, taken) for box in boxes])
        if crossed.min() > 0 and not all_named:
            continue
        best = int(crossed.argmin())
        taken = np.vstack([taken, boxes[best]])
        _write(axes, texts[place], (places.x[place], places.y[place]), options[best])


def _write(axes: Axes, text: str, at: tuple[float, float], side: Int[np.ndarray, " 2"]) -> None:
    axes.annotate(
        text,
        at,
        xytext=(GAP * side[0], GAP * side[1]),
        textcoords="offset points",
        ha="left" if side[0] > 0 else "right",
        va="bottom" if side[1] > 0 else "top",
        fontsize=SIZE,
        parse_math=False,  # a name is a name, whatever it is made of
        zorder=4,
        path_effects=[withStroke(linewidth=1.8, foreground="white")],  # edges behind it stay apart from it
    )


def _box(
    at: Float[np.ndarray, " 2"], side: Int[np.ndarray, " 2"], letters: int, unit: float
) -> Float[np.ndarray, " 4"]:
    near = at + GAP * unit * side
    far = near + unit * SIZE * side * np.array([LETTER * letters, LINE])
    return np.concatenate([np.minimum(near, far), np.maximum(near, far)])


def _overlaps(box: Float[np.ndarray, " 4"], others: Boxes) -> float:
    """Return the area that a box shares with others, in square pixels."""
    width = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    height = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
    return float((width.clip(min=0) * height.clip(min=0)).sum())
