"""Histograms of oriented gradients (HoG; Dalal & Triggs 2005) of 40 × 40 crops.

The settings are 9 orientations in 0 … 180°, cells of 8 × 8 pixels, blocks of 2 × 2 cells at every cell, and
L2-Hys. They give 4 × 4 blocks × 36 = 576 numbers, equal to those of scikit-image's `hog`.
"""

import math

import numpy as np

from aggrevated.core.arrays import Array

ORIENTATIONS = 9
CELL = 8  # pixels
BLOCK = 2  # cells
CLIP = 0.2  # clipping value of L2-Hys
_EPSILON = 1e-5  # as in scikit-image


def extract_hog_features(images: Array) -> Array:
    """Compute the histogram of oriented gradients of each crop.

    Args:
        images: crops, [n, height, width].

    Returns:
        Features, float32 [n, 576] for crops of 40 × 40 pixels.
    """
    assert images.ndim == 3, images.shape
    blocks = np.lib.stride_tricks.sliding_window_view(_compute_cells(images), (BLOCK, BLOCK), axis=(1, 2))
    blocks = np.moveaxis(blocks, 3, 5)  # [n, rows, columns, orientation, 2, 2] → orientation last
    blocks = _normalize_blocks(np.minimum(_normalize_blocks(blocks), CLIP))
    return blocks.reshape(len(images), math.prod(blocks.shape[1:])).astype(np.float32)


def _normalize_blocks(blocks: Array) -> Array:
    """Return each block divided by its length, √(‖v‖² + ε²)."""
    squared = np.einsum("nrcijo,nrcijo->nrc", blocks, blocks)
    unit: Array = blocks / np.sqrt(squared + _EPSILON**2)[..., None, None, None]
    return unit


def _compute_cells(images: Array) -> Array:
    """Return mean gradient magnitudes by cell and orientation, 0 at borders, [n, height / 8, width / 8, 9]."""
    n, height, width = images.shape
    rows = height // CELL
    columns = width // CELL
    image = images.astype(np.float64)
    down = np.zeros_like(image)
    across = np.zeros_like(image)
    down[:, 1:-1] = image[:, 2:] - image[:, :-2]
    across[:, :, 1:-1] = image[:, :, 2:] - image[:, :, :-2]
    down = down[:, : rows * CELL, : columns * CELL]
    across = across[:, : rows * CELL, : columns * CELL]
    image_index, y, x = np.nonzero((down != 0) | (across != 0))  # most of a crop is paper
    dy = down[image_index, y, x]
    dx = across[image_index, y, x]
    angle = np.rad2deg(np.arctan2(dy, dx)) % 180.0
    edges = np.arange(1, ORIENTATIONS) * (180.0 / ORIENTATIONS)
    bins = np.searchsorted(edges, angle, side="right")
    cell = ((image_index * rows + y // CELL) * columns + x // CELL) * ORIENTATIONS + bins
    sums = np.bincount(cell, np.hypot(dy, dx), minlength=n * rows * columns * ORIENTATIONS)
    return sums.reshape(n, rows, columns, ORIENTATIONS) / CELL**2
