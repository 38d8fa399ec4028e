"""Ink from paper by how dark it is: how light the paper is at every place, and from which darkness on it is ink."""

import numpy as np

from aggrevated.core.arrays import Array

# of the contrast: what is surely ink, and what is ink if it hangs together with such
SURE = 0.5
FAINT = 0.25
REACH = 4  # pixels from sure ink to faint ink at most
NOISE = 3.0  # standard deviations of the paper that are no ink
WINDOW = 1 / 30  # of the longer side: no line is as wide, no shadow as narrow
NARROWEST = 41  # pixels of a window
BRIGHT = 150  # the median shade, from which on paper is light
RIM = 40.0  # depth of what may be the rim of something dark
LIGHTEST = 40  # shades: paper that is darker is taken for as dark, as what is seen in it is noise


def compute_ink_depth(level: Array) -> Array:
    """How dark each pixel is against the paper around it, float32 [height, width]: 0 is paper, 255 is black.

    The paper is what remains when all that is narrower than a window is filled up (grey closing), so that edges of
    shadows stay where they are.
    """
    from scipy import ndimage

    window = _choose_window_size(level)
    paper = ndimage.minimum_filter(ndimage.maximum_filter(level, window, mode="nearest"), window, mode="nearest")
    dark = (paper.astype(np.float32) - level) * (255.0 / np.maximum(paper, LIGHTEST))
    dark -= np.median(dark)  # noise lifts the paper's level
    return _remove_rims(dark, level, paper)


def _choose_window_size(level: Array) -> int:
    return max(NARROWEST, int(WINDOW * max(level.shape))) | 1


def _remove_rims(depth: Array, level: Array, paper: Array) -> Array:
    """The depth without what hangs at something as dark that is too large for ink: the rims of blots."""
    from scipy import ndimage

    labels, count = ndimage.label(depth > RIM, np.ones((3, 3)))
    at = np.nonzero(labels)
    own = labels[at]
    lightest = np.zeros(count + 1)
    darkest = np.full(count + 1, 255.0)
    shade = np.full(count + 1, 255.0)
    np.minimum.at(shade, own, level[at])
    beside = ndimage.minimum_filter(paper, 5)
    np.maximum.at(lightest, own, paper[at])
    np.minimum.at(darkest, own, beside[at])
    rim = darkest - shade < 0.3 * (lightest - shade)
    rim[0] = False
    return np.where(rim[labels], np.float32(0), depth)


def is_inverted(level: Array) -> bool:
    """Whether the paper is darker than its ink: where shades differ most, most of what is around is dark."""
    from scipy import ndimage

    if np.median(level) > BRIGHT:
        return False
    window = _choose_window_size(level)
    small = level[::2, ::2].astype(np.float32)  # half as fine: a quarter of the time
    high = ndimage.maximum_filter(small, window // 2)
    low = ndimage.minimum_filter(small, window // 2)
    lively = high - low > 0.5 * float((high - low).max())
    around = ndimage.uniform_filter(small, window)
    return bool((around < (high + low) / 2)[lively].sum() > lively.sum() / 2)


def estimate_threshold(depth: Array) -> tuple[float, float]:
    """From which depth on a pixel is surely ink; and how much darker than paper the ink is."""
    threshold, contrast = compute_otsu_threshold(
        np.bincount(np.clip(depth, 0, 255).astype(np.uint8).ravel(), minlength=256)
    )
    return max(float(threshold), NOISE * estimate_noise(depth) / SURE * FAINT), contrast


def estimate_noise(depth: Array) -> float:
    """The standard deviation of the paper's own shades, from the median of what is lighter than the paper."""
    lighter = depth[::3, ::3]
    lighter = lighter[lighter < 0]
    return float(-np.median(lighter) / 0.6745) if len(lighter) else 0.0


def compute_ink_mask(depth: Array, contrast: float) -> Array:
    """Where there is ink, bool [height, width], by how much darker than paper a pixel is; ink is darker by `contrast`.

    What is half as dark as ink is ink, and what is a quarter as dark, if it hangs together with such and is near it: a
    line of one pixel is not cut into dashes where it runs between the pixels (Canny, 1986: hysteresis), and a stain
    that ink touches is not ink.
    """
    from scipy import ndimage

    weak = depth > FAINT * contrast
    strong = depth > SURE * contrast
    ink: Array = ndimage.binary_dilation(strong, np.ones((3, 3)), REACH, mask=weak)
    return ink


def compute_otsu_threshold(histogram: Array) -> tuple[int, float]:
    """Otsu's (1979) threshold: the level that splits the histogram with the greatest variance between both classes.

    Returns also how far the means of the two classes are apart.
    """
    level = np.arange(len(histogram))
    below = np.cumsum(histogram)
    total = int(histogram.sum())
    sums = np.cumsum(histogram * level)
    low = sums / np.maximum(below, 1)
    high = (sums[-1] - sums) / np.maximum(total - below, 1)
    between = below * (total - below) * (high - low) ** 2.0
    best = int(np.argmax(between))
    return best, float(high[best] - low[best]) if between[best] > 0 else 0.0
