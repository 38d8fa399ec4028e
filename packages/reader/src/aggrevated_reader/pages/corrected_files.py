"""Pages whose labels and heads people have confirmed: what an InkML file must say, and folders of such files."""

from pathlib import Path

import numpy as np

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages import crohme
from aggrevated.parsing.pages.inkml import Ink
from aggrevated.parsing.pages.page import NAMELESS, Page

NOT_CONFIRMED = 'it has no heads (<annotation type="head">) and no MathML; correct the page and save it again'


def to_confirmed_page(ink: Ink) -> Page:
    """The page with labels and heads as the file says them, or a `DataError` that says what is missing.

    Heads that are written at the symbols come first; where there are none, MathML gives them, as in CROHME's files.
    """
    if not has_heads(ink):
        if ink.math is None:
            raise DataError(f"{ink.path}: {NOT_CONFIRMED}")
        return crohme.build_page(ink)
    for number, symbol in enumerate(ink.symbols, 1):
        if symbol.label in ("", NAMELESS):
            missing = f"symbol {number} (stroke {symbol.strokes[0]!r}) has a head and no label"
            raise DataError(f"{ink.path}: {missing}; write one into its <traceGroup>")
    labels = tuple(crohme.NAMES.get(symbol.label, symbol.label) for symbol in ink.symbols)
    heads = np.array([symbol.head for symbol in ink.symbols], np.int64)
    strokes = tuple(tuple(ink.strokes[id] for id in symbol.strokes) for symbol in ink.symbols)
    return Page(ink.path.stem, ink.writer, labels, heads, strokes)


def has_heads(ink: Ink) -> bool:
    """Whether the file says at the symbols themselves how they hang together."""
    return any(symbol.head is not None for symbol in ink.symbols)


def read_folder(folder: Path) -> crohme.Folder:
    """The confirmed pages of a folder; one in which there is none is a `DataError`."""
    return crohme.read_files(folder, list_inkml_files(folder), to_confirmed_page)


def list_inkml_files(folder: Path) -> crohme.Files:
    """Its InkML files, as they are now."""
    return crohme.find_inkml_files(folder, "give the folder in which corrected pages were saved")
