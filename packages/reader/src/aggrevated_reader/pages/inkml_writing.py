"""Export of pages as InkML: ink, labels and heads, in the format that `inkml` reads."""

import math
import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.inkml import ROOT, parse_inkml
from aggrevated.parsing.pages.page import NAMELESS, Page
from aggrevated.parsing.pages.trees import check_tree

NAMESPACE = "http://www.w3.org/2003/InkML"
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
EXACT = 4  # significant digits of the page's width or height; there are at least two decimals
MAX_DECIMALS = 12


def to_inkml(
    page: Page,
    text: str = "",
    *,
    groups: bool = True,
    labels: bool = True,
    heads: bool = True,
    pressures: Sequence[Sequence[Array]] | None = None,
) -> bytes:
    """Return the page as the bytes of an InkML file.

    Set `heads`, `labels` and `groups` to False to leave out what is not confirmed.

    Args:
        page: The page.
        text: The expression as plain text.
        groups: Whether to write which strokes are a symbol.
        labels: Whether to write labels; needs `groups`.
        heads: Whether to write heads; needs `labels`.
        pressures: For each symbol and each of its strokes, numbers [points] for the channel F, or None.

    Raises:
        DataError: The file could not be read again, or a label or head is missing.
    """
    labels = labels and groups
    heads = heads and labels
    if heads:
        _check_gold(page)
    force = [stroke for strokes in pressures for stroke in strokes] if pressures is not None else None
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<ink xmlns="{NAMESPACE}">',
        *_iter_annotations({"writer": page.writer, "truth": text}),
        _format(force is not None),
        *_iter_traces(page, force),
        *(_iter_groups(page, labels, heads) if groups else ()),
        "</ink>\n",
    ]
    data = "\n".join(lines).encode()
    parse_inkml(data, page.name)  # raises a DataError if the file could not be read again
    return data


def _check_gold(page: Page) -> None:
    """Raise a DataError unless every symbol has a label and the heads are a tree."""
    for number, label in enumerate(page.symbols, 1):
        if label.strip() in ("", NAMELESS):
            raise DataError(f"symbol {number} has no label; give it one, or save the page as not confirmed")
    check_tree(page.heads)


def _iter_annotations(notes: dict[str, str]) -> Iterator[str]:
    """Yield an <annotation> of each type with a non-empty text."""
    return (f'<annotation type="{kind}">{_to_xml_text(text)}</annotation>' for kind, text in notes.items() if text)


def _to_xml_text(text: str) -> str:
    """Return the text with markup escaped; raise a DataError for characters that XML cannot hold."""
    if match := NOT_XML.search(text):
        raise DataError(f"{text[:40]!r} holds {match[0]!r}, which XML does not allow; remove it")
    return escape(text)


def _format(with_force: bool) -> str:
    names = ("X", "Y", "F") if with_force else ("X", "Y")
    channels = "".join(f'<channel name="{name}" type="decimal"/>' for name in names)
    return f"<traceFormat>{channels}</traceFormat>"


def _iter_traces(page: Page, force: Sequence[Array] | None) -> Iterator[str]:
    """Yield a <trace> for each stroke, numbered from 1."""
    strokes = [stroke for strokes in page.ink for stroke in strokes]
    if force is not None and [len(stroke) for stroke in force] != [len(stroke) for stroke in strokes]:
        raise DataError("the pressures do not match the points; give one pressure for each point")
    decimals = _count_decimals(strokes)
    for number, stroke in enumerate(strokes, 1):
        rows = stroke if force is None else np.column_stack([stroke, force[number - 1]])
        points = ", ".join(" ".join(_format_number(value, decimals) for value in row) for row in rows.tolist())
        yield f'<trace id="t{number}">{points}</trace>'


def _count_decimals(strokes: Sequence[Array]) -> int:
    """Return the number of decimals that keeps the ink exact enough."""
    if not strokes:
        return 2
    points = np.concatenate(strokes)
    size = float((points.max(axis=0) - points.min(axis=0)).max())
    if not 0 < size < math.inf:
        return 2
    return min(max(2, EXACT - math.floor(math.log10(size))), MAX_DECIMALS)


def _format_number(value: float, decimals: int) -> str:
    """Return the rounded number without trailing zeros."""
    text = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _iter_groups(page: Page, labels: bool, heads: bool) -> Iterator[str]:
    """Yield a <traceGroup> for each symbol, in reading order."""
    stroke = 0
    for number, (label, head, strokes) in enumerate(zip(page.symbols, page.heads, page.ink, strict=True), 1):
        notes = {"truth": label if labels and label != NAMELESS else ""}
        notes["head"] = (f"s{head}" if head else ROOT) if heads else ""
        views = "".join(f'<traceView traceDataRef="t{stroke + offset}"/>' for offset in range(1, len(strokes) + 1))
        stroke += len(strokes)
        yield f'<traceGroup xml:id="s{number}">{"".join(_iter_annotations(notes))}{views}</traceGroup>'
