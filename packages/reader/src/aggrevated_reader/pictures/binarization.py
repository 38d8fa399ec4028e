"""Extraction of ink: from a grayscale picture to the centerlines of its pen strokes."""

from dataclasses import dataclass

import numpy as np
from PIL import Image

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.parsing.pages.page import Strokes
from aggrevated_reader.pictures.page_crop import flatten_sheet
from aggrevated_reader.pictures.ruled_lines import count_line_remnants, estimate_line_tilt, remove_ruled_lines
from aggrevated_reader.pictures.symbol_grouping import MAX_PARTS
from aggrevated_reader.pictures.thinning import skeletonize
from aggrevated_reader.pictures.thresholds import (
    FAINT,
    SURE,
    compute_ink_depth,
    compute_ink_mask,
    estimate_threshold,
    is_inverted,
)
from aggrevated_reader.pictures.tracing import trace_strokes

MAX_INK = 0.25  # maximum share of the page
MIN_CONTRAST = 32  # of 255, between ink and paper
PEN = 6.0  # maximum width of lines in pixels: pictures with wider ones are shrunk
FRAME = 0.7  # minimum share of the page that a frame encloses, and of its sides that are ink
LEVEL = 0.3  # maximum tilt of a ruled page in degrees
DUST = 4  # maximum size of dust in pixels
BLOT = 1.5  # minimum half-width of a blot in widths of the pen
NO_PAGE = "that is not a page of algebra"


@dataclass(frozen=True)
class ExtractedInk:
    """Ink of a picture.

    Args:
        parts: The centerlines of every connected piece of ink.
        to_picture: The homography [3, 3] from the ink's coordinates (x, y, 1) to pixels of the picture.
        doubts: Reasons why ink may be missing, each a clause.
    """

    parts: list[Strokes]
    to_picture: Array
    doubts: tuple[str, ...] = ()


def extract_parts(gray: Image.Image, scale: float = 1.0) -> list[Strokes]:
    """Return the centerlines of every connected piece of ink in a picture of mode L, times `scale`."""
    return extract_ink(gray, scale).parts


def extract_ink(gray: Image.Image, scale: float = 1.0) -> ExtractedInk:
    """Return the ink of a picture.

    Args:
        gray: A picture of mode L.
        scale: Pixels of the original picture for one pixel of `gray`.

    Raises:
        DataError: The picture has no ink, too much ink, or too many pieces of ink.
        UsageError: SciPy is not installed.
    """
    try:
        from scipy import ndimage
    except ImportError as error:
        raise UsageError("reading pictures needs SciPy: pip install scipy") from error
    sheet, matrix = flatten_sheet(gray)
    ink, rotation, factor, remnant_doubts = _find_ink(sheet)
    labels, count = ndimage.label(ink, np.ones((3, 3)))
    labels, part_labels, doubts = _select_parts(labels, count, _estimate_pen_width(ink))
    skeleton = skeletonize(labels > 0)
    _keep_dots(skeleton, labels, part_labels)
    to_picture = np.diag([scale, scale, 1.0]) @ matrix @ rotation @ np.diag([1 / scale, 1 / scale, 1.0])
    return ExtractedInk(
        trace_strokes(skeleton, labels, part_labels, scale * factor), to_picture, remnant_doubts + doubts
    )


def _select_parts(labels: Array, count: int, pen: float) -> tuple[Array, Array, tuple[str, ...]]:
    """Return the labels without specks and blots, the labels that are left, and doubts."""
    from scipy import ndimage

    area = np.bincount(labels.ravel(), minlength=count + 1)
    large = area >= max(4.0, 0.3 * pen**2)  # smaller ones are specks
    large[0] = False  # the paper
    deep = np.zeros(count + 1, np.int32)
    at = np.nonzero(labels)
    np.maximum.at(deep, labels[at], ndimage.distance_transform_cdt(labels > 0, "chessboard")[at])
    blots = large & (deep > BLOT * max(pen, 2.0))
    boxes = ndimage.find_objects(labels)
    for label, box in enumerate(boxes, 1):
        large[label] &= not _is_frame(labels[box] == label, labels.shape)
    dust = _find_dust(
        np.array([0, *(max(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in boxes)])
    )
    dust &= large
    large &= ~dust
    part_labels = np.flatnonzero(large & ~blots)
    if len(part_labels) > MAX_PARTS:
        raise DataError(
            f"it has {len(part_labels):,} separate blots of ink: {NO_PAGE}; give a picture with at most {MAX_PARTS}"
        )
    if not len(part_labels):
        raise DataError("it has no ink; give a picture of handwriting")
    doubts = tuple(
        f"{int(dropped.sum())} {reason} left out"
        for dropped, reason in ((blots, "blots were"), (dust, "specks were"))
        if dropped.any()
    )
    return np.where((large & ~blots)[labels], labels, 0), part_labels, doubts


def _find_dust(sizes: Array) -> Array:
    """Return which parts are dust, from their longer sides: small ones, if there are very many of them."""
    large = sizes[sizes > DUST]
    small = sizes <= max(DUST, 0.1 * float(np.percentile(large, 75)) if len(large) else 0.0)
    return small if small.sum() > max(8, 0.4 * (~small).sum()) else np.zeros_like(small)


def _is_frame(ink: Array, page: tuple[int, ...]) -> bool:
    """Return whether a part goes round most of the page and touches all four sides of its box."""
    height, width = ink.shape
    if height < FRAME * page[0] or width < FRAME * page[1]:
        return False
    near = max(3, round(0.03 * min(height, width)))
    sides = ink[:near].any(axis=0), ink[-near:].any(axis=0), ink[:, :near].any(axis=1), ink[:, -near:].any(axis=1)
    return all(side.mean() > FRAME for side in sides)


def _keep_dots(skeleton: Array, labels: Array, part_labels: Array) -> None:
    """Give each of these labels one pixel that thinning removed; this happens to squares of 2 × 2."""
    vanished = np.setdiff1d(part_labels, labels[skeleton])
    if len(vanished):
        inked = np.flatnonzero(labels)
        owners, first_pixels = np.unique(labels.ravel()[inked], return_index=True)
        skeleton.ravel()[inked[first_pixels[np.searchsorted(owners, vanished)]]] = True


def _find_ink(sheet: Image.Image) -> tuple[Array, Array, float, tuple[str, ...]]:
    """Return the ink of a sheet with lines no wider than PEN.

    Returns:
        The ink, bool [height, width]; the matrix [3, 3] from its pixels to the sheet's; the factor of
        shrinking; doubts.
    """
    depth = _compute_depth(sheet)
    contrast = _estimate_contrast(depth)
    rotation = np.eye(3)
    tilt = estimate_line_tilt(depth > FAINT * contrast)
    if abs(tilt) > LEVEL:
        upright, matrix = _rotate_sheet(sheet, tilt)
        level = _compute_depth(upright)
        if remove_ruled_lines(compute_ink_mask(level, contrast), level)[1]:
            depth = level
            rotation = matrix
    all_ink = compute_ink_mask(depth, contrast)
    ink, lines = remove_ruled_lines(all_ink, depth)
    doubts: tuple[str, ...] = ()
    if lines:
        if remnants := count_line_remnants(all_ink, ink):
            doubts = (f"{remnants} small pieces at the lines of the paper may be parts of cut strokes or of lines",)
        depth = np.where(ink, depth, 0.0)
        contrast = _estimate_contrast(depth)  # the lines may have been lighter or darker than the ink
        ink = compute_ink_mask(depth, contrast)
    if ink.mean() > MAX_INK:
        raise DataError(f"{ink.mean():.0%} of it is ink: {NO_PAGE}; cut away what is not the page")
    pen = _estimate_pen_width(ink)
    if pen <= PEN:
        return ink, rotation, 1.0, doubts
    height, width = ink.shape
    size = (max(round(width * PEN / pen), 1), max(round(height * PEN / pen), 1))
    small = Image.fromarray(np.where(ink, depth, 0.0).astype(np.float32)).resize(size, Image.Resampling.BOX)
    return np.asarray(small) > SURE * contrast, rotation, pen / PEN, doubts


def _compute_depth(sheet: Image.Image) -> Array:
    """Return the contrast of each pixel with its paper, for dark ink on light paper or the reverse."""
    level = np.asarray(sheet)
    return compute_ink_depth(255 - level if is_inverted(level) else level)


def _estimate_contrast(depth: Array) -> float:
    """Return the contrast of the ink with the paper; raise a DataError if it is too low."""
    threshold, contrast = estimate_threshold(depth)
    if contrast < MIN_CONTRAST:
        raise DataError("its ink does not stand out from the paper; give a picture with more contrast")
    return threshold / SURE


def _rotate_sheet(sheet: Image.Image, tilt: float) -> tuple[Image.Image, Array]:
    """Return the picture rotated so that lines with this tilt in degrees are level, and the matrix back."""
    middle = int(np.median(np.asarray(sheet)))
    turned = sheet.rotate(tilt, Image.Resampling.BICUBIC, expand=True, fillcolor=middle)
    angle = np.radians(tilt)
    c = np.cos(angle)
    s = np.sin(angle)
    rotated_center = np.array(turned.size) / 2 - 0.5
    center = np.array(sheet.size) / 2 - 0.5
    turn = np.array([[c, -s], [s, c]])
    matrix = np.eye(3)
    matrix[:2, :2] = turn
    matrix[:2, 2] = center - turn @ rotated_center
    return turned, matrix


def _estimate_pen_width(ink: Array) -> float:
    """Return the width of the lines: twice their area divided by the length of their edges."""
    inside = ink[1:-1, 1:-1] & ink[:-2, 1:-1] & ink[2:, 1:-1] & ink[1:-1, :-2] & ink[1:-1, 2:]
    area = int(ink.sum())
    return 2.0 * area / max(area - int(inside.sum()), 1)
