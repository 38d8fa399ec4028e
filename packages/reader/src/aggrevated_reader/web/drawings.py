"""Drawings: reading their symbols and trees, and saving corrected pages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path

import numpy as np

from aggrevated import __version__
from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.parsing.pages.inkml import MAX_SYMBOLS, parse_inkml
from aggrevated.parsing.pages.page import NAMELESS, Page
from aggrevated.parsing.pages.trees import check_tree
from aggrevated.storage import JsonDict, reraise_storage_errors, write_exclusive
from aggrevated_reader.page_reader import LoadedReader
from aggrevated_reader.pages.generated import generate_page
from aggrevated_reader.pages.inkml_writing import to_inkml
from aggrevated_reader.pages_report import PageReader, ParsedPage
from aggrevated_reader.parse_steps import has_gold_heads, list_parse_steps
from aggrevated_reader.pictures.segmentation import SegmentedPage, group_into_symbols, segment_file, to_unlabeled_page
from aggrevated_reader.transcript import Transcript
from aggrevated_reader.web.ink import Drawing, Parts, place_symbols

NAME = "drawing"
EXAMPLES = 2026  # seed of example pages
TRIED = 4  # pages, of which an example is the one that is nearest to USUAL symbols
USUAL = 16


@dataclass(frozen=True)
class ReadDrawing:
    """A drawing with the reader's result and the user's corrections.

    Args:
        drawing: The ink and the corrections.
        symbols: The parts of each symbol, in reading order.
        parsed: The reader's result.
        labels: The corrected labels.
        heads: The corrected heads, int [n].
    """

    drawing: Drawing
    symbols: tuple[Parts, ...]
    parsed: ParsedPage
    labels: tuple[str, ...]
    heads: Array

    @property
    def page(self) -> Page:
        """The page with the corrected labels and heads."""
        return replace(self.parsed.seen.page, symbols=self.labels, heads=self.heads)

    @property
    def transcript(self) -> Transcript:
        """The corrected symbols as an expression."""
        return Transcript(self.labels, self.heads, self.parsed.reading.boxes)

    @property
    def pressures(self) -> list[list[Array]]:
        """The pressures of each symbol's strokes."""
        return [[pressures for part in parts for pressures in self.drawing.pressures[part]] for parts in self.symbols]

    def export_inkml(self, confirmed: bool) -> bytes:
        """Return the page as InkML, with labels and heads if they are confirmed."""
        text = self.transcript.text if confirmed else ""
        return to_inkml(self.page, text, labels=confirmed, heads=confirmed, pressures=self.pressures)

    def to_dict(self) -> JsonDict:
        """Return everything that the page displays, for JSON."""
        result = self.parsed.to_dict()
        transcript = self.transcript
        for symbol, parts, label, head in zip(result["symbols"], self.symbols, self.labels, self.heads, strict=True):
            symbol |= {"parts": list(parts), "read_as": symbol["label"], "read_head": symbol["head"]}
            symbol |= {"label": label, "head": int(head)}
            symbol.pop("strokes", None)
        return result | {"text": transcript.text, "latex": transcript.latex}


class Drawings:
    """Service behind the page: a reader, and a folder for corrected pages.

    Args:
        reader: The reader of pages.
        folder: The folder to save corrected pages in; created with the first page.

    Raises:
        UsageError: The path exists and is not a folder.
    """

    def __init__(self, reader: PageReader, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise UsageError(
                f"--corrected-pages is {folder}, which is not a folder; give a folder, which may be a new one"
            )
        self.reader = reader
        self.folder = folder

    def warm_up(self) -> None:
        """Read a hidden page, because the first page takes seconds."""
        self.reader.parse_segmented(Path(NAME), SegmentedPage(generate_page(0, EXAMPLES)))

    def describe_state(self) -> JsonDict:
        """Return what the page needs before the first drawing, for JSON."""
        reads = self.reader.reads
        names = reads.policy.classes if isinstance(reads, LoadedReader) else ()
        return {
            "version": __version__,
            "labels": list(names),
            "folder": str(self.folder),
            "kept": self._count_saved_pages(),
        }

    def _count_saved_pages(self) -> int:
        with reraise_storage_errors(self.folder):
            return sum(1 for _ in self.folder.glob("*.inkml")) if self.folder.is_dir() else 0

    def read(self, drawing: Drawing) -> ReadDrawing:
        """Return the symbols of a drawing with labels and heads; the user's corrections take precedence."""
        symbols = drawing.group_symbols()
        if len(symbols) > MAX_SYMBOLS:
            raise DataError(f"there are more than {MAX_SYMBOLS} symbols; write less on one page")
        segmented = SegmentedPage(to_unlabeled_page(NAME, [drawing.get_strokes(parts) for parts in symbols]))
        parsed = self.reader.parse_segmented(Path(NAME), segmented)
        labels = list(parsed.reading.labels)
        heads = parsed.reading.heads.copy()
        number = {parts: index for index, parts in enumerate(symbols, 1)} | {(): 0}
        for correction in drawing.corrections:
            index = number[correction.parts] - 1
            labels[index] = correction.label or labels[index]
            if correction.head is not None and number[correction.head] != index + 1:
                heads[index] = number[correction.head]
        return ReadDrawing(drawing, tuple(symbols), parsed, tuple(labels), heads)

    def list_steps(self, drawing: Drawing, confirmed: bool) -> JsonDict:
        """Return the parse of a drawing step by step, with costs if its tree is confirmed."""
        read = self.read(drawing)
        if not read.symbols:
            return {"steps": []}
        if confirmed:
            check_tree(read.heads)
        policy, parser = self.reader.reads.make_parser(read.page)
        return {"steps": list_parse_steps(policy, parser, known=confirmed)}

    def export_inkml(self, drawing: Drawing, confirmed: bool) -> bytes:
        """Return the drawing as InkML: ink and symbols, with labels and heads if they are confirmed."""
        return self.read(drawing).export_inkml(confirmed)

    def keep(self, drawing: Drawing, displayed: object) -> JsonDict:
        """Save a page with its confirmed tree in the folder, under a new name.

        Args:
            drawing: The ink and the corrections.
            displayed: The labels and heads that the browser displayed when the user confirmed the tree.

        Returns:
            The name of the file, the folder, and the number of saved pages, for JSON.

        Raises:
            DataError: The tree differs from the displayed one.
        """
        read = self.read(drawing)
        if displayed != {"labels": list(read.labels), "heads": read.heads.tolist()}:
            raise DataError("the confirmed tree is not the displayed one; check the tree again, and confirm it")
        data = read.export_inkml(confirmed=True)
        for number in count(self._count_saved_pages() + 1):
            name = f"page-{number:04d}.inkml"
            if write_exclusive(self.folder / name, data):
                return {"name": name, "folder": str(self.folder), "kept": self._count_saved_pages()}
        raise AssertionError("numbers do not end")

    def import_file(self, data: bytes, name: str, width: float, height: float) -> JsonDict:
        """Return the ink of a picture or InkML, scaled to the page, and the symbols that the file defines."""
        segmented = segment_file(data, name, also="")
        if not len(segmented.page):
            raise DataError(f"{name} has no ink; give a picture or InkML of algebra")
        grouped = bool(segmented.stroke_ids) and bool(parse_inkml(data, name).symbols)
        return to_drawing_dict(segmented, width, height, grouped)

    def make_example(self, seed: int, width: float, height: float) -> JsonDict:
        """Return a generated page by a generated writer."""
        pages = [generate_page(TRIED * seed + number, EXAMPLES) for number in range(TRIED)]
        page = min(pages, key=lambda page: abs(len(page) - USUAL))
        parts = [stroke for strokes in page.ink for stroke in strokes]
        return to_drawing_dict(
            SegmentedPage(to_unlabeled_page(NAME, group_into_symbols(parts)), stroke_ids=((),)), width, height
        )


def to_drawing_dict(segmented: SegmentedPage, width: float, height: float, grouped: bool = False) -> JsonDict:
    """Return the ink of a page as parts that are scaled to the size of the browser's page, for JSON.

    Args:
        segmented: The page.
        width: The width of the browser's page, in pixels.
        height: The height of the browser's page, in pixels.
        grouped: Whether the file defines which strokes are a symbol.

    Returns:
        The parts, the known labels and heads of symbols, whether the tree is confirmed, and doubts.
    """
    page = segmented.page
    ink = place_symbols(page.ink, width, height)
    is_pictured = not segmented.stroke_ids
    groups = [[strokes] if is_pictured else [(stroke,) for stroke in strokes] for strokes in ink]
    firsts = np.cumsum([0, *map(len, groups)]).tolist()
    part_numbers = [list(range(first, last)) for first, last in pairwise(firsts)]
    gold = has_gold_heads(page)
    corrections = [
        {"parts": parts}
        | ({} if label == NAMELESS else {"label": label})
        | ({"head": part_numbers[head - 1] if head else []} if gold else {})
        for parts, label, head in zip(part_numbers, page.symbols, page.heads.tolist(), strict=True)
        if grouped or label != NAMELESS
    ]
    parts = [[np.round(stroke, 2).tolist() for stroke in part] for group in groups for part in group]
    return {"parts": parts, "said": corrections, "confirmed": gold, "doubts": list(segmented.doubts)}
