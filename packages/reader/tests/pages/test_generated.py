"""Pages in many generated hands: deterministic, complete, and with the right layout of structures."""

from dataclasses import replace

import numpy as np
import pytest

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.algebra import Fraction, Raised, Root
from aggrevated_reader.pages.batched_rng import BatchedRng
from aggrevated_reader.pages.generated import generate_page, generate_pages, synthesize_page
from aggrevated_reader.pages.glyphs import WAYS, list_ways
from aggrevated_reader.pages.layout import Placed, compute_layout
from aggrevated_reader.pages.pen import Path, shape_symbols
from aggrevated_reader.pages.tablet import sample_as_tablet
from aggrevated_reader.pages.writers import sample_writer
from helpers.handwriting import is_projective


def bits(page):
    return b"".join(stroke.tobytes() for strokes in page.ink for stroke in strokes)


@pytest.fixture(scope="module")
def pages():
    return generate_pages(300, seed=3)


def write_by(number, lines):
    draw = np.random.default_rng(number)
    return synthesize_page(lines, sample_writer(BatchedRng(draw)), draw)


def test_every_symbol_has_at_least_two_different_glyphs():
    assert all(len(set(texts)) == len(texts) >= 2 for texts in WAYS.values())
    assert set("0123456789+-×÷·±/=<>≤≥≠()[]{}.,!√―") | set("abcdefghijklmnopqrstuvwxyz") <= set(WAYS)


@pytest.mark.parametrize("symbol", WAYS)
def test_glyph_curve_passes_through_its_points_and_stays_near(symbol):
    for way in list_ways(symbol):
        curve = way.curve @ way.points
        nearest = np.hypot(*(curve[:, None] - way.points[None]).transpose(2, 0, 1)).min(axis=0)
        assert nearest.max() < 1e-9
        assert (curve.min(axis=0) > way.points.min(axis=0) - 0.15).all()
        assert (curve.max(axis=0) < way.points.max(axis=0) + 0.15).all()


def test_generate_page_does_not_depend_on_earlier_pages(pages):
    assert bits(generate_page(17, 3)) == bits(pages[17]) != bits(generate_page(17, 4))
    assert len({page.writer for page in pages}) == len(pages)


def test_generated_pages_are_projective_and_finite(pages):
    for page in pages:
        assert 1 <= len(page) <= 30 and is_projective(page.heads)
        assert all(strokes for strokes in page.ink)
        assert all(stroke.ndim == 2 and np.isfinite(stroke).all() for strokes in page.ink for stroke in strokes)
        assert (page.boxes >= 0).all()


def test_generate_pages_without_structures_has_no_fractions_or_roots():
    found = {symbol for page in generate_pages(200, seed=1, structures=False) for symbol in page.symbols}
    assert not found & set("―√") and set("+-=×÷()[]xa") <= found


def test_synthesize_page_error_names_unknown_symbol():
    with pytest.raises(DataError, match="'§' cannot be written"):
        write_by(0, [["§"]])


def box_centers(page):
    return (page.boxes[:, :2] + page.boxes[:, 2:]) / 2


@pytest.mark.parametrize("number", range(20))
def test_layout_places_exponents_fractions_and_roots(number):
    (x, two), (y, one) = (
        box_centers(write_by(number, [["x", part]])) for part in (Raised("2"), Raised("1", lowered=True))
    )
    assert two[1] < x[1] and one[1] > y[1] and two[0] > x[0] and one[0] > y[0]  # y points downwards
    above, bar, below = write_by(number, [[Fraction("a", "b")]]).boxes
    assert above[3] < below[1] and above[1] < bar[1] and bar[3] < below[3]
    sign, inside = write_by(number, [[Root("5")]]).boxes
    assert sign[0] < inside[0] and sign[1] < inside[1] and sign[2] > (inside[0] + inside[2]) / 2


def test_placed_symbol_transform_scales_before_it_shifts():
    assert Placed(3, 1.0, 2.0, 1.0, 0.5, 4.0).transform(0.5, 10.0, 20.0) == Placed(3, 0.5, 1.0, 10.5, 20.25, 2.0)


STEADY = {"tremor": 0.0, "grid": 0.0, "uneven_steps": 0.0}


def make_writer(**settings):
    return replace(sample_writer(BatchedRng(np.random.default_rng(0))), **settings)


def test_sample_as_tablet_samples_along_strokes_only():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 2.0], [3.0, 4.0]])
    path = Path(points, np.array([0, 0, 1, 1]), np.array([True, False, True, False]), np.zeros(2))
    (first,), (second,) = sample_as_tablet(path, make_writer(size=10.0, step=0.25, **STEADY), np.random.default_rng(0))
    np.testing.assert_allclose(first, [[10, 50], [12.5, 50], [15, 50], [17.5, 50], [20, 50]])
    assert len(second) == 9
    np.testing.assert_allclose(second[[0, 4, 8]], [[40, 30], [40, 20], [40, 10]], atol=1e-9)


def test_sample_as_tablet_rounds_points_to_the_grid():
    path = Path(np.array([[0.0, 0.0], [0.97, 0.31]]), np.array([0, 0]), np.array([True, False]), np.zeros(1))
    settings = STEADY | {"size": 50.0, "step": 0.05, "grid": 0.02}
    ((stroke,),) = sample_as_tablet(path, make_writer(**settings), np.random.default_rng(0))
    np.testing.assert_allclose(stroke, np.rint(stroke), atol=1e-9)


def test_shape_symbols_without_variation_gives_the_glyph_itself():
    faultless = dict.fromkeys(
        ("slant", "own", "own_ripple", "wobble", "ripple", "turn", "stretch", "overshoot", "hooks", "early_lifts",
         "joins", "breaks", "retraces", "uneven"),
        0.0,
    )  # fmt: skip
    draw = np.random.default_rng(1)
    hand = make_writer(rounding=0, aspect=1.0, faithful=1.0, **faultless)
    path = shape_symbols(["7"], hand, draw, BatchedRng(draw))
    curves = [way.curve @ way.points for way in list_ways("7")]
    moved = [curve for curve in curves if curve.shape == path.points.shape]
    assert min(np.abs(np.diff(curve, axis=0) - np.diff(path.points, axis=0)).max() for curve in moved) < 1e-9


def test_shape_symbols_joins_and_breaks_strokes_at_the_rates_of_the_writer():
    def count_strokes(label, **settings):
        draw = np.random.default_rng(2)
        hand = make_writer(**(dict.fromkeys(("joins", "breaks", "retraces", "early_lifts"), 0.0) | settings))
        return int(shape_symbols([label] * 40, hand, draw, BatchedRng(draw)).starts.sum())

    baseline = count_strokes("H")
    assert baseline > 80 and count_strokes("H", joins=1.0) == 40 and count_strokes("H", retraces=1.0) == 2 * baseline
    assert count_strokes("c") == 40 < count_strokes("c", breaks=1.0) <= 80
    assert count_strokes("÷", joins=1.0) == 120  # its parts do not touch


@pytest.mark.parametrize("number", range(10))
def test_layout_makes_brackets_enclose_their_content(number):
    opening, *inside, closing = write_by(number, [["(", Fraction("a", "b"), ")"]]).boxes
    inside = np.array(inside)
    for bracket in (opening, closing):
        tall = bracket[3] - bracket[1]
        assert tall > 0.6 * (inside[:, 3].max() - inside[:, 1].min())
    assert opening[0] < inside[:, 0].min() and closing[2] > inside[:, 2].max()


def test_layout_without_randomness_matches_hand_computed_positions():
    class MidpointRng(BatchedRng):
        def sample_fraction(self):
            return 0.5

    hand = make_writer(spacing=0.2, airy=2.0, parted=1.5, slope=0.0, aligned=False)
    boxes = [(0.0, 0.0, 0.5, 1.0), (0.1, 0.3, 0.6, 0.5), (0.0, 0.0, 0.5, 1.0)]
    dice = MidpointRng(np.random.default_rng(0))
    across, up, x, y, _ = compute_layout([["x", "=", "3"]], boxes, [0.0] * 3, hand, dice).T
    assert across.tolist() == up.tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_allclose(x, [0.0, 0.5 + 0.6 - 0.1, 1.6 + 0.6])  # gaps of 0.2 × 2.0 × 1.5
    np.testing.assert_allclose(y, -1.0)  # the top of the line is at 0
