"""Splits of the pages of a reader: generated pages by very many writers, optionally with real ink."""

from pathlib import Path

import numpy as np

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.page import Page
from aggrevated.parsing.splits import Split, drop_long_pages, exclude_strings, load_crohme_split
from aggrevated_reader.pages.generated import generate_pages
from aggrevated_reader.pictures.rasterize_roundtrip import rasterize_and_trace

_PICTURE_STREAM = 14  # of random numbers
HELD = 500  # generated pages to validate on, and to test on, at most


def load_reader_split(folder: str, sets: int, seed: int, pictured: float) -> Split:
    """Return the split of generated pages and, if `folder` is not empty, of the real ink in it.

    With real ink, the test pages are real, and so is half of validation.

    Args:
        folder: CROHME's folder with train/ and dev/ in it; empty for generated pages only.
        sets: Number of generated pages to learn from.
        seed: Seed of the pages.
        pictured: Share of the training pages whose ink looks as if it was read from a picture, 0 to 1.

    Returns:
        The split, without long pages and without training pages that repeat a validation or test page.
    """
    held_out_count = min(max(sets // 20, 1), HELD)
    train, validation, test = (
        generate_pages(count, 3 * seed + part) for part, count in enumerate((sets, held_out_count, held_out_count))
    )
    rewriting: list[Page] = []
    if folder:
        ink = load_crohme_split(Path(folder), seed, core=False)
        rewriting = ink.train
        test = ink.test
        validation = ink.validation + validation[: len(ink.validation)]
    train, rewriting = (
        exclude_strings(drop_long_pages(pages), drop_long_pages(validation + test))
        for pages in (train + rewriting, rewriting)
    )
    rng = np.random.default_rng([_PICTURE_STREAM, seed])
    training_pages = [try_rasterize_and_trace(page, rng) if rng.random() < pictured else page for page in train]
    return Split(
        training_pages, drop_long_pages(validation), drop_long_pages(test), single_lines=True, rewriting=rewriting
    )


def try_rasterize_and_trace(page: Page, generator: np.random.Generator) -> Page:
    """Return the page as if read from a picture, or the page itself if that picture is unreadable."""
    try:
        return rasterize_and_trace(page, generator)
    except DataError:
        return page
