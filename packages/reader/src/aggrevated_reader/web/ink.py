"""Ink as a page sends it: parts, and what somebody has said of symbols; looked at before it is believed.

A part is what is surely one piece: a stroke of the pen, or what hangs together in a picture. A symbol is some parts.
What is said of one, its label or its head, also says that these parts are a symbol.
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
LARGE = 60.0  # units of a page that a usual symbol is high, at most
Parts = tuple[int, ...]  # the places of a symbol's parts, sorted
ROOT: Parts = ()


@dataclass(frozen=True)
class SymbolCorrection:
    """What somebody has said of a symbol; None where it is left to the reader."""

    parts: Parts
    label: str | None = None
    head: Parts | None = None  # ROOT, or the parts of the symbol that heads it


@dataclass(frozen=True)
class Drawing:
    """What was drawn, and what was said of it."""

    parts: tuple[Strokes, ...]  # of the strokes [points, 2] of each
    pressures: tuple[tuple[Array, ...], ...]  # of each stroke [points], 0.5 where no pen told
    said: tuple[SymbolCorrection, ...] = ()

    def group_symbols(self) -> list[Parts]:
        """The parts of each symbol, in reading order: as was said, and all others by geometry."""
        known = [one.parts for one in self.said]
        taken = {part for parts in known for part in parts}
        free = [part for part in range(len(self.parts)) if part not in taken]
        known += [tuple(free[place] for place in group) for group in group_strokes([self.parts[part] for part in free])]
        ink = [self.get_strokes(parts) for parts in known]
        return [known[place] for place in sort_reading_order(ink)] if ink else []

    def get_strokes(self, parts: Parts) -> Strokes:
        """Of some parts together."""
        return tuple(stroke for part in parts for stroke in self.parts[part])


def parse_drawing(facts: dict[str, Any]) -> Drawing:
    """What a request says; a `DataError` where it says anything else."""
    parts = parse_list(facts, "parts", MAX_PARTS)
    points = 0
    strokes: list[Strokes] = []
    pressures: list[tuple[Array, ...]] = []
    for place, part in enumerate(parts):
        if not isinstance(part, list) or not part:
            raise DataError(f"part {place} has no strokes; reload the page")
        arrays = [parse_points(stroke, place) for stroke in part]
        points += sum(map(len, arrays))
        if points > MAX_POINTS:
            raise DataError(f"there are more than {MAX_POINTS:,} points; write less on one page")
        strokes.append(tuple(array[:, :2].copy() for array in arrays))
        pressures.append(tuple(array[:, 2].copy() for array in arrays))
    return Drawing(tuple(strokes), tuple(pressures), parse_corrections(facts, len(parts)))


def parse_list(facts: dict[str, Any], name: str, most: int) -> list[Any]:
    """A list of the request, of at most so many items; an empty one where it is left out."""
    found = facts.get(name, [])
    if not isinstance(found, list) or len(found) > most:
        raise DataError(f"{name} must be a list of at most {most} items; write less on one page, or reload it")
    return found


def parse_points(stroke: object, place: int) -> Array:
    """[points, 3]: x, y and pressure of a stroke, each point a list of the first two or of all."""
    if not isinstance(stroke, list) or not stroke:
        raise DataError(f"a stroke of part {place} has no points; reload the page")
    if not all(isinstance(point, list) and len(point) in (2, 3) and all(map(is_number, point)) for point in stroke):
        raise DataError(f"a point of part {place} is not two or three numbers; reload the page")
    found = np.array([[*point, 0.5][:3] for point in stroke], np.float64)
    if not (np.abs(found[:, :2]) <= MAX_COORDINATE).all():
        raise DataError(f"a point of part {place} lies beyond ±{MAX_COORDINATE:,.0f}; reload the page")
    found[:, 2] = found[:, 2].clip(0.0, 1.0)
    return found


def is_number(value: object) -> bool:
    """Whether it is one that an array can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def parse_corrections(facts: dict[str, Any], count: int) -> tuple[SymbolCorrection, ...]:
    """What was said of symbols; no part belongs to two of them. Heads that are no symbol any more are forgotten."""
    found = [parse_correction(entry, count) for entry in parse_list(facts, "said", MAX_PARTS)]
    parts = [part for one in found for part in one.parts]
    if len(parts) != len(set(parts)):
        raise DataError("a part belongs to two symbols; reload the page")
    heads = {one.head for one in found if one.head}
    known = {one.parts for one in found}
    taken = set(parts)
    for head in sorted(heads - known):  # who is somebody's head is a symbol, unless it has been taken apart
        if not taken & set(head):
            found.append(SymbolCorrection(head))
            known.add(head)
            taken |= set(head)
    return tuple(
        SymbolCorrection(one.parts, one.label, None if one.head and one.head not in known else one.head)
        for one in found
    )


def parse_correction(entry: object, count: int) -> SymbolCorrection:
    if not isinstance(entry, dict):
        raise DataError("what is said of a symbol is no object; reload the page")
    label = entry.get("label")
    head = entry.get("head")
    if label is not None and not (isinstance(label, str) and label.isprintable() and 0 < len(label.encode()) <= BYTES):
        raise DataError(f"a label must be something that can be printed, of at most {BYTES} bytes; shorten it")
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
    """The ink of each symbol in the middle of a page of that size: as large as fits and as people write."""
    every = np.concatenate([stroke for strokes in ink for stroke in strokes])
    low = every.min(axis=0)
    size = np.ptp(every, axis=0)
    margin = 0.06 * min(width, height)
    room = np.array([width, height]) - 2 * margin
    tallest = float(np.median([np.ptp(np.concatenate(strokes), axis=0).max() for strokes in ink]))
    scale = min(float((room / np.maximum(size, 1e-9)).min()), LARGE / max(tallest, 1e-9))
    shift = (np.array([width, height]) - scale * size) / 2
    return [tuple((stroke - low) * scale + shift for stroke in strokes) for strokes in ink]
