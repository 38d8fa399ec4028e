"""Raw features of symbols: histograms of oriented gradients, and the position of the box."""

from collections.abc import Sequence

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.features.crops import SIDE, draw_crops
from aggrevated.parsing.features.geometry import GEOMETRY, extract_geometry_features
from aggrevated.parsing.features.hog import extract_hog_features
from aggrevated.parsing.features.layout import LAYOUT, compute_layout
from aggrevated.parsing.pages.page import Page

PIXELS = 576  # HoG features
RAW = PIXELS + len(GEOMETRY)  # raw features of each symbol

COARSE = 10  # side of a downsampled crop, pixels
DETAILED_PIXELS = PIXELS + COARSE**2
DETAILED = DETAILED_PIXELS + LAYOUT

SYMBOLS = 128  # crops drawn at a time, which limits the memory


def extract_raw_features(pages: Sequence[Page]) -> Array:
    """Compute HoG and geometry of the symbols of all pages.

    Args:
        pages: pages, whose symbols are concatenated.

    Returns:
        Raw features, float32 [Σn, RAW].
    """
    ink = [strokes for page in pages for strokes in page.ink]
    features = np.empty((len(ink), RAW), np.float32)
    for first in range(0, len(ink), SYMBOLS):
        block = slice(first, first + SYMBOLS)
        features[block, :PIXELS] = extract_hog_features(draw_crops(ink[block]))
    features[:, PIXELS:] = np.concatenate([extract_geometry_features(page.boxes) for page in pages])
    return features


def extract_detailed_features(pages: Sequence[Page]) -> Array:
    """Compute HoG, downsampled crops and `layout` of the symbols of all pages.

    Args:
        pages: pages, whose symbols are concatenated.

    Returns:
        Raw features, float32 [Σn, DETAILED].
    """
    ink = [strokes for page in pages for strokes in page.ink]
    features = np.empty((len(ink), DETAILED), np.float32)
    for first in range(0, len(ink), SYMBOLS):
        block = slice(first, first + SYMBOLS)
        crops = draw_crops(ink[block])
        features[block, :PIXELS] = extract_hog_features(crops)
        features[block, PIXELS:DETAILED_PIXELS] = downsample_crops(crops)
    features[:, DETAILED_PIXELS:] = np.concatenate([compute_layout(page.boxes) for page in pages])
    return features


def downsample_crops(crops: Array) -> Array:
    """Return crops [n, 40, 40] at a lower resolution, in 0 … 1, [n, COARSE²]."""
    tile = SIDE // COARSE
    means: Array = crops.reshape(-1, COARSE, tile, COARSE, tile).mean(axis=(2, 4)).reshape(-1, COARSE**2)
    return means / 255.0


def pad_features(lengths: Array, features: Array) -> Array:
    """Return features [Σn, D] of pages with these lengths [P] padded with zeros, float32 [P, N, D]."""
    padded = np.zeros((len(lengths), int(lengths.max()), features.shape[1]), np.float32)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = features
    return padded
