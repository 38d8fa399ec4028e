"""Two-dimensional layout features of a symbol: positions of its neighbors, and counts of overlapping symbols.

The position relative to its base identifies an exponent, the symbols above and below identify a fraction
bar, and the surrounding box identifies what is under a root. The smaller `geometry` has the features of the
paper's experiments.
"""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.features.geometry import compute_unit_length, extract_geometry_features

NEIGHBORS = (-2, -1, 1, 2)  # offsets in reading order
BETWEEN = 6  # features of each neighbor
PLACE = 6  # features of the box itself, the last ones, of which policies can take differences between symbols
OVERLAPS = 5
LAYOUT = 8 + BETWEEN * len(NEIGHBORS) + OVERLAPS + PLACE
FAR = 4.0  # distances are clipped at this many median heights
NEAR = 3.0  # largest vertical distance of a symbol over or under another, in median heights


def compute_layout(boxes: Array) -> Array:
    """Compute the layout features of each symbol: `geometry`, neighbors, overlaps and the box itself.

    Args:
        boxes: left, top, right and bottom of the symbols in reading order, [n, 4].

    Returns:
        Features, float32 [n, LAYOUT].
    """
    if not len(boxes):
        return np.zeros((0, LAYOUT), np.float32)
    unit = compute_unit_length(boxes)
    scaled = (boxes - [*boxes[:, :2].min(axis=0)] * 2) / unit
    neighbors = [extract_neighbor_features(scaled, shift) for shift in NEIGHBORS]
    return np.concatenate(
        [extract_geometry_features(boxes), *neighbors, extract_overlap_features(scaled), extract_box_features(scaled)],
        axis=1,
    ).astype(np.float32)


def extract_neighbor_features(boxes: Array, shift: int) -> Array:
    """Return features of each symbol's neighbor at offset `shift`, zeros if it has none, [n, BETWEEN]."""
    n = len(boxes)
    neighbor = np.arange(n) + shift
    exists = (neighbor >= 0) & (neighbor < n)
    neighbor_boxes = boxes[np.clip(neighbor, 0, n - 1)]
    edges = neighbor_boxes - boxes  # left, top, right, bottom
    gap = neighbor_boxes[:, 0] - boxes[:, 2] if shift > 0 else boxes[:, 0] - neighbor_boxes[:, 2]
    size = np.log(
        np.maximum(neighbor_boxes[:, 3] - neighbor_boxes[:, 1], 0.05) / np.maximum(boxes[:, 3] - boxes[:, 1], 0.05)
    )
    columns = [np.clip(edges, -FAR, FAR), np.clip(gap, -FAR, FAR)[:, None], size[:, None]]
    return np.concatenate(columns, axis=1) * exists[:, None]


def extract_overlap_features(boxes: Array) -> Array:
    """Return log(1 + count) of symbols over, under, inside and around each symbol, and a flag, [n, OVERLAPS].

    A symbol is over or under another if its center is between the other's left and right borders and near
    it. The flag is 1 if no symbol is over, under or inside.
    """
    left, top, right, bottom = boxes.T
    across = (left + right) / 2
    down = (top + bottom) / 2
    spanned = (across > left[:, None]) & (across < right[:, None])  # [n, other]
    rise = down[:, None] - down
    over = spanned & (bottom < down[:, None]) & (rise < NEAR)
    under = spanned & (top > down[:, None]) & (-rise < NEAR)
    inside = spanned & (down > top[:, None]) & (down < bottom[:, None])
    np.fill_diagonal(inside, val=False)
    counts = np.stack([over.sum(1), under.sum(1), inside.sum(1), inside.sum(0)], axis=1)
    alone = ~(over | under | inside).any(axis=1)
    return np.concatenate([np.log1p(counts), alone[:, None]], axis=1)


def extract_box_features(boxes: Array) -> Array:
    """Return borders in tens of median heights, and half the logarithms of width and height, [n, PLACE]."""
    size = np.log(np.maximum(boxes[:, 2:] - boxes[:, :2], 0.05))
    return np.concatenate([boxes / 10.0, size / 2.0], axis=1)
