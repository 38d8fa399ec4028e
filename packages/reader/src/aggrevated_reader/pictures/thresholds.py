"""Binarization by darkness: the lightness of the paper at each pixel, and the minimum depth of ink."""

import numpy as np

from aggrevated.core.arrays import Array

# shares of the contrast: surely ink, and ink if connected with such
SURE = 0.5
FAINT = 0.25
REACH = 4  # maximum distance from sure ink to faint ink in pixels
NOISE = 3.0  # standard deviations of the paper that are not ink
WINDOW = 1 / 30  # of the longer side: lines are narrower, shadows are wider
NARROWEST = 41  # minimum window in pixels
BRIGHT = 150  # minimum median shade of light paper
RIM = 40.0  # minimum depth of the rim of something dark
LIGHTEST = 40  # minimum shade of paper: on darker paper, noise would look like ink


def compute_ink_depth(level: Array) -> Array:
    """Return how dark each pixel is against the paper around it, float32 [height, width].

    0 is paper, 255 is black. The paper is what remains after everything narrower than a window is filled up
    (gray closing), so that edges of shadows stay where they are.
    """
    from scipy import ndimage

    window = _choose_window_size(level)
    paper = ndimage.minimum_filter(ndimage.maximum_filter(level, window, mode="nearest"), window, mode="nearest")
    dark = (paper.astype(np.float32) - level) * (255.0 / np.maximum(paper, LIGHTEST))
    dark -= np.median(dark)  # noise raises the paper's level
    return _remove_rims(dark, level, paper)


def _choose_window_size(level: Array) -> int:
    return max(NARROWEST, int(WINDOW * max(level.shape))) | 1


def _remove_rims(depth: Array, level: Array, paper: Array) -> Array:
    """Return the depth without dark rims of dark regions that are too large for ink, such as blots."""
    from scipy import ndimage

    labels, count = ndimage.label(depth > RIM, np.ones((3, 3)))
    at = np.nonzero(labels)
    pixel_labels = labels[at]
    lightest = np.zeros(count + 1)
    darkest = np.full(count + 1, 255.0)
    shade = np.full(count + 1, 255.0)
    np.minimum.at(shade, pixel_labels, level[at])
    nearby_paper = ndimage.minimum_filter(paper, 5)
    np.maximum.at(lightest, pixel_labels, paper[at])
    np.minimum.at(darkest, pixel_labels, nearby_paper[at])
    rim = darkest - shade < 0.3 * (lightest - shade)
    rim[0] = False
    return np.where(rim[labels], np.float32(0), depth)


def is_inverted(level: Array) -> bool:
    """Return whether the paper is darker than its ink: whether regions of high contrast are mostly dark."""
    from scipy import ndimage

    if np.median(level) > BRIGHT:
        return False
    window = _choose_window_size(level)
    small = level[::2, ::2].astype(np.float32)  # half the resolution takes a quarter of the time
    high = ndimage.maximum_filter(small, window // 2)
    low = ndimage.minimum_filter(small, window // 2)
    lively = high - low > 0.5 * float((high - low).max())
    around = ndimage.uniform_filter(small, window)
    return bool((around < (high + low) / 2)[lively].sum() > lively.sum() / 2)


def estimate_threshold(depth: Array) -> tuple[float, float]:
    """Return the depth from which on a pixel is surely ink, and the contrast between ink and paper."""
    threshold, contrast = compute_otsu_threshold(
        np.bincount(np.clip(depth, 0, 255).astype(np.uint8).ravel(), minlength=256)
    )
    return max(float(threshold), NOISE * estimate_noise(depth) / SURE * FAINT), contrast


def estimate_noise(depth: Array) -> float:
    """Return the standard deviation of the paper's shades, from the median of the lighter ones."""
    lighter = depth[::3, ::3]
    lighter = lighter[lighter < 0]
    return float(-np.median(lighter) / 0.6745) if len(lighter) else 0.0


def compute_ink_mask(depth: Array, contrast: float) -> Array:
    """Return where there is ink, bool [height, width].

    A pixel with at least half the contrast is ink. A pixel with at least a quarter of it is ink if it is
    connected with such a pixel and near it (hysteresis; Canny, 1986). So a line one pixel wide between two
    rows of pixels is not cut into dashes, and a stain that ink touches is not ink.

    Args:
        depth: The darkness of each pixel against the paper, [height, width].
        contrast: The depth of the ink.
    """
    from scipy import ndimage

    weak = depth > FAINT * contrast
    strong = depth > SURE * contrast
    ink: Array = ndimage.binary_dilation(strong, np.ones((3, 3)), REACH, mask=weak)
    return ink


def compute_otsu_threshold(histogram: Array) -> tuple[int, float]:
    """Return Otsu's (1979) threshold and the distance between the means of the two classes.

    The threshold is the level that splits the histogram with the greatest variance between both classes.
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
