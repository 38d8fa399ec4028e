"""Pages as very many people might have written them: wide in symbols, ways, hands and structures.

`handwriting` is what Table 1 is made of, and stays as it is; this is what a reader of real ink learns from. A page's
number and the seed fix everything on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.algebra import Token, parse_expression_heads
from aggrevated.parsing.pages.page import Page
from aggrevated_reader.pages.batched_rng import BatchedRng
from aggrevated_reader.pages.expressions import iter_symbols, sample_lines
from aggrevated_reader.pages.glyphs import WAYS
from aggrevated_reader.pages.layout import compute_layout
from aggrevated_reader.pages.pen import shape_symbols
from aggrevated_reader.pages.tablet import sample_as_tablet
from aggrevated_reader.pages.writers import Writer, sample_writer

_PAGE = 105  # a stream of random numbers that meets no other one


def generate_pages(count: int, seed: int, structures: bool = True) -> list[Page]:
    """So many pages, each by a writer of its own; with exponents, indices, fractions and roots, if wanted."""
    return [generate_page(number, seed, structures) for number in range(count)]


def generate_page(number: int, seed: int, structures: bool = True) -> Page:
    """One of these pages."""
    draw = np.random.default_rng([_PAGE, seed, number])
    dice = BatchedRng(draw)
    lines = sample_lines(dice, structures)
    return synthesize_page(lines, sample_writer(dice), draw, f"written-{seed}-{number}")


def synthesize_page(
    lines: Sequence[Sequence[Token]], hand: Writer, draw: np.random.Generator, name: str = "page"
) -> Page:
    """The lines in that hand."""
    heads = parse_expression_heads(lines)
    labels = tuple(symbol for line in lines for symbol in iter_symbols(line))
    for label in labels:
        if label not in WAYS:
            raise DataError(f"there is no way to write {label!r}: the pen knows {' '.join(WAYS)}")
    dice = BatchedRng(draw)
    path = shape_symbols(labels, hand, draw, dice)
    places = compute_layout(lines, path.compute_boxes().tolist(), path.knees.tolist(), hand, dice)
    ink = sample_as_tablet(path.move_symbols(places), hand, draw)
    return Page(name, name, labels, heads, ink)
