"""Reading order in two dimensions: expressions whose boxes are written by hand, in any order."""

import numpy as np
import pytest

from aggrevated.core.arrays import Array
from aggrevated.parsing.pages.page import Strokes
from aggrevated_reader.pictures.layout import find_columns, find_lines, sort_reading_order


def box(left: float, top: float, right: float, bottom: float) -> Strokes:
    """Return strokes that fill a box; a flat box gives a line."""
    return (np.array([[left, top], [right, top], [right, bottom], [left, bottom], [left, top]], float),)


def bar(left: float, right: float, y: float) -> Strokes:
    return (np.array([[left, y], [right, y]], float),)


def row(count: int, left: float, top: float) -> list[Strokes]:
    return [box(left + 80 * place, top, left + 80 * place + 50, top + 100) for place in range(count)]


EXPRESSIONS: dict[str, list[Strokes]] = {  # each in its reading order
    "a base, its exponent, what follows": [
        box(0, 50, 50, 150), box(60, 10, 95, 70), bar(130, 190, 100), box(230, 50, 280, 150),
    ],
    "a numerator, the bar, the denominator": [
        box(0, 100, 50, 200), *row(2, 120, 20), bar(100, 270, 150), box(160, 180, 210, 280), box(320, 100, 370, 200),
    ],
    "an exponent in a numerator": [
        box(20, 40, 70, 140), box(75, 10, 105, 60), bar(0, 140, 160), box(40, 180, 90, 280),
    ],
    "a fraction in a fraction": [
        box(60, 0, 110, 80), bar(30, 140, 100), box(60, 120, 110, 200), bar(0, 190, 225), box(70, 250, 120, 350),
    ],
    "a root, and what is under it": [
        (np.array([[0, 100], [20, 150], [50, 0], [260, 0]], float),), *row(2, 70, 30), box(300, 40, 350, 140),
    ],
    "an index before an exponent": [
        box(0, 50, 60, 150), box(66, 130, 96, 180), box(67, 10, 98, 60), box(140, 50, 190, 150),
    ],
    "lines that slope": [*row(4, 0, 0), *row(3, 0, 220)],
}  # fmt: skip


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_sort_reading_order_equals_mathml_order(name: str) -> None:
    ink = EXPRESSIONS[name]
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(len(ink))
        found = [int(shuffled[place]) for place in sort_reading_order([ink[place] for place in shuffled])]
        assert found == list(range(len(ink)))


def test_find_lines_does_not_take_a_minus_for_a_fraction_bar() -> None:
    ink = [*row(3, 0, 0), box(0, 250, 50, 350), bar(70, 130, 300), box(150, 250, 200, 350), *row(3, 0, 500)]
    assert [len(line) for line in find_lines(ink)] == [3, 3, 3]


def test_columns_of_page_are_read_one_after_the_other() -> None:
    ink = [*row(3, 0, 0), *row(2, 0, 200), *row(3, 900, 10), *row(2, 900, 210)]
    assert find_columns(ink) == [[[0, 1, 2], [3, 4]], [[5, 6, 7], [8, 9]]]
    wide = [*row(3, 0, 0), *row(3, 900, 0)]  # a gap in one line does not make columns
    assert len(find_columns(wide)) == 1 and sort_reading_order(wide) == list(range(6))


def test_sort_reading_order_is_a_permutation() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        corners: Array = generator.uniform(0, 600, (generator.integers(1, 30), 2))
        sizes = generator.uniform(1, 150, corners.shape)
        ink = [box(*corner, *(corner + size)) for corner, size in zip(corners, sizes, strict=True)]
        assert sorted(sort_reading_order(ink)) == list(range(len(ink)))
