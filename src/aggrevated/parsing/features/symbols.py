"""All that can be known of a symbol: its histogram of oriented gradients, and where its box lies."""

from collections.abc import Sequence

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.features.crops import SIDE, draw_crops
from aggrevated.parsing.features.geometry import GEOMETRY, extract_geometry_features
from aggrevated.parsing.features.hog import extract_hog_features
from aggrevated.parsing.features.layout import LAYOUT, compute_layout
from aggrevated.parsing.pages.page import Page

PIXELS = 576  # numbers of HoG
RAW = PIXELS + len(GEOMETRY)  # numbers for each symbol

COARSE = 10  # pixels across and down of a crop at a lower resolution
DETAILED_PIXELS = PIXELS + COARSE**2
DETAILED = DETAILED_PIXELS + LAYOUT

SYMBOLS = 128  # whose pictures are drawn at a time: memory stays small and near, however many pages there are


def extract_raw_features(pages: Sequence[Page]) -> Array:
    """Of the symbols of all pages, one after the other: HoG, then geometry, float32 [Σn, RAW]."""
    ink = [strokes for page in pages for strokes in page.ink]
    found = np.empty((len(ink), RAW), np.float32)
    for first in range(0, len(ink), SYMBOLS):
        some = slice(first, first + SYMBOLS)
        found[some, :PIXELS] = extract_hog_features(draw_crops(ink[some]))
    found[:, PIXELS:] = np.concatenate([extract_geometry_features(page.boxes) for page in pages])
    return found


def extract_detailed_features(pages: Sequence[Page]) -> Array:
    """The same with more to it: HoG, the crop at a lower resolution, and `layout`, float32 [Σn, DETAILED]."""
    ink = [strokes for page in pages for strokes in page.ink]
    found = np.empty((len(ink), DETAILED), np.float32)
    for first in range(0, len(ink), SYMBOLS):
        some = slice(first, first + SYMBOLS)
        drawn = draw_crops(ink[some])
        found[some, :PIXELS] = extract_hog_features(drawn)
        found[some, PIXELS:DETAILED_PIXELS] = downsample_crops(drawn)
    found[:, DETAILED_PIXELS:] = np.concatenate([compute_layout(page.boxes) for page in pages])
    return found


def downsample_crops(drawn: Array) -> Array:
    """[n, COARSE²]: crops [n, 40, 40] at a lower resolution; in the mean as long as HoG's vectors, about."""
    tile = SIDE // COARSE
    means: Array = drawn.reshape(-1, COARSE, tile, COARSE, tile).mean(axis=(2, 4)).reshape(-1, COARSE**2)
    return means / 255.0


def pad_features(lengths: Array, features: Array) -> Array:
    """Features [Σn, D] of pages of these lengths [P] as a table [P, N, D], zeros beyond a page."""
    laid_out = np.zeros((len(lengths), int(lengths.max()), features.shape[1]), np.float32)
    laid_out[np.arange(laid_out.shape[1]) < lengths[:, None]] = features
    return laid_out
