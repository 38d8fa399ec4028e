"""Where a symbol stands in two dimensions: beside those around it in reading order, and over and under others.

An exponent is known by where it stands beside its base, a fraction's bar by what is above and below it, what is under a
root by the box around it. `geometry` tells less, and stays as the paper's rows know it.
"""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.features.geometry import compute_unit_length, extract_geometry_features

NEIGHBORS = (-2, -1, 1, 2)  # places in reading order
BETWEEN = 6  # numbers for each neighbour
PLACE = 6  # the last numbers: of one symbol alone, so that differences between any two can be taken
OVERLAPS = 5
LAYOUT = 8 + BETWEEN * len(NEIGHBORS) + OVERLAPS + PLACE
FAR = 4.0  # median heights, beyond which a distance says no more
NEAR = 3.0  # median heights above or below, within which a symbol counts as being over or under another


def compute_layout(boxes: Array) -> Array:
    """float32 [n, LAYOUT] of boxes [n, 4] in reading order: `geometry`, neighbours, overlaps, and the place itself."""
    if not len(boxes):
        return np.zeros((0, LAYOUT), np.float32)
    unit = compute_unit_length(boxes)
    scaled = (boxes - [*boxes[:, :2].min(axis=0)] * 2) / unit
    beside = [extract_neighbor_features(scaled, shift) for shift in NEIGHBORS]
    return np.concatenate(
        [extract_geometry_features(boxes), *beside, extract_overlap_features(scaled), extract_box_features(scaled)],
        axis=1,
    ).astype(np.float32)


def extract_neighbor_features(boxes: Array, shift: int) -> Array:
    """[n, BETWEEN]: how the neighbour so many places on stands to each symbol; zeros where there is none."""
    n = len(boxes)
    other = np.arange(n) + shift
    there = (other >= 0) & (other < n)
    near = boxes[np.clip(other, 0, n - 1)]
    edges = near - boxes  # left, top, right, bottom
    gap = near[:, 0] - boxes[:, 2] if shift > 0 else boxes[:, 0] - near[:, 2]
    size = np.log(np.maximum(near[:, 3] - near[:, 1], 0.05) / np.maximum(boxes[:, 3] - boxes[:, 1], 0.05))
    columns = [np.clip(edges, -FAR, FAR), np.clip(gap, -FAR, FAR)[:, None], size[:, None]]
    return np.concatenate(columns, axis=1) * there[:, None]


def extract_overlap_features(boxes: Array) -> Array:
    """[n, OVERLAPS]: how many stand over, under, inside of, around it (log 1 + count), and whether it stands alone.

    Over and under are those whose middle is between its left and right borders and not far away.
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
    """[n, PLACE]: the borders in median heights, tens of them across, and the logarithms of width and height."""
    size = np.log(np.maximum(boxes[:, 2:] - boxes[:, :2], 0.05))
    return np.concatenate([boxes / 10.0, size / 2.0], axis=1)
