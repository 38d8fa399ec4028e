"""What the parser is told of a symbol: its histogram of oriented gradients, and optionally where its box lies.

HoG (Dalal & Triggs 2005) of a 40 × 40 crop: 9 orientations in 0 … 180°, cells of 8 × 8 pixels, blocks of 2 × 2 cells at
every cell, L2-Hys: 4 × 4 blocks × 36 = 576 numbers, equal to scikit-image's `hog` with those settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aggrevated.arrays import Array
from aggrevated.parsing.features.crops import crops
from aggrevated.parsing.pages.page import Page

ORIENTATIONS = 9
CELL = 8  # pixels
BLOCK = 2  # cells
CLIP = 0.2  # of L2-Hys
_EPSILON = 1e-5  # scikit-image's


def raw(pages: Sequence[Page]) -> Array:
    """All that can be known of the symbols of all pages, one after the other: HoG, then geometry, float32 [Σn, 584]."""
    pixels = hog(crops([strokes for page in pages for strokes in page.ink]))
    return np.concatenate([pixels, np.concatenate([geometry(page.boxes) for page in pages])], axis=1)


def table(lengths: Array, features: Array) -> Array:
    """Features [Σn, D] of pages of these lengths [P] as a table [P, N, D], zeros beyond a page."""
    laid_out = np.zeros((len(lengths), int(lengths.max()), features.shape[1]), np.float32)
    laid_out[np.arange(laid_out.shape[1]) < lengths[:, None]] = features
    return laid_out


def hog(images: Array) -> Array:
    """The histogram of oriented gradients of each crop, [n, height, width] → float32 [n, 576] (for 40 × 40)."""
    assert images.ndim == 3, images.shape
    blocks = np.lib.stride_tricks.sliding_window_view(_cells(images), (BLOCK, BLOCK), axis=(1, 2))
    blocks = np.moveaxis(blocks, 3, 5)  # [n, rows, columns, orientation, 2, 2] → orientation last
    blocks = _unit(np.minimum(_unit(blocks), CLIP))
    return blocks.reshape(len(images), math.prod(blocks.shape[1:])).astype(np.float32)


def _unit(blocks: Array) -> Array:
    """Each block divided by its length, √(‖v‖² + ε²)."""
    squared = np.einsum("nrcijo,nrcijo->nrc", blocks, blocks)
    unit: Array = blocks / np.sqrt(squared + _EPSILON**2)[..., None, None, None]
    return unit


def _cells(images: Array) -> Array:
    """The mean gradient magnitude by orientation in each cell, [n, height / 8, width / 8, 9]. Borders have none."""
    n, height, width = images.shape
    rows, columns = height // CELL, width // CELL
    image = images.astype(np.float64)
    down, across = np.zeros_like(image), np.zeros_like(image)
    down[:, 1:-1] = image[:, 2:] - image[:, :-2]
    across[:, :, 1:-1] = image[:, :, 2:] - image[:, :, :-2]
    down, across = down[:, : rows * CELL, : columns * CELL], across[:, : rows * CELL, : columns * CELL]
    which, y, x = np.nonzero((down != 0) | (across != 0))  # most of a crop is paper
    dy, dx = down[which, y, x], across[which, y, x]
    angle = np.rad2deg(np.arctan2(dy, dx)) % 180.0
    edges = np.arange(1, ORIENTATIONS) * (180.0 / ORIENTATIONS)
    bins = np.searchsorted(edges, angle, side="right")
    cell = ((which * rows + y // CELL) * columns + x // CELL) * ORIENTATIONS + bins
    sums = np.bincount(cell, np.hypot(dy, dx), minlength=n * rows * columns * ORIENTATIONS)
    return sums.reshape(n, rows, columns, ORIENTATIONS) / CELL**2


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
RAW = 576 + len(GEOMETRY)  # numbers for each symbol
_FAR = 3.0  # gaps and steps beyond that many median heights say no more


def geometry(boxes: Array) -> Array:
    """Features of each symbol's place from the boxes alone, [n, 4] in reading order → float32 [n, 8], see GEOMETRY."""
    n = len(boxes)
    if n == 0:
        return np.zeros((0, len(GEOMETRY)), np.float32)
    unit = _unit_of_length(boxes)
    size = (boxes[:, 2:] - boxes[:, :2]) / unit  # [n, 2]: width, height
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    place = (middle - low) / np.maximum(high - low, 1e-9)
    before = np.maximum(np.arange(n) - 1, 0)
    gap = (boxes[:, 0] - boxes[before, 2]) / unit
    step = (middle[:, 1] - middle[before, 1]) / unit
    gap[0] = 0.0
    logs = np.log(np.maximum(size, 0.05))
    columns = [*logs.T, *place.T, np.clip(gap, -_FAR, _FAR), np.clip(step, -_FAR, _FAR), logs[:, 1] - logs[before, 1]]
    return np.stack([*columns, line_starts(boxes)], axis=1).astype(np.float32)


def line_starts(boxes: Array) -> Array:
    """Where the reading order goes on in a new line, bool [n]: the pen goes back to the left, below its predecessor.

    A symbol starts a line if its middle lies left of its predecessor's by half a median height or more, and its middle
    lower than that of the predecessor by more than half of a median height. Denominators look the same: a page with
    fraction bars needs its structure for that, not this function.
    """
    starts = np.zeros(len(boxes), bool)
    if len(boxes):
        step = np.diff((boxes[:, :2] + boxes[:, 2:]) / 2, axis=0) / _unit_of_length(boxes)
        starts[0], starts[1:] = True, (step[:, 0] < -0.5) & (step[:, 1] > 0.5)
    return starts


def _unit_of_length(boxes: Array) -> float:
    """The median height of a symbol; where most are flat, the median of their longer sides."""
    size = boxes[:, 2:] - boxes[:, :2]
    return max(float(np.median(size[:, 1])), 0.5 * float(np.median(size.max(axis=1))), 1e-9)
