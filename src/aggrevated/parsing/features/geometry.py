"""Where the box of a symbol lies: on the page, and beside the symbol before it."""

import numpy as np

from aggrevated.core.arrays import Array

GEOMETRY = (
    "log width",  # of the box, in median symbol heights, as all lengths here
    "log height",
    "across",  # from the page's left border to the box's middle, in page widths
    "down",  # from the page's top to the box's middle, in page heights
    "gap",  # from the predecessor's right border to the left border
    "step",  # from the predecessor's middle down to the middle
    "size",  # log of the height over the predecessor's
    "line start",  # 1 where a line begins
)
_FAR = 3.0  # gaps and steps beyond that many median heights say no more


def extract_geometry_features(boxes: Array) -> Array:
    """Features of each symbol's place from the boxes alone, [n, 4] in reading order → float32 [n, 8], see GEOMETRY."""
    n = len(boxes)
    if n == 0:
        return np.zeros((0, len(GEOMETRY)), np.float32)
    unit = compute_unit_length(boxes)
    size = (boxes[:, 2:] - boxes[:, :2]) / unit  # [n, 2]: width, height
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    low = boxes[:, :2].min(axis=0)
    high = boxes[:, 2:].max(axis=0)
    place = (middle - low) / np.maximum(high - low, 1e-9)
    before = np.maximum(np.arange(n) - 1, 0)
    gap = (boxes[:, 0] - boxes[before, 2]) / unit
    step = (middle[:, 1] - middle[before, 1]) / unit
    gap[0] = 0.0
    logs = np.log(np.maximum(size, 0.05))
    columns = [*logs.T, *place.T, np.clip(gap, -_FAR, _FAR), np.clip(step, -_FAR, _FAR), logs[:, 1] - logs[before, 1]]
    return np.stack([*columns, find_line_starts(boxes)], axis=1).astype(np.float32)


def find_line_starts(boxes: Array) -> Array:
    """Where the reading order goes on in a new line, bool [n]: the pen goes back to the left, below its predecessor.

    A symbol starts a line if its middle lies left of its predecessor's by half a median height or more, and its middle
    lower than that of the predecessor by more than half of a median height. Denominators look the same: a page with
    fraction bars needs its structure for that, not this function.
    """
    starts = np.zeros(len(boxes), bool)
    if len(boxes):
        step = np.diff((boxes[:, :2] + boxes[:, 2:]) / 2, axis=0) / compute_unit_length(boxes)
        starts[0] = True
        starts[1:] = (step[:, 0] < -0.5) & (step[:, 1] > 0.5)
    return starts


def compute_unit_length(boxes: Array) -> float:
    """The median height of a symbol; where most are flat, the median of their longer sides."""
    size = boxes[:, 2:] - boxes[:, :2]
    return max(float(np.median(size[:, 1])), 0.5 * float(np.median(size.max(axis=1))), 1e-9)
