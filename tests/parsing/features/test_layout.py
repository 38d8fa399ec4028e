"""Features of the two-dimensional layout of symbols."""

import numpy as np

from aggrevated.parsing.features.geometry import extract_geometry_features
from aggrevated.parsing.features.layout import (
    BETWEEN,
    LAYOUT,
    NEIGHBORS,
    OVERLAPS,
    PLACE,
    compute_layout,
    extract_overlap_features,
)

# 1 over a bar over 2, then an x with an exponent: left, top, right, bottom
FRACTION = np.array([[1, 0, 2, 1], [0, 1.4, 3, 1.5], [1, 2, 2, 3], [4, 1, 5, 2], [5.1, 0.5, 5.5, 1.0]], float)


def test_layout_has_all_columns_and_is_finite_for_any_symbol_count():
    assert 8 + BETWEEN * len(NEIGHBORS) + OVERLAPS + PLACE == LAYOUT
    for n in range(6):
        actual = compute_layout(FRACTION[:n])
        assert actual.shape == (n, LAYOUT) and actual.dtype == np.float32 and np.isfinite(actual).all()
    np.testing.assert_array_equal(compute_layout(FRACTION)[:, :8], extract_geometry_features(FRACTION))
    assert np.isfinite(compute_layout(np.zeros((3, 4)))).all()  # dots


def test_overlaps_of_fraction_bar_count_symbols_over_and_under_it():
    over, under, inside, around, alone = extract_overlap_features(FRACTION)[1]
    assert (over, under, inside, around, alone) == (np.log(2), np.log(2), 0, 0, 0)
    assert extract_overlap_features(FRACTION)[3].tolist() == [0, 0, 0, 0, 1]


def test_overlaps_of_root_sign_count_symbols_inside():
    root = np.array([[0, 0, 4, 2], [1, 0.5, 2, 1.8], [2.5, 0.5, 3.5, 1.8], [5, 0.5, 6, 1.8]], float)
    np.testing.assert_allclose(
        extract_overlap_features(root)[:, 2:4], [[np.log(3), 0], [0, np.log(2)], [0, np.log(2)], [0, 0]]
    )


def test_layout_is_invariant_to_page_scale_and_position():
    np.testing.assert_allclose(compute_layout(7.5 * FRACTION + [30, -4, 30, -4]), compute_layout(FRACTION), atol=1e-5)


def test_layout_gives_relative_position_of_the_next_symbol():
    """Position of the exponent relative to its base: edges, gap and size, in median heights."""
    unit = 1.0
    first = 8 + BETWEEN * NEIGHBORS.index(1)
    left, top, right, bottom, gap, size = compute_layout(FRACTION)[3, first : first + BETWEEN]
    expected = [1.1 / unit, -0.5, 0.5, -1.0, 0.1, np.log(0.5)]
    np.testing.assert_allclose([left, top, right, bottom, gap, size], expected, atol=1e-6)
    assert not compute_layout(FRACTION)[4, first : first + BETWEEN].any()  # no symbol follows the last
