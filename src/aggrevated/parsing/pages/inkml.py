"""Which heads make a tree that a parser can build: one root, no circle, no crossing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.storage import read_limited


def check_tree(heads: Sequence[int] | Array) -> None:
    """A `DataError` that names symbols by number, unless the heads [n] are those of a projective tree with one root.

    Symbol i of n has number i + 1. ROOT is 0 and stands before the first symbol, so that its arc must not be crossed
    either: then every transition system here can make all arcs.
    """
    arcs = [(dependent, int(head)) for dependent, head in enumerate(heads, 1)]
    _require_numbers(arcs)
    _require_one_root(arcs)
    _require_no_circle(dict(arcs))
    for one, other in combinations(arcs, 2):
        if _is_crossing(one, other):
            raise DataError(f"{_format_arc(one)} crosses {_format_arc(other)}; give one of these symbols another head")


def _require_numbers(arcs: Sequence[tuple[int, int]]) -> None:
    if not arcs:
        raise DataError("there is no symbol; write at least one")
    for dependent, head in arcs:
        if not 0 <= head <= len(arcs):
            raise DataError(f"the head of symbol {dependent} is {head}; give a number from 0, ROOT, to {len(arcs)}")
        if head == dependent:
            raise DataError(f"symbol {dependent} is its own head; give it another")


def _require_one_root(arcs: Sequence[tuple[int, int]]) -> None:
    roots = [dependent for dependent, head in arcs if head == 0]
    if not roots:
        raise DataError("no symbol depends on ROOT; choose one that does")
    if len(roots) > 1:
        raise DataError(f"the symbols {_format_numbers(roots)} depend on ROOT; keep one of them there")


def _require_no_circle(heads: dict[int, int]) -> None:
    reach_root = {0}
    for start in heads:
        way = [start]
        while way[-1] not in reach_root:
            following = heads[way[-1]]
            if following in way:
                circle = sorted(way[way.index(following) :])
                raise DataError(
                    f"the symbols {_format_numbers(circle)} depend on each other in a circle; give one another head"
                )
            way.append(following)
        reach_root.update(way)


def _is_crossing(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether exactly one end of the second arc lies between the ends of the first, and the other beyond them."""
    low, high = sorted(one)
    first, last = sorted(other)
    return low < first < high < last or first < low < last < high


def _format_arc(arc: tuple[int, int]) -> str:
    dependent, head = arc
    return f"the arc from symbol {dependent} to {f'its head {head}' if head else 'ROOT'}"


def _format_numbers(numbers: Sequence[int]) -> str:
    """As people list a few; the first ones, where they are many."""
    if len(numbers) > 6:
        return f"{', '.join(map(str, numbers[:6]))} and {len(numbers) - 6} more"
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


# The largest of 4,069 CROHME files has 52 kB, 386 elements 52 deep, 75 strokes, 2,735 points and 49 symbols.
MAX_BYTES = 1 << 20
MAX_ELEMENTS = 10_000
MAX_DEPTH = 128
MAX_STROKES = 1_000
MAX_POINTS = 50_000
MAX_SYMBOLS = 300
MAX_COORDINATE = 1e7
MAX_TEXT = 80  # characters of an id, a label or a writer
TOO_LARGE = f"{MAX_BYTES:,} bytes; one expression needs far less: split the file"

ENCODINGS = ("utf-8", "us-ascii", "ascii", "iso-8859-1", "utf-16")  # those that need no codec but the parser's own
NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,4})?", re.ASCII)
ROOT = "ROOT"  # what the head of the root is called
XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


@dataclass(frozen=True)
class Node:
    """One element of the MathML: its name without namespace, its own text, its id, and what it holds."""

    tag: str
    text: str
    id: str
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Group:
    """One symbol: its label, the ids of its strokes, and the id of the MathML element that it is the ink of.

    Where the file says how symbols hang together, symbols are in reading order, and each has the number of its head.
    """

    label: str
    strokes: tuple[str, ...]
    href: str
    head: int | None = None  # counted from 1; 0 is ROOT


@dataclass(frozen=True)
class Ink:
    """What an InkML file says. Labels, references, writer and MathML may be missing ("" and None): ink has no need."""

    path: Path
    writer: str
    strokes: dict[str, Array]  # by id, each [points, 2]: x to the right, y downwards
    symbols: tuple[Group, ...]
    math: Node | None


def read_inkml(path: Path) -> Ink:
    """The ink of one file, whole and consistent, or a `DataError` (`StorageError` if it cannot be read at all)."""
    return parse_inkml(read_inkml_bytes(path), str(path))


def read_inkml_bytes(path: Path) -> bytes:
    """All of such a file, if it is not too large."""
    return read_limited(path, MAX_BYTES, "an InkML file", TOO_LARGE)


def parse_inkml(data: bytes, name: str) -> Ink:
    """The ink in the bytes of such a file; `name` is what messages call it."""
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
    """A tree of names without namespaces, that stops growing before it is a burden."""

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
    """The <ink> element of an XML document without document type."""
    try:
        from defusedxml.common import DefusedXmlException
        from defusedxml.ElementTree import DefusedXMLParser
    except ImportError as error:
        raise UsageError("reading InkML needs defusedxml: pip install 'aggrevated[parsing]'") from error
    parser = DefusedXMLParser(target=_Bounded(), forbid_dtd=True)
    parser.parser.XmlDeclHandler = _refuse_strange_encodings
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


def _refuse_strange_encodings(version: str, encoding: str | None, standalone: int) -> None:
    if encoding is not None and encoding.lower() not in ENCODINGS:
        raise DataError(f"it is encoded in {_shorten_text(encoding)}; save it as UTF-8")


def _shorten_text(text: str) -> str:
    """`text` for an error message: printable and not long."""
    shown = repr(text)[1:-1]
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _strip_text(text: str | None, what: str) -> str:
    """`text` without space around it, if it is as short as an id or a label should be."""
    text = (text or "").strip()
    if len(text) > MAX_TEXT:
        raise DataError(f"{what} ({_shorten_text(text)}) has more than {MAX_TEXT} characters; shorten it")
    return text


def _get_id(element: Element) -> str:
    return _strip_text(element.get(XML_ID) or element.get("id"), f"the id of a <{_shorten_text(element.tag)}>")


def _check_count(count: int, most: int, what: str) -> None:
    if count > most:
        raise DataError(f"it has more than {most:,} {what}; one expression needs far fewer: split the file")


def _check_unique(ids: Iterable[str], what: str) -> None:
    for id, times in Counter(ids).items():
        if times > 1 and id:
            raise DataError(f"{what.format(id=_shorten_text(id))}; give each its own")


# From elements to strokes, symbols and MathML.


def _parse_strokes(root: Element) -> dict[str, Array]:
    """The points of each <trace> by its id; a trace without id is called by its place."""
    traces = list(root.iter("trace"))
    _check_count(len(traces), MAX_STROKES, "strokes (<trace>)")
    _check_count(sum((trace.text or "").count(",") + 1 for trace in traces), MAX_POINTS, "points")
    ids = [_get_id(trace) or f"#{place}" for place, trace in enumerate(traces)]
    _check_unique(ids, "more than one <trace> has the id {id}")
    columns = _find_columns(root)
    return {id: _parse_points(trace, id, columns) for id, trace in zip(ids, traces, strict=True)}


def _find_columns(root: Element) -> tuple[int, int]:
    """Where x and y stand in a point: as <traceFormat> says, or first and second."""
    names = [channel.get("name") for channel in root.iter("channel")]
    if not names:
        return 0, 1
    if "X" not in names or "Y" not in names:
        raise DataError("its <traceFormat> has no channel X or no channel Y; name both")
    return names.index("X"), names.index("Y")


def _parse_points(trace: Element, id: str, columns: tuple[int, int]) -> Array:
    """[points, 2]: x and y of a trace "x y, x y, ..."; other channels are passed over."""
    where = f"<trace id={_shorten_text(id)}>"
    if len(trace):
        raise DataError(f"{where} holds other elements; it should hold numbers only")
    text = (trace.text or "").strip()
    if not text:
        raise DataError(f"{where} is empty; remove it, or give it points")
    points = [point.split() for point in text.removesuffix(",").split(",")]
    if min(map(len, points)) <= max(columns):
        raise DataError(f"{where} has a point without x or y; write both, and a comma after each point")
    words = [point[column] for point in points for column in columns]
    for word in words:
        if not NUMBER.fullmatch(word):
            raise DataError(f"{where} holds {_shorten_text(word)}, which is not a finite decimal number; write x and y")
    numbers = np.array(list(map(float, words))).reshape(-1, 2)
    if not (np.abs(numbers) <= MAX_COORDINATE).all():
        raise DataError(f"{where} has a number that is not finite or beyond ±{MAX_COORDINATE:,.0f}; scale the ink")
    return numbers


def _find_writer(root: Element) -> str:
    named = [note.text for note in root.findall("annotation") if note.get("type") == "writer"]
    return _strip_text(named[0], "the writer's name") if named else ""


def _parse_groups(root: Element, strokes: dict[str, Array]) -> tuple[Group, ...]:
    """The innermost trace groups, which are the symbols; no stroke and no MathML element belongs to two."""
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
    """The number of each group's head, which make a tree; None for all where the file says nothing of heads."""
    said = [_get_head_id(group) for group in groups]
    if not any(said):
        return [None] * len(groups)
    for group, head in zip(groups, said, strict=True):
        if not head:
            raise DataError(f"{_describe_group(group)} has no head, and others have; give all symbols a head, or none")
    ids = [_get_id(group) for group in groups]
    _check_unique([*ids, ROOT], "more than one <traceGroup> has the id {id}, or it is no id for one")
    numbers = {ROOT: 0} | {id: number for number, id in enumerate(ids, 1) if id}
    for group, head in zip(groups, said, strict=True):
        if head not in numbers:
            raise DataError(
                f"{_describe_group(group)} has the head {_shorten_text(head)}, which is not a symbol; "
                f"give the id of one, or {ROOT}"
            )
    heads = [numbers[head] for head in said]
    check_tree(heads)
    return heads


def _get_head_id(group: Element) -> str:
    """The id of the head that a group names; nothing where it names none."""
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
        if id not in strokes and id in names:  # it could be its own part
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
    """The MathML, if there is one."""
    trees = list(root.iter("math"))
    if len(trees) > 1:
        raise DataError("it has more than one <math>; keep the one with presentation markup")
    if not trees:
        return None
    _check_unique(map(_get_id, trees[0].iter()), "more than one MathML element has the id {id}")
    return _parse_node(trees[0])


def _parse_node(element: Element) -> Node:
    """The element and all below it: at most MAX_DEPTH calls deep."""
    text = _strip_text(element.text, f"the text of a <{_shorten_text(element.tag)}>")
    return Node(element.tag, text, _get_id(element), tuple(map(_parse_node, element)))
