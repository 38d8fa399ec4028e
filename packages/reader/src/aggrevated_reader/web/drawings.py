"""Drawings: ink comes in, symbols and trees go out; what was corrected is kept as pages to learn from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path

import numpy as np

from aggrevated import __version__
from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.parsing.pages.inkml import MAX_SYMBOLS, check_tree, parse_inkml
from aggrevated.parsing.pages.page import NAMELESS, Page
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
EXAMPLES = 2026  # the seed of pages that are shown to people
# of so many pages the one whose symbols are nearest to that number
TRIED = 4
USUAL = 16


@dataclass(frozen=True)
class ReadDrawing:
    """A drawing as it was read, and as it is after what was said of it."""

    drawing: Drawing
    symbols: tuple[Parts, ...]  # in reading order
    parsed: ParsedPage
    labels: tuple[str, ...]
    heads: Array

    @property
    def page(self) -> Page:
        """With the labels and heads that hold now."""
        return replace(self.parsed.seen.page, symbols=self.labels, heads=self.heads)

    @property
    def transcript(self) -> Transcript:
        return Transcript(self.labels, self.heads, self.parsed.reading.boxes)

    @property
    def pressures(self) -> list[list[Array]]:
        """Of each symbol's strokes."""
        return [[one for part in parts for one in self.drawing.pressures[part]] for parts in self.symbols]

    def export_inkml(self, confirmed: bool) -> bytes:
        """The page as InkML, with labels and heads where these are confirmed."""
        text = self.transcript.text if confirmed else ""
        return to_inkml(self.page, text, labels=confirmed, heads=confirmed, pressures=self.pressures)

    def to_dict(self) -> JsonDict:
        """All that the page shows."""
        facts = self.parsed.to_dict()
        written = self.transcript
        for symbol, parts, label, head in zip(facts["symbols"], self.symbols, self.labels, self.heads, strict=True):
            symbol |= {"parts": list(parts), "read_as": symbol["label"], "read_head": symbol["head"]}
            symbol |= {"label": label, "head": int(head)}
            symbol.pop("strokes", None)
        return facts | {"text": written.text, "latex": written.latex}


class Drawings:
    """What there is behind the page: a reader, and a folder for corrected pages."""

    def __init__(self, reader: PageReader, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise UsageError(
                f"--corrected-pages is {folder}, which is no folder; name one, and it is made when it is needed"
            )
        self.reader = reader
        self.folder = folder

    def warm_up(self) -> None:
        """Read a page that nobody sees: the first one takes seconds, and nobody should wait for it."""
        self.reader.parse_segmented(Path(NAME), SegmentedPage(generate_page(0, EXAMPLES)))

    def describe_state(self) -> JsonDict:
        """What the page has to know before anything is drawn."""
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
        """Its symbols, their labels and heads; what was said of them holds."""
        symbols = drawing.group_symbols()
        if len(symbols) > MAX_SYMBOLS:
            raise DataError(f"there are more than {MAX_SYMBOLS} symbols; write less on one page")
        seen = SegmentedPage(to_unlabeled_page(NAME, [drawing.get_strokes(parts) for parts in symbols]))
        parsed = self.reader.parse_segmented(Path(NAME), seen)
        labels = list(parsed.reading.labels)
        heads = parsed.reading.heads.copy()
        number = {parts: place for place, parts in enumerate(symbols, 1)} | {(): 0}
        for one in drawing.said:
            place = number[one.parts] - 1
            labels[place] = one.label or labels[place]
            if one.head is not None and number[one.head] != place + 1:
                heads[place] = number[one.head]
        return ReadDrawing(drawing, tuple(symbols), parsed, tuple(labels), heads)

    def list_steps(self, drawing: Drawing, confirmed: bool) -> JsonDict:
        """How the page is parsed; with what each transition costs, where its tree is confirmed."""
        read = self.read(drawing)
        if not read.symbols:
            return {"steps": []}
        if confirmed:
            check_tree(read.heads)
        policy, parser = self.reader.reads.make_parser(read.page)
        return {"steps": list_parse_steps(policy, parser, known=confirmed)}

    def export_inkml(self, drawing: Drawing, confirmed: bool) -> bytes:
        """The page as InkML: ink and symbols; labels and heads where somebody has confirmed them."""
        return self.read(drawing).export_inkml(confirmed)

    def keep(self, drawing: Drawing, seen: object) -> JsonDict:
        """Write the page, with the tree that somebody saw and confirmed, into the folder, by a name that is free."""
        read = self.read(drawing)
        if seen != {"labels": list(read.labels), "heads": read.heads.tolist()}:
            raise DataError("that is not the tree that was shown; look at it again, and confirm it")
        data = read.export_inkml(confirmed=True)
        for number in count(self._count_saved_pages() + 1):
            name = f"page-{number:04d}.inkml"
            if write_exclusive(self.folder / name, data):
                return {"name": name, "folder": str(self.folder), "kept": self._count_saved_pages()}
        raise AssertionError("numbers do not end")

    def import_file(self, data: bytes, name: str, width: float, height: float) -> JsonDict:
        """The ink in a picture or InkML as parts of a page of that size, with what the file says of its symbols."""
        seen = segment_file(data, name, also="")
        if not len(seen.page):
            raise DataError(f"{name} has no ink; give a picture or InkML of algebra")
        grouped = bool(seen.stroke_ids) and bool(parse_inkml(data, name).symbols)
        return to_drawing_dict(seen, width, height, grouped)

    def make_example(self, seed: int, width: float, height: float) -> JsonDict:
        """A page that nobody wrote, in a hand of its own."""
        pages = [generate_page(TRIED * seed + number, EXAMPLES) for number in range(TRIED)]
        page = min(pages, key=lambda page: abs(len(page) - USUAL))
        parts = [stroke for strokes in page.ink for stroke in strokes]
        return to_drawing_dict(
            SegmentedPage(to_unlabeled_page(NAME, group_into_symbols(parts)), stroke_ids=((),)), width, height
        )


def to_drawing_dict(seen: SegmentedPage, width: float, height: float, grouped: bool = False) -> JsonDict:
    """The ink of a page as parts of a page of that size; what is known of its symbols is said of them.

    `grouped`: somebody has said which strokes are a symbol.
    """
    page = seen.page
    ink = place_symbols(page.ink, width, height)
    is_pictured = not seen.stroke_ids
    pieces = [[strokes] if is_pictured else [(stroke,) for stroke in strokes] for strokes in ink]
    firsts = np.cumsum([0, *map(len, pieces)]).tolist()
    own = [list(range(first, last)) for first, last in pairwise(firsts)]
    gold = has_gold_heads(page)
    said = [
        {"parts": parts}
        | ({} if label == NAMELESS else {"label": label})
        | ({"head": own[head - 1] if head else []} if gold else {})
        for parts, label, head in zip(own, page.symbols, page.heads.tolist(), strict=True)
        if grouped or label != NAMELESS
    ]
    parts = [[np.round(stroke, 2).tolist() for stroke in part] for piece in pieces for part in piece]
    return {"parts": parts, "said": said, "confirmed": gold, "doubts": list(seen.doubts)}
