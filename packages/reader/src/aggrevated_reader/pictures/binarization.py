"""Ink told apart from its paper: a picture in shades of grey as the middle lines of its pen strokes."""

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

MAX_INK = 0.25  # share of the page
MIN_CONTRAST = 32  # of 255, between ink and paper
PEN = 6.0  # pixels that a line is wide at most: thicker ones are shrunk
FRAME = 0.7  # of the page that a frame goes round, and of its sides that are ink, at least
LEVEL = 0.3  # degrees that a ruled page may be tilted
DUST = 4  # pixels
BLOT = 1.5  # half the width of a blot in widths of the pen, at least
NO_PAGE = "that is no page of algebra"


@dataclass(frozen=True)
class ExtractedInk:
    """What a picture shows."""

    parts: list[Strokes]  # the middle lines of every piece of ink
    to_picture: Array  # [3, 3]: takes (x, y, 1) of them to the picture's pixels, times a number
    doubts: tuple[str, ...] = ()  # what may have been lost


def extract_parts(grey: Image.Image, scale: float = 1.0) -> list[Strokes]:
    """The middle lines of every piece of ink in a picture of mode L, times `scale`."""
    return extract_ink(grey, scale).parts


def extract_ink(grey: Image.Image, scale: float = 1.0) -> ExtractedInk:
    """The ink of a picture of mode L, with lengths times `scale`."""
    try:
        from scipy import ndimage
    except ImportError as error:
        raise UsageError("reading pictures needs SciPy: pip install scipy") from error
    sheet, matrix = flatten_sheet(grey)
    ink, turned, shrunk, rests = _find_ink(sheet)
    labels, count = ndimage.label(ink, np.ones((3, 3)))
    labels, kept, doubts = _select_parts(labels, count, _estimate_pen_width(ink))
    line = skeletonize(labels > 0)
    _keep_dots(line, labels, kept)
    back = np.diag([scale, scale, 1.0]) @ matrix @ turned @ np.diag([1 / scale, 1 / scale, 1.0])
    return ExtractedInk(trace_strokes(line, labels, kept, scale * shrunk), back, rests + doubts)


def _select_parts(labels: Array, count: int, pen: float) -> tuple[Array, Array, tuple[str, ...]]:
    """(the labels without specks and blots, which are left, what is to be said about it)."""
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
    kept = np.flatnonzero(large & ~blots)
    if len(kept) > MAX_PARTS:
        raise DataError(
            f"it has {len(kept):,} separate blots of ink: {NO_PAGE}; give a picture with at most {MAX_PARTS}"
        )
    if not len(kept):
        raise DataError("no ink is found in it; give a picture of handwriting")
    doubts = tuple(
        f"{int(those.sum())} {what} left out"
        for those, what in ((blots, "blots were"), (dust, "specks were"))
        if those.any()
    )
    return np.where((large & ~blots)[labels], labels, 0), kept, doubts


def _find_dust(sizes: Array) -> Array:
    """Which pieces are dust, by their longer sides: small ones, where there are far more than algebra has points."""
    usual = sizes[sizes > DUST]
    small = sizes <= max(DUST, 0.1 * float(np.percentile(usual, 75)) if len(usual) else 0.0)
    return small if small.sum() > max(8, 0.4 * (~small).sum()) else np.zeros_like(small)


def _is_frame(ink: Array, page: tuple[int, ...]) -> bool:
    """Whether a piece, cut out, goes round most of a page of that shape and touches all four sides of its box."""
    height, width = ink.shape
    if height < FRAME * page[0] or width < FRAME * page[1]:
        return False
    near = max(3, round(0.03 * min(height, width)))
    sides = ink[:near].any(axis=0), ink[-near:].any(axis=0), ink[:, :near].any(axis=1), ink[:, -near:].any(axis=1)
    return all(side.mean() > FRAME for side in sides)


def _keep_dots(line: Array, labels: Array, kept: Array) -> None:
    """Give those of the `kept` labels one pixel that thinning has taken away: squares of 2 × 2."""
    vanished = np.setdiff1d(kept, labels[line])
    if len(vanished):
        inked = np.flatnonzero(labels)
        owners, first = np.unique(labels.ravel()[inked], return_index=True)
        line.ravel()[inked[first[np.searchsorted(owners, vanished)]]] = True


def _find_ink(sheet: Image.Image) -> tuple[Array, Array, float, tuple[str, ...]]:
    """Where there is ink, bool [height, width], no line wider than PEN; how it was turned, how much shrunk; doubts.

    How it was turned is a matrix [3, 3] back to the pixels of the sheet.
    """
    depth = _compute_depth(sheet)
    contrast = _estimate_contrast(depth)
    turned = np.eye(3)
    tilt = estimate_line_tilt(depth > FAINT * contrast)
    if abs(tilt) > LEVEL:
        upright, matrix = _rotate_sheet(sheet, tilt)
        level = _compute_depth(upright)
        if remove_ruled_lines(compute_ink_mask(level, contrast), level)[1]:
            depth = level
            turned = matrix
    all_ink = compute_ink_mask(depth, contrast)
    ink, lines = remove_ruled_lines(all_ink, depth)
    doubts: tuple[str, ...] = ()
    if lines:
        if rests := count_line_remnants(all_ink, ink):
            doubts = (
                f"{rests} small pieces by the lines of the paper may be strokes that were cut, or rests of lines",
            )
        depth = np.where(ink, depth, 0.0)
        contrast = _estimate_contrast(depth)  # the lines may have been lighter or darker than the ink
        ink = compute_ink_mask(depth, contrast)
    if ink.mean() > MAX_INK:
        raise DataError(f"{ink.mean():.0%} of it is ink: {NO_PAGE}; cut away what is not the page")
    pen = _estimate_pen_width(ink)
    if pen <= PEN:
        return ink, turned, 1.0, doubts
    height, width = ink.shape
    size = (max(round(width * PEN / pen), 1), max(round(height * PEN / pen), 1))
    small = Image.fromarray(np.where(ink, depth, 0.0).astype(np.float32)).resize(size, Image.Resampling.BOX)
    return np.asarray(small) > SURE * contrast, turned, pen / PEN, doubts


def _compute_depth(sheet: Image.Image) -> Array:
    """How dark each pixel is against its paper; how light, if the paper is dark."""
    level = np.asarray(sheet)
    return compute_ink_depth(255 - level if is_inverted(level) else level)


def _estimate_contrast(depth: Array) -> float:
    """How dark the ink is, so that `darker` finds it; a `DataError` if there is none."""
    threshold, contrast = estimate_threshold(depth)
    if contrast < MIN_CONTRAST:
        raise DataError("no ink stands out from its paper; give a picture with more contrast")
    return threshold / SURE


def _rotate_sheet(sheet: Image.Image, tilt: float) -> tuple[Image.Image, Array]:
    """The picture with lines of that tilt in degrees made level; and the matrix back to its pixels."""
    middle = int(np.median(np.asarray(sheet)))
    turned = sheet.rotate(tilt, Image.Resampling.BICUBIC, expand=True, fillcolor=middle)
    angle = np.radians(tilt)
    c = np.cos(angle)
    s = np.sin(angle)
    about = np.array(turned.size) / 2 - 0.5
    centre = np.array(sheet.size) / 2 - 0.5
    turn = np.array([[c, -s], [s, c]])
    matrix = np.eye(3)
    matrix[:2, :2] = turn
    matrix[:2, 2] = centre - turn @ about
    return turned, matrix


def _estimate_pen_width(ink: Array) -> float:
    """How wide the lines are: twice their area over the length of their edges."""
    inside = ink[1:-1, 1:-1] & ink[:-2, 1:-1] & ink[2:, 1:-1] & ink[1:-1, :-2] & ink[1:-1, 2:]
    area = int(ink.sum())
    return 2.0 * area / max(area - int(inside.sum()), 1)
