"""Position features of a symbol's box: on the page, and relative to the previous symbol."""

import numpy as np

from aggrevated.core.arrays import Array

GEOMETRY = (
    "log width",  # of the box; lengths without a unit are in median symbol heights
    "log height",
    "across",  # from the page's left border to the box's center, in page widths
    "down",  # from the page's top to the box's center, in page heights
    "gap",  # from the predecessor's right border to the left border
    "step",  # from the predecessor's center down to the center
    "size",  # log of the ratio of the height to the predecessor's height
    "line start",  # 1 where a line begins
)
_FAR = 3.0  # gaps and steps are clipped at this many median heights


def extract_geometry_features(boxes: Array) -> Array:
    """Compute the features `GEOMETRY` of each symbol of a page.

    Args:
        boxes: left, top, right and bottom of the symbols in reading order, [n, 4].

    Returns:
        Features, float32 [n, 8].
    """
    n = len(boxes)
    if n == 0:
        return np.zeros((0, len(GEOMETRY)), np.float32)
    unit = compute_unit_length(boxes)
    size = (boxes[:, 2:] - boxes[:, :2]) / unit  # [n, 2]: width, height
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    low = boxes[:, :2].min(axis=0)
    high = boxes[:, 2:].max(axis=0)
    position = (middle - low) / np.maximum(high - low, 1e-9)
    previous = np.maximum(np.arange(n) - 1, 0)
    gap = (boxes[:, 0] - boxes[previous, 2]) / unit
    step = (middle[:, 1] - middle[previous, 1]) / unit
    gap[0] = 0.0
    logs = np.log(np.maximum(size, 0.05))
    columns = [
        *logs.T,
        *position.T,
        np.clip(gap, -_FAR, _FAR),
        np.clip(step, -_FAR, _FAR),
        logs[:, 1] - logs[previous, 1],
    ]
    return np.stack([*columns, find_line_starts(boxes)], axis=1).astype(np.float32)


def find_line_starts(boxes: Array) -> Array:
    """Return which symbols start a line, bool [n].

    A symbol starts a line if its center is more than half a median height to the left of its predecessor's
    center and more than half a median height below it. Denominators also match this rule, so it does not
    fit pages with fraction bars.
    """
    starts = np.zeros(len(boxes), bool)
    if len(boxes):
        step = np.diff((boxes[:, :2] + boxes[:, 2:]) / 2, axis=0) / compute_unit_length(boxes)
        starts[0] = True
        starts[1:] = (step[:, 0] < -0.5) & (step[:, 1] > 0.5)
    return starts


def compute_unit_length(boxes: Array) -> float:
    """Return the median height of the symbols, but at least half the median of their longer sides."""
    size = boxes[:, 2:] - boxes[:, :2]
    return max(float(np.median(size[:, 1])), 0.5 * float(np.median(size.max(axis=1))), 1e-9)
