"""Generated pages that vary widely in symbols, ways of writing, writers and structures.

The pages of `aggrevated.parsing.pages.handwriting` are those of Table 1 and do not change; the pages of this
module train readers of real ink. The number of a page and the seed determine the page completely.
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

_PAGE = 105  # stream of random numbers


def generate_pages(count: int, seed: int, structures: bool = True) -> list[Page]:
    """Return generated pages, each by another writer.

    Args:
        count: Number of pages.
        seed: Seed of all pages.
        structures: Whether there are exponents, indices, fractions and roots.
    """
    return [generate_page(number, seed, structures) for number in range(count)]


def generate_page(number: int, seed: int, structures: bool = True) -> Page:
    """Return the generated page of that number."""
    rng = np.random.default_rng([_PAGE, seed, number])
    dice = BatchedRng(rng)
    lines = sample_lines(dice, structures)
    return synthesize_page(lines, sample_writer(dice), rng, f"written-{seed}-{number}")


def synthesize_page(
    lines: Sequence[Sequence[Token]], hand: Writer, draw: np.random.Generator, name: str = "page"
) -> Page:
    """Return a page with these lines in this handwriting.

    Raises:
        DataError: The pen cannot write a symbol.
    """
    heads = parse_expression_heads(lines)
    labels = tuple(symbol for line in lines for symbol in iter_symbols(line))
    for label in labels:
        if label not in WAYS:
            raise DataError(f"{label!r} cannot be written; use only {' '.join(WAYS)}")
    dice = BatchedRng(draw)
    path = shape_symbols(labels, hand, draw, dice)
    layout = compute_layout(lines, path.compute_boxes().tolist(), path.knees.tolist(), hand, dice)
    ink = sample_as_tablet(path.move_symbols(layout), hand, draw)
    return Page(name, name, labels, heads, ink)
