"""Thinning of ink to lines one pixel wide."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError

MAX_ROUNDS = 25  # each removes a pixel from both sides of a line

# The eight neighbors as (down, right), clockwise from above.
AROUND = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))


def _make_deletable_table() -> Array:
    """Return Zhang and Suen's (1984) rule for both half-rounds by the neighbors as bits, bool [2, 256]."""
    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1  # [256, 8]
    count = bits.sum(axis=1)
    rises = ((bits == 0) & (np.roll(bits, -1, axis=1) == 1)).sum(axis=1)
    up, right, down, left = bits[:, ::2].T
    border = (count >= 2) & (count <= 6) & (rises == 1)
    first = border & (up * right * down == 0) & (right * down * left == 0)
    return np.stack([first, border & (up * right * left == 0) & (up * down * left == 0)])


_DELETABLE = _make_deletable_table()


def skeletonize(ink: Array) -> Array:
    """Return the centerlines of the ink, with the same connectivity, bool [height, width].

    Raises:
        DataError: The ink has blots that are too wide.
    """
    height, width = ink.shape
    padded = np.zeros((height + 2, width + 2), np.uint8)
    padded[1:-1, 1:-1] = ink
    flat = padded.ravel()  # a view of `padded`
    offsets = [down * (width + 2) + right for down, right in AROUND]
    left = np.flatnonzero(flat)
    for _ in range(MAX_ROUNDS):
        before = len(left)
        for half in _DELETABLE:
            code = np.zeros(len(left), np.uint8)
            for bit, offset in enumerate(offsets):
                code |= flat[left + offset] << bit
            deleted = half[code]
            flat[left[deleted]] = 0
            left = left[~deleted]
        if len(left) == before:
            return np.ascontiguousarray(padded[1:-1, 1:-1], bool)
    raise DataError("it has blots much wider than its lines; cut away what is not the page")
