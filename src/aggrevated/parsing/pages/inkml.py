"""Reader of InkML files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.parsing.pages.trees import check_tree
from aggrevated.storage import read_limited

MAX_BYTES = 1 << 20
MAX_ELEMENTS = 10_000
MAX_DEPTH = 128
MAX_STROKES = 1_000
MAX_POINTS = 50_000
MAX_SYMBOLS = 300
MAX_COORDINATE = 1e7
MAX_TEXT = 80  # characters of an id, a label or a writer
TOO_LARGE = f"{MAX_BYTES:,} bytes; one expression needs far less: split the file"

ENCODINGS = ("utf-8", "us-ascii", "ascii", "iso-8859-1", "utf-16")  # decoded by the XML parser itself
NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,4})?", re.ASCII)
ROOT = "ROOT"  # id of the root's head
XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


@dataclass(frozen=True)
class Node:
    """MathML element: its name without namespace, its text before any child, its id and its children."""

    tag: str
    text: str
    id: str
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Group:
    """Symbol of an InkML file.

    Attributes:
        label: label of the symbol; may be empty.
        strokes: ids of its strokes.
        href: id of its MathML element; may be empty.
        head: number of its head, 0 for ROOT; None if the file has no heads. With heads, symbols are in
            reading order.
    """

    label: str
    strokes: tuple[str, ...]
    href: str
    head: int | None = None


@dataclass(frozen=True)
class Ink:
    """Contents of an InkML file.

    Attributes:
        path: path of the file.
        writer: name of the writer; empty if the file has none.
        strokes: strokes by id, each [points, 2], x to the right and y downward.
        symbols: symbols of the file.
        math: MathML of the expression; None if the file has none.
    """

    path: Path
    writer: str
    strokes: dict[str, Array]
    symbols: tuple[Group, ...]
    math: Node | None


def read_inkml(path: Path) -> Ink:
    """Read one InkML file.

    Args:
        path: path of the file.

    Returns:
        The ink.

    Raises:
        DataError: the file is not valid, consistent InkML, or exceeds a limit.
        StorageError: the file cannot be read.
    """
    return parse_inkml(read_inkml_bytes(path), str(path))


def read_inkml_bytes(path: Path) -> bytes:
    """Return the bytes of an InkML file of at most `MAX_BYTES`."""
    return read_limited(path, MAX_BYTES, "an InkML file", TOO_LARGE)


def parse_inkml(data: bytes, name: str) -> Ink:
    """Parse the bytes of an InkML file.

    Args:
        data: contents of the file.
        name: name or path of the file in messages.

    Returns:
        The ink.

    Raises:
        DataError: the bytes are not valid, consistent InkML, or exceed a limit.
        UsageError: defusedxml is not installed.
    """
    if len(data) > MAX_BYTES:
        raise DataError(f"{name} is larger than {TOO_LARGE}")
    try:
        root = _parse(data)
        strokes = _parse_strokes(root)
        return Ink(Path(name), _find_writer(root), strokes, _parse_groups(root, strokes), _find_math(root))
    except DataError as error:
        raise DataError(f"{name}: {error}") from error


# From bytes to elements.


class _Bounded(TreeBuilder):
    """Tree builder that removes namespaces and limits the number and the depth of elements."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = self.depth = 0

    def start(self, tag: Any, attrs: Any, /) -> Any:
        self.elements = self.elements + 1
        self.depth = self.depth + 1
        _check_count(self.elements, MAX_ELEMENTS, "elements")
        name = _strip_text(tag.rpartition("}")[2], "the name of an element")
        if self.depth > MAX_DEPTH:
            raise DataError(f"<{_shorten_text(name)}> is nested more than {MAX_DEPTH} deep; flatten the file")
        return super().start(name, attrs)

    def end(self, tag: Any, /) -> Any:
        self.depth -= 1
        return super().end(tag)


def _parse(data: bytes) -> Element:
    """Return the <ink> element of an XML document without document type."""
    try:
        from defusedxml.common import DefusedXmlException
        from defusedxml.ElementTree import DefusedXMLParser
    except ImportError as error:
        raise UsageError("reading InkML needs defusedxml: pip install 'aggrevated[parsing]'") from error
    parser = DefusedXMLParser(target=_Bounded(), forbid_dtd=True)
    parser.parser.XmlDeclHandler = _check_encoding
    try:
        parser.feed(data)
        root: Element = parser.close()
    except DefusedXmlException as error:
        raise DataError("it has a document type or entities (<!DOCTYPE>), which are refused; remove them") from error
    except ParseError as error:
        raise DataError(f"it is not well-formed XML ({error}); restore the file from its source") from error
    if root.tag != "ink":
        raise DataError(f"its root is <{_shorten_text(root.tag)}> and not <ink>; give an InkML file")
    return root


def _check_encoding(version: str, encoding: str | None, standalone: int) -> None:
    if encoding is not None and encoding.lower() not in ENCODINGS:
        raise DataError(f"it is encoded in {_shorten_text(encoding)}; save it as UTF-8")


def _shorten_text(text: str) -> str:
    """Return `text` for an error message, printable and with at most 40 characters."""
    printable = repr(text)[1:-1]
    return printable if len(printable) <= 40 else printable[:37] + "..."


def _strip_text(text: str | None, noun: str) -> str:
    """Return `text` without surrounding whitespace, or raise if it is longer than `MAX_TEXT`."""
    text = (text or "").strip()
    if len(text) > MAX_TEXT:
        raise DataError(f"{noun} ({_shorten_text(text)}) has more than {MAX_TEXT} characters; shorten it")
    return text


def _get_id(element: Element) -> str:
    return _strip_text(element.get(XML_ID) or element.get("id"), f"the id of a <{_shorten_text(element.tag)}>")


def _check_count(count: int, most: int, noun: str) -> None:
    if count > most:
        raise DataError(f"it has more than {most:,} {noun}; one expression needs far fewer: split the file")


def _check_unique(ids: Iterable[str], message: str) -> None:
    for id, times in Counter(ids).items():
        if times > 1 and id:
            raise DataError(f"{message.format(id=_shorten_text(id))}; give each its own")


# From elements to strokes, symbols and MathML.


def _parse_strokes(root: Element) -> dict[str, Array]:
    """Return the points of each <trace> by its id; the id of a trace without one is # and its index."""
    traces = list(root.iter("trace"))
    _check_count(len(traces), MAX_STROKES, "strokes (<trace>)")
    _check_count(sum((trace.text or "").count(",") + 1 for trace in traces), MAX_POINTS, "points")
    ids = [_get_id(trace) or f"#{index}" for index, trace in enumerate(traces)]
    _check_unique(ids, "more than one <trace> has the id {id}")
    columns = _find_columns(root)
    return {id: _parse_points(trace, id, columns) for id, trace in zip(ids, traces, strict=True)}


def _find_columns(root: Element) -> tuple[int, int]:
    """Return the columns of x and y in a point, from <traceFormat> or 0 and 1."""
    names = [channel.get("name") for channel in root.iter("channel")]
    if not names:
        return 0, 1
    if "X" not in names or "Y" not in names:
        raise DataError("its <traceFormat> has no channel X or no channel Y; name both")
    return names.index("X"), names.index("Y")


def _parse_points(trace: Element, id: str, columns: tuple[int, int]) -> Array:
    """Return x and y of a trace "x y, x y, ...", without other channels, [points, 2]."""
    where = f"<trace id={_shorten_text(id)}>"
    if len(trace):
        raise DataError(f"{where} holds other elements; it should hold numbers only")
    text = (trace.text or "").strip()
    if not text:
        raise DataError(f"{where} is empty; remove it, or give it points")
    points = [point.split() for point in text.removesuffix(",").split(",")]
    if min(map(len, points)) <= max(columns):
        raise DataError(f"{where} has a point without x or y; write both, and a comma after each point")
    items = [point[column] for point in points for column in columns]
    for item in items:
        if not NUMBER.fullmatch(item):
            raise DataError(f"{where} holds {_shorten_text(item)}, which is not a finite decimal number; write x and y")
    numbers = np.array(list(map(float, items))).reshape(-1, 2)
    if not (np.abs(numbers) <= MAX_COORDINATE).all():
        raise DataError(f"{where} has a number that is not finite or beyond ±{MAX_COORDINATE:,.0f}; scale the ink")
    return numbers


def _find_writer(root: Element) -> str:
    names = [note.text for note in root.findall("annotation") if note.get("type") == "writer"]
    return _strip_text(names[0], "the writer's name") if names else ""


def _parse_groups(root: Element, strokes: dict[str, Array]) -> tuple[Group, ...]:
    """Return the symbols: the innermost trace groups, without common strokes or MathML elements."""
    groups = list(root.iter("traceGroup"))
    names = {_get_id(group) for group in groups} - {""}
    innermost = [group for group in groups if not group.findall("traceGroup")]
    _check_count(len(innermost), MAX_SYMBOLS, "symbols (<traceGroup>)")
    symbols = tuple(
        _group(group, strokes, names, head) for group, head in zip(innermost, _parse_heads(innermost), strict=True)
    )
    for group in groups:
        if group.findall("traceGroup") and group.findall("traceView"):
            raise DataError(f"{_describe_group(group)} holds groups and strokes; hold either")
    _check_unique((id for symbol in symbols for id in symbol.strokes), "the stroke {id} belongs to two symbols")
    _check_unique((symbol.href for symbol in symbols), "two symbols refer to the MathML element {id}")
    return symbols


def _describe_group(group: Element) -> str:
    return f"<traceGroup id={_shorten_text(_get_id(group))}>"


def _parse_heads(groups: list[Element]) -> Sequence[int | None]:
    """Return the number of each group's head, or None for all groups if the file has no heads."""
    head_ids = [_get_head_id(group) for group in groups]
    if not any(head_ids):
        return [None] * len(groups)
    for group, head_id in zip(groups, head_ids, strict=True):
        if not head_id:
            raise DataError(f"{_describe_group(group)} has no head, and others have; give all symbols a head, or none")
    ids = [_get_id(group) for group in groups]
    _check_unique([*ids, ROOT], "more than one <traceGroup> has the id {id}, or the id is reserved")
    numbers = {ROOT: 0} | {id: number for number, id in enumerate(ids, 1) if id}
    for group, head_id in zip(groups, head_ids, strict=True):
        if head_id not in numbers:
            raise DataError(
                f"{_describe_group(group)} has the head {_shorten_text(head_id)}, which is not a symbol; "
                f"give the id of one, or {ROOT}"
            )
    heads = [numbers[head_id] for head_id in head_ids]
    check_tree(heads)
    return heads


def _get_head_id(group: Element) -> str:
    """Return the id of the head of a group, or an empty string if it has none."""
    heads = [note.text for note in group.findall("annotation") if note.get("type") == "head"]
    if len(heads) > 1:
        raise DataError(f"{_describe_group(group)} has more than one head; keep one")
    return _strip_text((heads or [""])[0], f"the head of {_describe_group(group)}").removeprefix("#")


def _group(group: Element, strokes: dict[str, Array], names: set[str], head: int | None) -> Group:
    where = _describe_group(group)
    ids = tuple(
        _strip_text(view.get("traceDataRef"), f"a reference in {where}").removeprefix("#")
        for view in group.findall("traceView")
    )
    if not ids:
        raise DataError(f"{where} has no strokes; remove it, or refer to strokes with <traceView>")
    for id in ids:
        if id not in strokes and id in names:  # the group could contain itself
            raise DataError(
                f"{where} refers to the group {_shorten_text(id)}, perhaps in a cycle; refer to strokes only"
            )
        if id not in strokes:
            raise DataError(
                f"{where} refers to the stroke {_shorten_text(id)}, which is not there; correct the reference"
            )
    labels = [note.text for note in group.findall("annotation") if note.get("type") in ("truth", None)]
    hrefs = [note.get("href") for note in group.findall("annotationXML")]
    if len(labels) > 1 or len(hrefs) > 1:
        raise DataError(f"{where} has more than one label or MathML element; keep one of each")
    label = (labels or [""])[0]
    href = (hrefs or [""])[0]
    label = _strip_text(label, f"the label of {where}")
    href = _strip_text(href, f"the href of {where}").removeprefix("#")
    return Group(label, ids, href, head)


def _find_math(root: Element) -> Node | None:
    """Return the MathML, or None if the file has none."""
    trees = list(root.iter("math"))
    if len(trees) > 1:
        raise DataError("it has more than one <math>; keep the one with presentation markup")
    if not trees:
        return None
    _check_unique(map(_get_id, trees[0].iter()), "more than one MathML element has the id {id}")
    return _parse_node(trees[0])


def _parse_node(element: Element) -> Node:
    """Return the element with all elements below it, by at most MAX_DEPTH nested calls."""
    text = _strip_text(element.text, f"the text of a <{_shorten_text(element.tag)}>")
    return Node(element.tag, text, _get_id(element), tuple(map(_parse_node, element)))
