import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from aggrevated.parsing.features.crops import PEN, SIDE, draw_crops, fit_to_crop, warp_crop
from aggrevated.parsing.features.geometry import GEOMETRY, extract_geometry_features, find_line_starts
from aggrevated.parsing.features.hog import extract_hog_features
from aggrevated.parsing.pages.handwriting import write_page

LINES = ["10(x+2)=a+b", "c×d=e/4", "x=3"]
PAGE = write_page(LINES, 3, 5)


def test_crop_of_level_stroke_is_centered_bar_with_soft_edges():
    image = draw_crops([(np.array([[0.0, 7.0], [500.0, 7.0]]),)])[0]
    column = np.zeros(SIDE, int)
    column[18:22] = [64, 255, 255, 64]  # the bar's center is at 19.5; coverage 1.25 + 0.5 − 1.5 = a quarter, and full
    assert image.dtype == np.uint8 and (image[:, 6:34] == column[:, None]).all()
    assert (image[:, :2] == 0).all() and (image[:, -2:] == 0).all()


def test_crops_are_invariant_to_translation_and_scale():
    strokes = PAGE.ink[3]
    moved = tuple(stroke * 64.0 + 1024.0 for stroke in strokes)
    assert (np.abs(draw_crops([moved])[0].astype(int) - draw_crops([strokes])[0]) <= 1).all()


def test_fit_to_crop_keeps_aspect_ratio_and_centers_the_box():
    x, y = np.concatenate(fit_to_crop((np.array([[0.0, 0.0], [10.0, 40.0]]),))).T
    assert np.ptp(y) == pytest.approx(4 * np.ptp(x)) and np.ptp(y) == pytest.approx(31.0)
    assert (x.min() + x.max()) / 2 == pytest.approx(19.5) and (y.min() + y.max()) / 2 == pytest.approx(19.5)


def test_crop_intensity_follows_distance_from_the_path():
    grid = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), axis=-1).astype(float)
    for strokes, image in zip(PAGE.ink, draw_crops(PAGE.ink), strict=True):
        distance = np.full((SIDE, SIDE), np.inf)
        for stroke in fit_to_crop(strokes):
            for a, b in pairwise(stroke):
                t = np.clip((grid - a) @ (b - a) / max((b - a) @ (b - a), 1e-12), 0, 1)
                distance = np.minimum(distance, np.hypot(*np.moveaxis(grid - a - t[..., None] * (b - a), -1, 0)))
        exact = 255 * np.clip(PEN + 0.5 - distance, 0, 1)
        assert np.abs(exact - image).max() < 16  # the path is drawn as dabs half a pixel apart


def test_crops_of_a_page_equal_crops_of_single_symbols():
    assert (draw_crops(PAGE.ink) == np.stack([draw_crops([strokes])[0] for strokes in PAGE.ink])).all()
    assert draw_crops([]).shape == (0, SIDE, SIDE) and extract_hog_features(draw_crops([])).shape == (0, 576)


def test_crop_of_a_dot_has_ink():
    image = draw_crops([(np.array([[3.0, 3.0]]),)])[0]
    assert image.sum() > 0 and image[19:21, 19:21].min() == 255


def test_crops_of_very_long_strokes_take_little_memory():
    scribble = np.random.default_rng(0).uniform(size=(20_000, 2))
    tracemalloc.start()
    draw_crops([(scribble,)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


def test_warp_crop_keeps_stroke_shapes_and_symbols_but_changes_pixels():
    generator = np.random.default_rng(0)
    strokes = PAGE.ink[3]
    repeated = warp_crop(strokes, np.random.default_rng(0))
    other = warp_crop(strokes, generator)
    assert [s.shape for s in other] == [s.shape for s in strokes]
    assert all((a == b).all() for a, b in zip(other, repeated, strict=True))
    originals = draw_crops(PAGE.ink).astype(float).reshape(len(PAGE), -1)
    images = draw_crops([warp_crop(strokes, generator) for strokes in PAGE.ink]).astype(float).reshape(len(PAGE), -1)
    assert (images != originals).any(axis=1).all()
    closest = ((images[:, None] - originals) ** 2).sum(axis=-1).argmin(axis=1)
    assert np.mean([PAGE.symbols[i] == label for i, label in zip(closest, PAGE.symbols, strict=True)]) > 0.75


def test_warp_crop_with_zero_strength_changes_nothing():
    same = warp_crop(PAGE.ink[0], np.random.default_rng(0), strength=0.0)
    assert all(np.allclose(a, b) for a, b in zip(same, PAGE.ink[0], strict=True))


@pytest.mark.parametrize("kind", ["crops", "noise"])
def test_hog_equals_scikit_image_hog(kind):
    feature = pytest.importorskip("skimage.feature", reason="scikit-image is not installed: pip install scikit-image")
    images = draw_crops(PAGE.ink) if kind == "crops" else np.random.default_rng(0).uniform(size=(20, SIDE, SIDE))
    expected = [feature.hog(i, 9, (8, 8), (2, 2), block_norm="L2-Hys") for i in images]
    assert extract_hog_features(images).shape == (len(images), 576)
    np.testing.assert_allclose(extract_hog_features(images), expected, rtol=0, atol=1e-5)


def test_hog_of_level_edge_has_one_orientation():
    image = np.zeros((1, SIDE, SIDE))
    image[:, 20:] = 1.0
    blocks = extract_hog_features(image).reshape(4, 4, 2, 2, 9)
    assert (blocks[..., [0, 1, 2, 3, 5, 6, 7, 8]] == 0).all()  # the gradient points down: 90° is in the fifth bin
    np.testing.assert_allclose(blocks[1, :, 1, :, 4], np.sqrt(0.5), atol=1e-5)  # rows 8–15 empty, 16–23 with the edge
    np.testing.assert_allclose(extract_hog_features(np.zeros((1, SIDE, SIDE))), 0.0)


def test_line_starts_are_found_from_boxes_alone():
    n_wrong = 0
    for writer in range(60):
        for seed, lines in enumerate([LINES, ["x=3"], ["a-b=-7", "b=a+7"], ["-x=5", "x=-5"]]):
            page = write_page(lines, writer, seed)
            expected = np.concatenate([np.arange(len(line)) == 0 for line in lines])
            n_wrong += int((find_line_starts(page.boxes) != expected).sum())
    assert n_wrong == 0


def test_geometry_matches_hand_computed_values_and_is_scale_invariant():
    boxes = np.array([[0, 0, 10, 10], [15, 2, 20, 12], [0, 30, 10, 40]], float)
    features = extract_geometry_features(boxes)
    assert features.shape == (3, len(GEOMETRY)) and features.dtype == np.float32
    expected = [np.log(0.5), 0.0, 17.5 / 20, 7 / 40, 0.5, 0.2, 0.0, 0.0]
    np.testing.assert_allclose(features[1], expected, atol=1e-6)
    np.testing.assert_allclose(features[2], [0.0, 0.0, 0.25, 35 / 40, -2.0, 2.8, 0.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(extract_geometry_features(boxes * 7 + 100), features, atol=1e-6)
    assert (
        extract_geometry_features(np.zeros((0, 4))).shape == (0, 8)
        and np.isfinite(extract_geometry_features(np.zeros((2, 4)))).all()
    )
