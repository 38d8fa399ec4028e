"""Ink told apart from its paper: a picture in shades of grey as the middle lines of its pen strokes."""

import numpy as np
from PIL import Image

from aggrevated.arrays import Array
from aggrevated.errors import DataError, UsageError
from aggrevated.parsing.pages.page import Strokes
from aggrevated.parsing.pictures.joining import MAX_PARTS
from aggrevated.parsing.pictures.thinning import skeleton
from aggrevated.parsing.pictures.tracing import traced

MAX_INK = 0.25  # share of the page
MIN_CONTRAST = 32  # of 255, between ink and paper
PEN = 6.0  # pixels that a line is wide at most: thicker ones are shrunk
SURE, FAINT = 0.5, 0.25  # of the contrast: what is surely ink, and what is ink if it hangs together with such
NO_PAGE = "that is no page of algebra"


def parts_of(grey: Image.Image, scale: float = 1.0) -> list[Strokes]:
    """The middle lines of every piece of ink in a picture of mode L, times `scale`."""
    try:
        from scipy import ndimage
    except ImportError as error:
        raise UsageError("reading pictures needs SciPy: pip install 'aggrevated[parsing]'") from error
    ink, shrunk = _inked(grey)
    labels, count = ndimage.label(ink, np.ones((3, 3)))
    line = skeleton(ink)
    area = np.bincount(labels.ravel(), minlength=count + 1)
    kept = np.flatnonzero(area[1:] >= max(4.0, 0.3 * _pen(ink) ** 2)) + 1  # smaller ones are specks; 0 is the paper
    if len(kept) > MAX_PARTS:
        raise DataError(
            f"it has {len(kept):,} separate blots of ink: {NO_PAGE}; give a picture with at most {MAX_PARTS}"
        )
    if not len(kept):
        raise DataError("no ink is found in it; give a picture of handwriting")
    _keep_dots(line, labels, kept)
    return traced(line, labels, kept, scale * shrunk)


def _keep_dots(line: Array, labels: Array, kept: Array) -> None:
    """Give those of the `kept` labels one pixel that thinning has taken away: squares of 2 × 2."""
    vanished = np.setdiff1d(kept, labels[line])
    if len(vanished):
        inked = np.flatnonzero(labels)
        owners, first = np.unique(labels.ravel()[inked], return_index=True)
        line.ravel()[inked[first[np.searchsorted(owners, vanished)]]] = True


def _inked(grey: Image.Image) -> tuple[Array, float]:
    """Where there is ink, bool [height, width], no line wider than PEN; and how many pixels of `grey` one of its is."""
    ink = _dark(grey)
    pen = _pen(ink)
    if pen <= PEN:
        return ink, 1.0
    size = (max(round(grey.width * PEN / pen), 1), max(round(grey.height * PEN / pen), 1))
    return _dark(grey.resize(size, Image.Resampling.BOX)), pen / PEN


def _pen(ink: Array) -> float:
    """How wide the lines are: twice their area over the length of their edges."""
    inside = ink[1:-1, 1:-1] & ink[:-2, 1:-1] & ink[2:, 1:-1] & ink[1:-1, :-2] & ink[1:-1, 2:]
    area = int(ink.sum())
    return 2.0 * area / max(area - int(inside.sum()), 1)


def _dark(grey: Image.Image) -> Array:
    """Where the picture is darker than its paper, or lighter if the paper is dark: bool [height, width]."""
    level = np.asarray(grey).astype(np.int16)
    if np.median(level) < 128:
        level = 255 - level
    depth = np.clip(_paper(level) - level, 0, 255)
    threshold, contrast = otsu(np.bincount(depth.ravel(), minlength=256))
    ink = darker(depth, 2 * threshold)
    if contrast < MIN_CONTRAST:
        raise DataError("no ink stands out from its paper; give a picture with more contrast")
    if ink.mean() > MAX_INK:
        raise DataError(f"{ink.mean():.0%} of it is ink: {NO_PAGE}; cut away what is not the page")
    return ink


def darker(depth: Array, contrast: float) -> Array:
    """Where there is ink, bool [height, width], by how much darker than paper a pixel is; ink is darker by `contrast`.

    What is half as dark as ink is ink, and what is a quarter as dark, if it hangs together with such: a line of one
    pixel is not cut into dashes where it runs between the pixels (Canny, 1986: hysteresis).
    """
    from scipy import ndimage

    weak, strong = depth > FAINT * contrast, depth > SURE * contrast
    labels, count = ndimage.label(weak, np.ones((3, 3)))
    sure = np.zeros(count + 1, bool)
    sure[labels[strong]] = True
    sure[0] = False
    ink: Array = sure[labels]
    return ink


def _paper(level: Array) -> Array:
    """How light the paper is around each pixel, int16 [height, width]: light may fall from one side."""
    height, width = level.shape
    block = max(16, max(height, width) // 40)
    image = Image.fromarray(level.astype(np.uint8)).reduce(block)
    means = np.pad(np.asarray(image), 2, mode="edge")
    around = np.lib.stride_tricks.sliding_window_view(means, (5, 5)).max(axis=(2, 3))
    return np.asarray(Image.fromarray(around).resize((width, height), Image.Resampling.BILINEAR)).astype(np.int16)


def otsu(histogram: Array) -> tuple[int, float]:
    """Otsu's (1979) threshold: the level that splits the histogram with the greatest variance between both classes.

    Returns also how far the means of the two classes are apart.
    """
    level = np.arange(len(histogram))
    below, total = np.cumsum(histogram), int(histogram.sum())
    sums = np.cumsum(histogram * level)
    low = sums / np.maximum(below, 1)
    high = (sums[-1] - sums) / np.maximum(total - below, 1)
    between = below * (total - below) * (high - low) ** 2.0
    best = int(np.argmax(between))
    return best, float(high[best] - low[best]) if between[best] > 0 else 0.0
