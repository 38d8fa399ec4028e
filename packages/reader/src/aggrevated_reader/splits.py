"""Pages for a reader: generated ones in very many hands, and real ink beside them."""

from pathlib import Path

import numpy as np

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.splits import Split, drop_long_pages, exclude_strings, load_crohme_split
from aggrevated_reader.pages.generated import generate_pages
from aggrevated_reader.pictures.rasterize_roundtrip import rasterize_and_trace

_PICTURE_STREAM = 14  # what a random number is for
HELD = 500  # generated pages to choose on, and to report, at most


def load_reader_split(folder: str, sets: int, seed: int, pictured: float) -> Split:
    """What a reader learns from: pages in very many generated hands, with exponents, fractions and roots.

    Real ink of a folder stands beside them: validation and test are then real, too, and half of validation is not. A
    share of the pages to learn from looks as ink does that was read from a picture.
    """
    others = min(max(sets // 20, 1), HELD)
    train, validation, test = (
        generate_pages(count, 3 * seed + part) for part, count in enumerate((sets, others, others))
    )
    rewriting: list[Page] = []
    if folder:
        ink = load_crohme_split(Path(folder), seed, core=False)
        rewriting = ink.train
        test = ink.test
        validation = ink.validation + validation[: len(ink.validation)]
    train, rewriting = (
        exclude_strings(drop_long_pages(own), drop_long_pages(validation + test))
        for own in (train + rewriting, rewriting)
    )
    generator = np.random.default_rng([_PICTURE_STREAM, seed])
    seen = [try_rasterize_and_trace(page, generator) if generator.random() < pictured else page for page in train]
    return Split(seen, drop_long_pages(validation), drop_long_pages(test), single_lines=True, rewriting=rewriting)


def try_rasterize_and_trace(page: Page, generator: np.random.Generator) -> Page:
    """The page as it comes back from a picture; as it is, where that would not be read."""
    try:
        return rasterize_and_trace(page, generator)
    except DataError:
        return page
