"""Cropping of a sheet of paper on a darker table: find its four corners and rectify it."""

import numpy as np
from PIL import Image

from aggrevated.core.arrays import Array
from aggrevated_reader.pictures.thresholds import compute_otsu_threshold

SMALL = 200  # pixels of the longer side in which the sheet is searched
SHARES = 0.12, 0.97  # minimum and maximum share of the picture that is sheet
AROUND = 0.5  # minimum share of table on at least SIDES of the four sides of the picture
SIDES = 3
DARKER = 0.55  # maximum lightness of a table relative to the paper: lighter regions are paper in a shadow
SQUARE = 0.9  # minimum share of its corners' quadrangle that a sheet fills
EDGE = 0.015  # share of the sheet that is cropped at each side, because its edge is not ink


def flatten_sheet(gray: Image.Image) -> tuple[Image.Image, Array]:
    """Return the sheet as if seen from above, and the matrix [3, 3] from its pixels to the picture's.

    Without a table around a sheet, the picture and the identity are returned.
    """
    corners = _find_corners(gray)
    if corners is None:
        return gray, np.eye(3)
    center = corners.mean(axis=0)
    corners = corners + (center - corners) * 2 * EDGE
    sides = np.hypot(*(np.roll(corners, -1, axis=0) - corners).T)
    width = round(max(sides[0], sides[2]))
    height = round(max(sides[1], sides[3]))
    matrix = _compute_homography(np.array([[0, 0], [width, 0], [width, height], [0, height]], float), corners)
    flat = gray.transform(
        (width, height), Image.Transform.PERSPECTIVE, tuple(matrix.ravel()[:8]), Image.Resampling.BICUBIC
    )
    return flat, matrix


def _find_corners(gray: Image.Image) -> Array | None:
    """Return the sheet's corners [4, 2] in pixels, clockwise from the top left, or None without a table."""
    from scipy import ndimage

    factor = max(1, -(-max(gray.size) // SMALL))
    level = np.asarray(gray.reduce(factor)).astype(np.int64)
    threshold, _ = compute_otsu_threshold(np.bincount(level.ravel(), minlength=256))
    labels, count = ndimage.label(level > threshold)
    if not count:
        return None
    sheet = ndimage.binary_fill_holes(labels == 1 + np.argmax(np.bincount(labels.ravel())[1:]))
    sheet = ndimage.binary_opening(sheet, np.ones((5, 5)))
    if not SHARES[0] < sheet.mean() < SHARES[1] or level[~sheet].mean() > DARKER * level[sheet].mean():
        return None
    table = [1 - side.mean() for side in (sheet[0], sheet[-1], sheet[:, 0], sheet[:, -1])]
    y, x = np.nonzero(sheet)
    indices = [np.argmin(x + y), np.argmax(x - y), np.argmax(x + y), np.argmin(x - y)]
    corners = np.stack([x[indices], y[indices]], axis=1).astype(float)
    if (
        sum(side > AROUND for side in table) < SIDES
        or min(table) < AROUND / 3
        or len(x) < SQUARE * _compute_area(corners)
        or _compute_area(corners) < 0.85 * len(x)
    ):
        return None
    return (corners + 0.5) * factor


def _compute_area(corners: Array) -> float:
    """Return the area of a polygon [n, 2] by the shoelace formula."""
    x, y = corners.T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)


def _compute_homography(start: Array, end: Array) -> Array:
    """Return the matrix [3, 3] that maps four points [4, 2] to four others."""
    rows = []
    values = []
    for (x, y), (u, v) in zip(start, end, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return np.append(np.linalg.solve(np.array(rows), np.array(values)), 1.0).reshape(3, 3)
