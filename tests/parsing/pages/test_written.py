"""Pages by very many hands: deterministic, whole, and with structures where they belong."""

import numpy as np
import pytest

from aggrevated.errors import DataError
from aggrevated.parsing.pages.algebra import Fraction, Raised, Root
from aggrevated.parsing.pages.dice import Dice
from aggrevated.parsing.pages.layout import Placed
from aggrevated.parsing.pages.ways import WAYS, ways
from aggrevated.parsing.pages.writers import writer
from aggrevated.parsing.pages.written import write, written, written_page
from handwriting import is_projective


def bits(page):
    return b"".join(stroke.tobytes() for strokes in page.ink for stroke in strokes)


@pytest.fixture(scope="module")
def pages():
    return written(300, seed=3)


def by(number, lines):
    draw = np.random.default_rng(number)
    return write(lines, writer(Dice(draw)), draw)


def test_every_symbol_has_at_least_two_ways_that_differ():
    assert all(len(set(texts)) == len(texts) >= 2 for texts in WAYS.values())
    assert set("0123456789+-×÷·±/=<>≤≥≠()[]{}.,!√―") | set("abcdefghijklmnopqrstuvwxyz") <= set(WAYS)


@pytest.mark.parametrize("symbol", WAYS)
def test_the_curve_of_a_way_passes_its_points_and_nothing_far_from_them(symbol):
    for way in ways(symbol):
        curve = way.curve @ way.points
        nearest = np.hypot(*(curve[:, None] - way.points[None]).transpose(2, 0, 1)).min(axis=0)
        assert nearest.max() < 1e-9
        assert (curve.min(axis=0) > way.points.min(axis=0) - 0.15).all()
        assert (curve.max(axis=0) < way.points.max(axis=0) + 0.15).all()


def test_pages_are_the_same_whatever_is_written_before_them(pages):
    assert bits(written_page(17, 3)) == bits(pages[17]) != bits(written_page(17, 4))
    assert len({page.writer for page in pages}) == len(pages)


def test_pages_are_whole(pages):
    for page in pages:
        assert 1 <= len(page) <= 30 and is_projective(page.heads)
        assert all(strokes for strokes in page.ink)
        assert all(stroke.ndim == 2 and np.isfinite(stroke).all() for strokes in page.ink for stroke in strokes)
        assert (page.boxes >= 0).all()


def test_without_structures_no_symbol_needs_a_second_dimension():
    found = {symbol for page in written(200, seed=1, structures=False) for symbol in page.symbols}
    assert not found & set("―√") and set("+-=×÷()[]xa") <= found


def test_a_symbol_without_a_way_is_named():
    with pytest.raises(DataError, match="no way to write '§'"):
        by(0, [["§"]])


def middles(page):
    return (page.boxes[:, :2] + page.boxes[:, 2:]) / 2


@pytest.mark.parametrize("number", range(20))
def test_structures_stand_where_they_should(number):
    (x, two), (y, one) = (middles(by(number, [["x", part]])) for part in (Raised("2"), Raised("1", lowered=True)))
    assert two[1] < x[1] and one[1] > y[1] and two[0] > x[0] and one[0] > y[0]  # y goes downwards
    above, bar, below = by(number, [[Fraction("a", "b")]]).boxes
    assert above[3] < below[1] and above[1] < bar[1] and bar[3] < below[3]
    sign, inside = by(number, [[Root("5")]]).boxes
    assert sign[0] < inside[0] and sign[1] < inside[1] and sign[2] > (inside[0] + inside[2]) / 2


def test_a_place_is_scaled_before_it_is_shifted():
    assert Placed(3, 1.0, 2.0, 1.0, 0.5, 4.0).moved(0.5, 10.0, 20.0) == Placed(3, 0.5, 1.0, 10.5, 20.25, 2.0)
