"""Pages whose labels and heads users have confirmed: their InkML files, and folders of them."""

from pathlib import Path

import numpy as np

from aggrevated.core.errors import DataError
from aggrevated.parsing.pages import crohme
from aggrevated.parsing.pages.inkml import Ink
from aggrevated.parsing.pages.page import NAMELESS, Page

NOT_CONFIRMED = 'it has no heads (<annotation type="head">) and no MathML; correct the page and save it again'


def to_confirmed_page(ink: Ink) -> Page:
    """Return the page with the labels and heads of its file.

    Heads that are written at the symbols take precedence; without them, MathML defines the heads, as in
    CROHME's files.

    Raises:
        DataError: The file lacks heads or labels.
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
    """Return whether the file has heads at the symbols themselves."""
    return any(symbol.head is not None for symbol in ink.symbols)


def read_folder(folder: Path) -> crohme.Folder:
    """Read the confirmed pages of a folder; raise a DataError if it has none."""
    return crohme.read_files(folder, list_inkml_files(folder), to_confirmed_page)


def list_inkml_files(folder: Path) -> crohme.Files:
    """Return the current InkML files of a folder."""
    return crohme.find_inkml_files(folder, "give the folder in which corrected pages were saved")
