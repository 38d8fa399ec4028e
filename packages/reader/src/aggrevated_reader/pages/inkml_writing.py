"""Pages as InkML: ink, what its symbols are and how they hang together, as `inkml` reads it again."""

import math
import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.inkml import ROOT, check_tree, parse_inkml
from aggrevated.parsing.pages.page import NAMELESS, Page

NAMESPACE = "http://www.w3.org/2003/InkML"
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
EXACT = 4  # digits of the page's width or height that are kept, and two behind the point at least
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
    """The page as the bytes of an InkML file, or a `DataError` where they could not be read again.

    What nobody has confirmed is left out: with `heads=False` the tree, with `labels=False` (which leaves the tree out,
    too) also what symbols are, with `groups=False` all but the strokes. `text` is the expression as people type it.
    `pressures` are, for each symbol and each of its strokes, numbers [points], written as the channel F.
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
    parse_inkml(data, page.name)  # nothing is kept that nobody could read
    return data


def _check_gold(page: Page) -> None:
    """That every symbol has a label, and the heads make a tree."""
    for number, label in enumerate(page.symbols, 1):
        if label.strip() in ("", NAMELESS):
            raise DataError(f"symbol {number} has no label; give it one, or save the page as not confirmed")
    check_tree(page.heads)


def _iter_annotations(notes: dict[str, str]) -> Iterator[str]:
    """An <annotation> of each type that says something."""
    return (f'<annotation type="{kind}">{_to_xml_text(said)}</annotation>' for kind, said in notes.items() if said)


def _to_xml_text(said: str) -> str:
    """What was said, such that no character of it is markup."""
    if strange := NOT_XML.search(said):
        raise DataError(f"{said[:40]!r} holds {strange[0]!r}, which no XML can; remove it")
    return escape(said)


def _format(with_force: bool) -> str:
    names = ("X", "Y", "F") if with_force else ("X", "Y")
    channels = "".join(f'<channel name="{name}" type="decimal"/>' for name in names)
    return f"<traceFormat>{channels}</traceFormat>"


def _iter_traces(page: Page, force: Sequence[Array] | None) -> Iterator[str]:
    """A <trace> for each stroke, numbered as they come."""
    strokes = [stroke for strokes in page.ink for stroke in strokes]
    if force is not None and [len(stroke) for stroke in force] != [len(stroke) for stroke in strokes]:
        raise DataError("there are not as many pressures as points; give one for each")
    decimals = _count_decimals(strokes)
    for number, stroke in enumerate(strokes, 1):
        rows = stroke if force is None else np.column_stack([stroke, force[number - 1]])
        points = ", ".join(" ".join(_format_number(value, decimals) for value in row) for row in rows.tolist())
        yield f'<trace id="t{number}">{points}</trace>'


def _count_decimals(strokes: Sequence[Array]) -> int:
    """How many digits behind the point keep the ink as it is."""
    if not strokes:
        return 2
    points = np.concatenate(strokes)
    size = float((points.max(axis=0) - points.min(axis=0)).max())
    if not 0 < size < math.inf:
        return 2
    return min(max(2, EXACT - math.floor(math.log10(size))), MAX_DECIMALS)


def _format_number(value: float, decimals: int) -> str:
    """Rounded, without zeros that say nothing."""
    said = f"{value:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if said == "-0" else said


def _iter_groups(page: Page, labels: bool, heads: bool) -> Iterator[str]:
    """A <traceGroup> for each symbol, in reading order."""
    stroke = 0
    for number, (label, head, strokes) in enumerate(zip(page.symbols, page.heads, page.ink, strict=True), 1):
        notes = {"truth": label if labels and label != NAMELESS else ""}
        notes["head"] = (f"s{head}" if head else ROOT) if heads else ""
        views = "".join(f'<traceView traceDataRef="t{stroke + place}"/>' for place in range(1, len(strokes) + 1))
        stroke += len(strokes)
        yield f'<traceGroup xml:id="s{number}">{"".join(_iter_annotations(notes))}{views}</traceGroup>'
