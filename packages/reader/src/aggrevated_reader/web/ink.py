"""Ink and corrections of symbols as the page sends them, validated.

A part is certainly one piece: a stroke of the pen, or connected ink in a picture. A symbol consists of parts.
A correction of a symbol's label or head also states that these parts are a symbol.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError
from aggrevated.parsing.pages.inkml import MAX_POINTS
from aggrevated.parsing.pages.page import Strokes
from aggrevated_reader.learners.symbol_names import BYTES
from aggrevated_reader.pictures.layout import sort_reading_order
from aggrevated_reader.pictures.symbol_grouping import MAX_PARTS, group_strokes

MAX_COORDINATE = 1e5
LARGEST = sys.float_info.max
LARGE = 60.0  # maximum of the median symbol size, in units of a page
Parts = tuple[int, ...]  # the numbers of a symbol's parts, sorted
ROOT: Parts = ()


@dataclass(frozen=True)
class SymbolCorrection:
    """Correction of a symbol by the user.

    Args:
        parts: The parts of the symbol.
        label: The label, or None if the reader chooses it.
        head: ROOT or the parts of the symbol's head, or None if the reader chooses it.
    """

    parts: Parts
    label: str | None = None
    head: Parts | None = None


@dataclass(frozen=True)
class Drawing:
    """Ink of a page, and corrections of its symbols.

    Args:
        parts: The strokes of each part, each stroke [points, 2].
        pressures: The pressures of each part's strokes, each [points] from 0 to 1; 0.5 without a pen.
        corrections: The corrections of symbols.
    """

    parts: tuple[Strokes, ...]
    pressures: tuple[tuple[Array, ...], ...]
    corrections: tuple[SymbolCorrection, ...] = ()

    def group_symbols(self) -> list[Parts]:
        """Return the parts of each symbol, in reading order: by corrections, and by geometry for the rest."""
        groups = [correction.parts for correction in self.corrections]
        used = {part for parts in groups for part in parts}
        free = [part for part in range(len(self.parts)) if part not in used]
        groups += [tuple(free[i] for i in group) for group in group_strokes([self.parts[part] for part in free])]
        ink = [self.get_strokes(parts) for parts in groups]
        return [groups[i] for i in sort_reading_order(ink)] if ink else []

    def get_strokes(self, parts: Parts) -> Strokes:
        """Return the strokes of some parts."""
        return tuple(stroke for part in parts for stroke in self.parts[part])


def parse_drawing(body: dict[str, Any]) -> Drawing:
    """Return the drawing in a request.

    Raises:
        DataError: The request is not a drawing.
    """
    parts = parse_list(body, "parts", MAX_PARTS)
    points = 0
    strokes: list[Strokes] = []
    pressures: list[tuple[Array, ...]] = []
    for number, part in enumerate(parts):
        if not isinstance(part, list) or not part:
            raise DataError(f"part {number} has no strokes; reload the page")
        arrays = [parse_points(stroke, number) for stroke in part]
        points += sum(map(len, arrays))
        if points > MAX_POINTS:
            raise DataError(f"the page has more than {MAX_POINTS:,} points; write less on one page")
        strokes.append(tuple(array[:, :2].copy() for array in arrays))
        pressures.append(tuple(array[:, 2].copy() for array in arrays))
    return Drawing(tuple(strokes), tuple(pressures), parse_corrections(body, len(parts)))


def parse_list(body: dict[str, Any], name: str, max_length: int) -> list[Any]:
    """Return a list of the request, of at most `max_length` items; a missing one is empty."""
    items = body.get(name, [])
    if not isinstance(items, list) or len(items) > max_length:
        raise DataError(f"{name} must be a list of at most {max_length} items; write less on one page, or reload it")
    return items


def parse_points(stroke: object, part: int) -> Array:
    """Return x, y and pressure of a stroke, [points, 3]; each point is a list of two or three numbers."""
    if not isinstance(stroke, list) or not stroke:
        raise DataError(f"a stroke of part {part} has no points; reload the page")
    if not all(isinstance(point, list) and len(point) in (2, 3) and all(map(is_number, point)) for point in stroke):
        raise DataError(f"a point of part {part} is not two or three numbers; reload the page")
    points = np.array([[*point, 0.5][:3] for point in stroke], np.float64)
    if not (np.abs(points[:, :2]) <= MAX_COORDINATE).all():
        raise DataError(f"a point of part {part} lies beyond ±{MAX_COORDINATE:,.0f}; reload the page")
    points[:, 2] = points[:, 2].clip(0.0, 1.0)
    return points


def is_number(value: object) -> bool:
    """Return whether a value is a number that an array can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def parse_corrections(body: dict[str, Any], count: int) -> tuple[SymbolCorrection, ...]:
    """Return the corrections of a request, without heads that are no longer symbols."""
    corrections = [parse_correction(entry, count) for entry in parse_list(body, "said", MAX_PARTS)]
    parts = [part for one in corrections for part in one.parts]
    if len(parts) != len(set(parts)):
        raise DataError("a part belongs to two symbols; reload the page")
    heads = {one.head for one in corrections if one.head}
    symbols = {one.parts for one in corrections}
    used = set(parts)
    for head in sorted(heads - symbols):  # a head is a symbol, unless its parts belong to other symbols now
        if not used & set(head):
            corrections.append(SymbolCorrection(head))
            symbols.add(head)
            used |= set(head)
    return tuple(
        SymbolCorrection(one.parts, one.label, None if one.head and one.head not in symbols else one.head)
        for one in corrections
    )


def parse_correction(entry: object, count: int) -> SymbolCorrection:
    if not isinstance(entry, dict):
        raise DataError("a correction of a symbol is not a JSON object; reload the page")
    label = entry.get("label")
    head = entry.get("head")
    if label is not None and not (isinstance(label, str) and label.isprintable() and 0 < len(label.encode()) <= BYTES):
        raise DataError(f"a label must be printable and have at most {BYTES} bytes; change it")
    parts = parse_parts(entry.get("parts"), count)
    if not parts or (label is not None and label != label.strip()):
        raise DataError("a symbol has no parts, or a label begins or ends with a space; reload the page")
    return SymbolCorrection(parts, label, None if head is None else parse_parts(head, count))


def parse_parts(value: object, count: int) -> Parts:
    if not isinstance(value, list) or not all(type(part) is int and 0 <= part < count for part in value):
        raise DataError("the parts of a symbol are not numbers of parts; reload the page")
    if len(set(value)) != len(value):
        raise DataError("a symbol has a part twice; reload the page")
    return tuple(sorted(value))


def place_symbols(ink: Sequence[Strokes], width: float, height: float) -> list[Strokes]:
    """Return the ink of each symbol, centered on a page of that size and scaled like handwriting."""
    all_points = np.concatenate([stroke for strokes in ink for stroke in strokes])
    low = all_points.min(axis=0)
    size = np.ptp(all_points, axis=0)
    margin = 0.06 * min(width, height)
    room = np.array([width, height]) - 2 * margin
    tallest = float(np.median([np.ptp(np.concatenate(strokes), axis=0).max() for strokes in ink]))
    scale = min(float((room / np.maximum(size, 1e-9)).min()), LARGE / max(tallest, 1e-9))
    shift = (np.array([width, height]) - scale * size) / 2
    return [tuple((stroke - low) * scale + shift for stroke in strokes) for strokes in ink]
