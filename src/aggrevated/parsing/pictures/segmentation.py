"""From ink to a page: which strokes are one symbol, and in which order people read the symbols."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import DataError
from aggrevated.files import start_of
from aggrevated.parsing.pages import crohme
from aggrevated.parsing.pages.inkml import Ink, read_inkml
from aggrevated.parsing.pages.page import Page, Strokes
from aggrevated.parsing.pictures.image import is_image, read_image
from aggrevated.parsing.pictures.joining import groups
from aggrevated.parsing.pictures.layout import in_reading_order


def read_page(path: Path) -> Page:
    """The page in an InkML file or a picture (PNG, JPEG), its symbols in reading order.

    Where the file has MathML that there are rules for, it gives order, labels and heads; groups of strokes, where there
    are some, are the symbols. All else comes from geometry: such symbols are `?`, if they have no label, and their
    heads are 0.
    """
    start = start_of(path, 8, "an InkML file or a picture (PNG, JPEG)")
    if is_image(start) or path.suffix.lower() in (".png", ".jpg", ".jpeg"):
        return unparsed(path.stem, symbols_of_parts(read_image(path)))
    if path.suffix.lower() == ".inkml" or b"<" in start:
        return _page_of_ink(read_inkml(path))
    raise DataError(f"{path} is neither InkML nor a picture (PNG, JPEG); give one of these")


def _page_of_ink(ink: Ink) -> Page:
    if ink.math is not None and ink.symbols:
        with suppress(DataError):  # MathML without rules for its heads: the ink is there all the same
            return crohme.page(ink)
    if not ink.strokes:
        raise DataError(f"{ink.path}: it has no strokes (<trace>); give a file with ink")
    if not ink.symbols:
        try:
            return unparsed(ink.path.stem, symbols_of(list(ink.strokes.values())), ink.writer)
        except DataError as error:
            raise DataError(f"{ink.path}: {error}") from error
    symbols = [tuple(ink.strokes[id] for id in symbol.strokes) for symbol in ink.symbols]
    order = in_reading_order(symbols)
    labels = tuple(crohme.NAMES.get(ink.symbols[i].label, ink.symbols[i].label) or "?" for i in order)
    heads = np.zeros(len(order), np.int64)
    return Page(ink.path.stem, ink.writer, labels, heads, tuple(symbols[i] for i in order))


def unparsed(name: str, ink: Sequence[Strokes], writer: str = "") -> Page:
    """A page of which only the ink is known: every symbol is `?`, every head 0."""
    return Page(name, writer, ("?",) * len(ink), np.zeros(len(ink), np.int64), tuple(ink))


def symbols_of(strokes: Sequence[Array]) -> list[Strokes]:
    """The strokes, each [points, 2] with y downwards, as symbols in reading order."""
    return symbols_of_parts([(stroke,) for stroke in strokes])


def symbols_of_parts(parts: Sequence[Strokes]) -> list[Strokes]:
    """Parts such as `read_image` finds, joined where they are one symbol, in reading order."""
    symbols = [tuple(stroke for part in group for stroke in parts[part]) for group in groups(parts)]
    return [symbols[place] for place in in_reading_order(symbols)]
