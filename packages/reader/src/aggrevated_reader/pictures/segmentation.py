"""From ink to a page: which strokes are one symbol, and in which order people read the symbols."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.parsing.pages import crohme
from aggrevated.parsing.pages.inkml import Ink, parse_inkml, read_inkml_bytes
from aggrevated.parsing.pages.page import NAMELESS, Page, Strokes
from aggrevated.storage import read_prefix
from aggrevated_reader.pages.corrected_files import has_heads, to_confirmed_page
from aggrevated_reader.pictures.binarization import ExtractedInk
from aggrevated_reader.pictures.deskew import estimate_tilt, make_deskew_matrix, rotate_strokes
from aggrevated_reader.pictures.image import ENDINGS, KINDS, is_image, parse_image_ink, read_image_bytes
from aggrevated_reader.pictures.layout import find_lines, sort_reading_order
from aggrevated_reader.pictures.symbol_grouping import group_strokes
from aggrevated_reader.pictures.warnings import find_warnings

__all__ = [
    "SegmentedPage",
    "find_lines",
    "group_into_symbols",
    "group_parts_into_symbols",
    "read_page",
    "segment_file",
    "segment_page",
    "sort_reading_order",
    "to_unlabeled_page",
]  # fmt: skip
TEXT = ", or text (.txt, .conllu)"
START = 12  # bytes of a file that tell what it is


@dataclass(frozen=True)
class SegmentedPage:
    """A page as it was found in a file, and how sure that is."""

    page: Page
    doubts: tuple[str, ...] = ()  # what speaks against it, each in a sentence without a full stop; none is best
    stroke_ids: tuple[tuple[str, ...], ...] = ()  # of each symbol, as an InkML file calls them
    to_picture: Array = field(
        default_factory=lambda: np.eye(3)
    )  # [3, 3]: (x, y, 1) of the page to pixels, times a number

    def map_to_picture(self, points: Array) -> Array:
        """Points [n, 2] of the page as pixels of the picture: the page may have been turned and laid flat."""
        moved = np.column_stack([points, np.ones(len(points))]) @ self.to_picture.T
        pixels: Array = moved[:, :2] / moved[:, 2:]
        return pixels


def read_page(path: Path) -> Page:
    """The page in an InkML file, a picture (PNG, JPEG, WebP) or a PDF, its symbols in reading order.

    Where people have written heads at the symbols, or the file has MathML that there are rules for, that gives order,
    labels and heads; groups of strokes, where there are some, are the symbols. All else comes from geometry: such
    symbols are `?`, if they have no label, and their heads are 0.
    """
    return segment_page(path).page


def segment_page(path: Path) -> SegmentedPage:
    """The page in a file as `read_page` gives it, with what speaks against its having been read right."""
    start = read_prefix(path, START, f"an InkML file, {KINDS} or PDF")
    data = read_image_bytes(path) if _is_pictured(start, str(path)) else read_inkml_bytes(path)
    return segment_file(data, str(path))


def segment_file(data: bytes, name: str, also: str = TEXT) -> SegmentedPage:
    """The page in the bytes of such a file. `name` is as of a file: its ending says what an unclear start may be, and
    messages name it; nothing of that name needs to exist. `also` says what else can be given there."""
    if _is_pictured(data[:START], name, also):
        return _make_segmented_page(Path(name).stem, parse_image_ink(data, name))
    ink = parse_inkml(data, name)
    page = _to_page(ink)
    ids = {id(stroke): called for called, stroke in ink.strokes.items()}
    return SegmentedPage(page, stroke_ids=tuple(tuple(ids[id(stroke)] for stroke in strokes) for strokes in page.ink))


def _is_pictured(start: bytes, name: str, also: str = TEXT) -> bool:
    """Whether a file that starts so is a picture or PDF, and not InkML; a `DataError` if it is none of them."""
    ending = Path(name).suffix.lower()
    if is_image(start) or ending in ENDINGS:
        return True
    if ending == ".inkml" or b"<" in start:
        return False
    raise DataError(f"{name} is neither InkML, {KINDS} nor PDF; give one of these{also}")


def _make_segmented_page(name: str, found: ExtractedInk) -> SegmentedPage:
    """What was found in a picture, level and in reading order."""
    turn = make_deskew_matrix(estimate_tilt(found.parts))
    symbols = group_parts_into_symbols(rotate_strokes(found.parts, turn))
    back = found.to_picture.copy()
    back[:, :2] = back[:, :2] @ turn.T  # its inverse
    return SegmentedPage(to_unlabeled_page(name, symbols), found.doubts + find_warnings(symbols), to_picture=back)


def _to_page(ink: Ink) -> Page:
    if has_heads(ink):
        return to_confirmed_page(ink)
    if ink.math is not None and ink.symbols:
        with suppress(DataError):  # MathML without rules for its heads: the ink is there all the same
            return crohme.build_page(ink)
    if not ink.strokes:
        raise DataError(f"{ink.path}: it has no strokes (<trace>); give a file with ink")
    if not ink.symbols:
        try:
            return to_unlabeled_page(ink.path.stem, group_into_symbols(list(ink.strokes.values())), ink.writer)
        except DataError as error:
            raise DataError(f"{ink.path}: {error}") from error
    symbols = [tuple(ink.strokes[id] for id in symbol.strokes) for symbol in ink.symbols]
    order = sort_reading_order(symbols)
    labels = tuple(crohme.NAMES.get(ink.symbols[i].label, ink.symbols[i].label) or NAMELESS for i in order)
    heads = np.zeros(len(order), np.int64)
    return Page(ink.path.stem, ink.writer, labels, heads, tuple(symbols[i] for i in order))


def to_unlabeled_page(name: str, ink: Sequence[Strokes], writer: str = "") -> Page:
    """A page of which only the ink is known: every symbol is `?`, every head 0."""
    return Page(name, writer, (NAMELESS,) * len(ink), np.zeros(len(ink), np.int64), tuple(ink))


def group_into_symbols(strokes: Sequence[Array]) -> list[Strokes]:
    """The strokes, each [points, 2] with y downwards, as symbols in reading order."""
    return group_parts_into_symbols([(stroke,) for stroke in strokes])


def group_parts_into_symbols(parts: Sequence[Strokes]) -> list[Strokes]:
    """Parts such as `read_image` finds, joined where they are one symbol, in reading order."""
    symbols = [tuple(stroke for part in group for stroke in parts[part]) for group in group_strokes(parts)]
    return [symbols[place] for place in sort_reading_order(symbols)]
