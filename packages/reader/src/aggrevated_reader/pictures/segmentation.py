"""Segmentation of ink into a page: group strokes into symbols, and sort these in reading order."""

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
START = 12  # bytes that identify the format of a file


@dataclass(frozen=True)
class SegmentedPage:
    """Page that was found in a file, with doubts about it.

    Args:
        page: The page.
        doubts: Reasons why the page may be misread, each a clause.
        stroke_ids: The ids of each symbol's strokes in an InkML file; empty for pictures.
        to_picture: The homography [3, 3] from (x, y, 1) of the page to pixels of the picture.
    """

    page: Page
    doubts: tuple[str, ...] = ()
    stroke_ids: tuple[tuple[str, ...], ...] = ()
    to_picture: Array = field(default_factory=lambda: np.eye(3))

    def map_to_picture(self, points: Array) -> Array:
        """Return points [n, 2] of the page as pixels of the picture, which may be rotated or tilted."""
        moved = np.column_stack([points, np.ones(len(points))]) @ self.to_picture.T
        pixels: Array = moved[:, :2] / moved[:, 2:]
        return pixels


def read_page(path: Path) -> Page:
    """Return the page in an InkML file, a picture or a PDF, with its symbols in reading order.

    Heads that are written at the symbols, or else MathML with head rules, define order, labels and heads.
    Groups of strokes in the file define the symbols. Everything else comes from geometry: then symbols
    without a label are `?`, and all heads are 0.

    Args:
        path: An InkML file, a picture (PNG, JPEG, WebP) or a PDF.

    Raises:
        DataError: The file cannot be read as a page.
    """
    return segment_page(path).page


def segment_page(path: Path) -> SegmentedPage:
    """Return the page in a file as `read_page` does, with doubts about it."""
    start = read_prefix(path, START, f"an InkML file, {KINDS} or PDF")
    data = read_image_bytes(path) if _is_pictured(start, str(path)) else read_inkml_bytes(path)
    return segment_file(data, str(path))


def segment_file(data: bytes, name: str, also: str = TEXT) -> SegmentedPage:
    """Return the page in the bytes of a file, with doubts about it.

    Args:
        data: The bytes of an InkML file, a picture or a PDF.
        name: The name of the file, whose ending decides unclear cases, and which messages use; it need not
            exist.
        also: What else the message for an unknown format offers.

    Raises:
        DataError: The bytes cannot be read as a page.
    """
    if _is_pictured(data[:START], name, also):
        return _make_segmented_page(Path(name).stem, parse_image_ink(data, name))
    ink = parse_inkml(data, name)
    page = _to_page(ink)
    ids = {id(stroke): stroke_id for stroke_id, stroke in ink.strokes.items()}
    return SegmentedPage(page, stroke_ids=tuple(tuple(ids[id(stroke)] for stroke in strokes) for strokes in page.ink))


def _is_pictured(start: bytes, name: str, also: str = TEXT) -> bool:
    """Return whether a file is a picture or PDF, not InkML; raise a DataError if it is neither."""
    ending = Path(name).suffix.lower()
    if is_image(start) or ending in ENDINGS:
        return True
    if ending == ".inkml" or b"<" in start:
        return False
    raise DataError(f"{name} is neither InkML, {KINDS} nor PDF; give one of these{also}")


def _make_segmented_page(name: str, ink: ExtractedInk) -> SegmentedPage:
    """Return the ink of a picture as a page, leveled and in reading order."""
    rotation = make_deskew_matrix(estimate_tilt(ink.parts))
    symbols = group_parts_into_symbols(rotate_strokes(ink.parts, rotation))
    to_picture = ink.to_picture.copy()
    to_picture[:, :2] = to_picture[:, :2] @ rotation.T  # its inverse
    return SegmentedPage(to_unlabeled_page(name, symbols), ink.doubts + find_warnings(symbols), to_picture=to_picture)


def _to_page(ink: Ink) -> Page:
    if has_heads(ink):
        return to_confirmed_page(ink)
    if ink.math is not None and ink.symbols:
        with suppress(DataError):  # MathML without head rules: use the ink only
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
    """Return a page of ink only: every symbol is `?`, every head 0."""
    return Page(name, writer, (NAMELESS,) * len(ink), np.zeros(len(ink), np.int64), tuple(ink))


def group_into_symbols(strokes: Sequence[Array]) -> list[Strokes]:
    """Return strokes, each [points, 2] with y downwards, grouped into symbols in reading order."""
    return group_parts_into_symbols([(stroke,) for stroke in strokes])


def group_parts_into_symbols(parts: Sequence[Strokes]) -> list[Strokes]:
    """Return parts, such as those of `read_image`, grouped into symbols in reading order."""
    symbols = [tuple(stroke for part in group for stroke in parts[part]) for group in group_strokes(parts)]
    return [symbols[index] for index in sort_reading_order(symbols)]
