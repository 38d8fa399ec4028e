"""Drawings of dependency trees: arcs below a row of symbols, without crossings. Lengths are in inches."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch, PathPatch
from matplotlib.path import Path as Outline

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError
from aggrevated.parsing.features.geometry import find_line_starts
from aggrevated.parsing.pages.page import Page, Strokes
from aggrevated.plots.learning_curves import save_figure

# Okabe and Ito's
ARC = "#0072B2"
WRONG = "#D55E00"
ROOT = "#009E73"
CELL = 0.34  # width of one symbol in the row
LEVEL = 0.17  # how much deeper an arc is than those inside it
FOOT = 0.5  # space below the deepest arc for ROOT


def compute_arcs_height(heads: Array) -> float:
    """Return the space that the arcs need below the row, in inches."""
    return LEVEL * max(compute_arc_levels(heads).values(), default=0) + (FOOT if (heads == 0).any() else 0.2)


def compute_arc_levels(heads: Array) -> dict[int, int]:
    """Return the depth of the arc to each dependent: one more than the deepest arc inside it."""
    spans = sorted((abs(int(head) - n), min(int(head), n), max(int(head), n), n) for n, head in list_head_pairs(heads))
    levels: dict[int, int] = {}
    arcs: list[tuple[int, int, int]] = []
    for _, first, last, n in spans:
        inside = [level for a, b, level in arcs if first <= a and b <= last]
        crossed = [level for a, b, level in arcs if a < first < b < last or first < a < last < b]
        level = 1 + max(inside, default=0)
        while level in crossed:
            level += 1
        levels[n] = level
        arcs.append((first, last, level))
    return levels


def list_head_pairs(heads: Array) -> list[tuple[int, int]]:
    """Return (dependent, head) of all arcs between two symbols."""
    return [(n, int(head)) for n, head in enumerate(heads, start=1) if head > 0]


def draw_arcs(axes: Axes, heads: Array, left: float, top: float, colors: Sequence[str]) -> None:
    """Draw the arcs of `heads` [n] below a row of cells that begins at `left`, in their dependents' colors.

    Longer arcs are deeper, and those from ROOT come from below. A head of −1 is not known yet.
    """
    levels = compute_arc_levels(heads)
    foot = top + LEVEL * max(levels.values(), default=0) + 0.28
    for dependent, head in list_head_pairs(heads):
        start = left + CELL * (head - 0.5 + compute_arc_exit_offset(heads, dependent, head))
        end = left + CELL * (dependent - 0.5)
        y = top + LEVEL * levels[dependent]
        draw_arrow(axes, [(start, top), (start, y), (end, y), (end, top)], colors[dependent - 1])
    for i in map(int, np.flatnonzero(heads == 0)):
        x = left + CELL * (i + 0.5)
        color = colors[i]
        draw_arrow(axes, [(x, foot), (x, top)], ROOT if color == ARC else color)
        axes.text(x, foot + 0.09, "ROOT", ha="center", va="center", fontsize=8, color=ROOT if color == ARC else color)


def compute_arc_exit_offset(heads: Array, dependent: int, head: int) -> float:
    """Return where an arc begins, in cells from the middle of its head: longer arcs begin nearer to it."""
    side = 1 if dependent > head else -1
    siblings = [n for n, other in list_head_pairs(heads) if other == head and (n - head) * side > 0]
    rank = 1 + sum(abs(n - head) > abs(dependent - head) for n in siblings)
    return side * 0.38 * rank / (len(siblings) + 0.2)


def draw_arrow(axes: Axes, corners: list[tuple[float, float]], color: str, width: float = 1.2) -> None:
    """Draw a line with rounded corners from the first point to an arrow head at the last."""
    outline = _round_corners(corners)
    arrow = FancyArrowPatch(
        path=outline,
        arrowstyle="-|>,head_length=3.2,head_width=1.7",
        color=color,
        linewidth=width,
        linestyle="--" if color == WRONG else "-",
        joinstyle="miter",
        shrinkA=0,
        shrinkB=0,
    )
    axes.add_patch(arrow)


def _round_corners(corners: list[tuple[float, float]]) -> Outline:
    points = [np.array(corner) for corner in corners]
    vertices = [points[0]]
    codes = [Outline.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        a, b = (
            corner + (other - corner) * min(0.5, 0.1 / max(float(np.hypot(*(other - corner))), 1e-9))
            for other in (before, after)
        )
        vertices += [a, corner, b]
        codes += [Outline.LINETO, Outline.CURVE3, Outline.CURVE3]
    return Outline(np.array([*vertices, points[-1]]), [*codes, Outline.LINETO])


# heads [n], −1 for unknown; stack; first of the buffer; transition
Frame: TypeAlias = tuple[Array, Sequence[int], int, str]

INK = "#1F2937"
FAINT = "#C3C8D0"
NUMBER = "#6B7280"
RULE = "#D1D5DB"
# light tints of blue and orange
STACK = "#CFE6F5"
BUFFER = "#FBEBC8"

MARGIN = 0.25
TITLE = 0.35
LEGEND = 0.35
ROW = 0.42  # height
NUMBERS = 0.2
NAMES = 0.24


def draw_tree(
    page: Page,
    heads: Array,
    path: Path,
    title: str = "",
    gold: Array | None = None,
    names: Sequence[str] = (),
    lines: Sequence[int] = (),
) -> None:
    """Write path.png and path.svg: the page as written, its symbols in a row, and its tree below them.

    Args:
        page: the page of n symbols.
        heads: head of each symbol [n]; 0 is ROOT.
        path: path of the figure without its ending.
        title: title of the figure; empty for none.
        gold: correct heads [n]; arcs that differ are dashed, in another color, and counted in a legend.
        names: the recognized name of each symbol; empty for none.
        lines: the line of each symbol; empty finds lines by geometry.

    Raises:
        UsageError: the number of heads is not the page's number of symbols, or one of them is out of range.
    """
    for tree in (heads,) if gold is None else (heads, gold):
        _check(page, tree)
    wrong = np.zeros(len(page), bool) if gold is None else heads != gold
    width = max(2 * MARGIN + CELL * len(page), 4.6)
    low, scale, (ink_width, ink_height) = _fit(page, width - 2 * MARGIN)
    row = (TITLE if title else 0.0) + MARGIN + ink_height + 0.3
    arcs_top = row + ROW + NUMBERS + (NAMES if names else 0.0)
    height = arcs_top + compute_arcs_height(heads) + (0.0 if gold is None else LEGEND)
    figure, axes = make_canvas(width, height)
    _draw_title(axes, title, width)
    corner = np.array([(width - ink_width) / 2, row - 0.3 - ink_height])
    for strokes in page.ink:
        _write(axes, strokes, lambda points: (points - low) * scale + corner, INK)
    left = (width - CELL * len(page)) / 2
    _draw_row(axes, page, left, row, [INK] * len(page), np.diff(lines, prepend=0) != 0 if lines else None)
    for i, name in enumerate(names):
        position = left + CELL * (i + 0.5), row + ROW + NUMBERS + NAMES / 2 - 0.04
        axes.text(*position, name.replace("$", "\\$"), ha="center", va="center", fontsize=10, color=ARC)
    draw_arcs(axes, heads, left, arcs_top, [WRONG if is_wrong else ARC for is_wrong in wrong])
    if gold is not None:
        matching = Line2D([], [], color=ARC, linewidth=1.4, label=f"as in the gold tree ({(~wrong).sum()})")
        other = Line2D([], [], color=WRONG, linewidth=1.4, linestyle="--", label=f"differs from it ({wrong.sum()})")
        figure.legend(handles=[matching, other], loc="lower center", ncols=2, frameon=False, fontsize=9)
    save_figure(figure, path)


def draw_growth(page: Page, frames: Sequence[Frame], path: Path, title: str = "") -> None:
    """Write path.png and path.svg: one panel per frame of a parse, with its arcs, stack and buffer.

    Panels stand in two columns for up to 16 symbols.

    Args:
        page: the page of n symbols.
        frames: heads [n] (−1 is unknown), stack, first symbol of the buffer and last transition per panel.
        path: path of the figure without its ending.
        title: title of the figure; empty for none.

    Raises:
        UsageError: there are no frames, or the heads do not fit the page.
    """
    if not frames:
        raise UsageError("there are no frames to draw: pass at least one configuration of the parse")
    for heads, *_ in frames:
        _check(page, heads)
    columns = 2 if len(page) <= 16 else 1
    panel = max(CELL * len(page), 3.2) + MARGIN
    rows = -(-len(frames) // columns)
    arcs = [max(compute_arcs_height(heads) for heads, *_ in frames[row::rows]) for row in range(rows)]
    tops = MARGIN + (TITLE if title else 0.0) + np.cumsum([0.0, *(0.35 + ROW + NUMBERS + height for height in arcs)])
    width = MARGIN + columns * panel
    figure, axes = make_canvas(width, float(tops[-1]) + LEGEND)
    _draw_title(axes, title, width)
    for i, frame in enumerate(frames):
        _draw_panel(axes, page, frame, MARGIN + i // rows * panel, float(tops[i % rows]), i + 1)
    tints = [Patch(color=STACK, label="on the stack"), Patch(color=BUFFER, label="in the buffer")]
    handles = [*tints, Patch(facecolor="white", edgecolor=FAINT, label="done")]
    figure.legend(handles=handles, loc="lower center", ncols=3, frameon=False, fontsize=9)
    save_figure(figure, path)


def _check(page: Page, heads: Array) -> None:
    if heads.shape != (len(page),) or (len(page) and not -1 <= heads.min() <= heads.max() <= len(page)):
        raise UsageError(
            f"the heads do not fit {page.name}: pass {len(page)} heads, one per symbol, each from 0 to {len(page)}"
        )


def make_canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure of this size in inches, and its axes in the same coordinates."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, width), ylim=(height, 0.0))
    axes.set_axis_off()
    return figure, axes


def _draw_title(axes: Axes, title: str, width: float) -> None:
    """Draw the title in the middle, as large as fits: a letter is about 0.6 of its size wide."""
    size = min(11.0, 120.0 * (width - 2 * MARGIN) / max(len(title), 1))
    axes.text(width / 2, MARGIN, title, ha="center", va="center", fontsize=size, parse_math=False)


def _fit(page: Page, width: float) -> tuple[Array, float, Array]:
    """Return the page's upper left corner, inches per page unit, and its size in inches.

    Symbols become as large as in the row, unless the page is too large.
    """
    boxes = page.boxes if len(page) else np.zeros((1, 4))
    low = boxes[:, :2].min(axis=0)
    high = boxes[:, 2:].max(axis=0)
    unit = max(float(np.median((boxes[:, 2:] - boxes[:, :2]).max(axis=1))), 1e-9)
    scale = min(0.34 / unit, width / max(float(high[0] - low[0]), 1e-9), 6.0 / max(float(high[1] - low[1]), 1e-9))
    return low, scale, (high - low) * scale


def _write(axes: Axes, strokes: Strokes, to_inches: Callable[[Array], Array], color: str) -> None:
    """Draw the ink of one symbol as one path; a dot becomes a very short line."""
    points = [stroke if len(stroke) > 1 else np.repeat(stroke, 2, axis=0) for stroke in map(to_inches, strokes)]
    for stroke in points:
        stroke[-1] += 1e-3 * (np.ptp(stroke, axis=0).max() == 0)
    codes = [code for stroke in points for code in (Outline.MOVETO, *[Outline.LINETO] * (len(stroke) - 1))]
    outline = Outline(np.concatenate(points), codes)
    axes.add_patch(PathPatch(outline, fill=False, edgecolor=color, linewidth=1.3, capstyle="round", joinstyle="round"))


def _draw_row(
    axes: Axes, page: Page, left: float, top: float, colors: Sequence[str], starts: Array | None = None
) -> None:
    """Draw the numbered symbols in a row, at one scale unless one is too large; a rule begins each line."""
    if not len(page):
        return
    boxes = page.boxes
    size = (boxes[:, 2:] - boxes[:, :2]).max(axis=1)
    default_scale = 0.7 * min(CELL, ROW) / max(float(np.median(size)), 1e-9)
    for number, (strokes, color) in enumerate(zip(page.ink, colors, strict=True), start=1):
        x = left + CELL * (number - 0.5)
        box = boxes[number - 1]
        width, height = np.maximum(box[2:] - box[:2], 1e-9)
        scale = min(default_scale, 0.7 * CELL / width, 0.86 * ROW / height)
        box_center = (box[:2] + box[2:]) / 2
        center = np.array([x, top + ROW / 2])
        _write(axes, strokes, lambda p, m=box_center, s=scale, h=center: (p - m) * s + h, color)  # type: ignore[misc]
        axes.text(x, top + ROW + 0.1, str(number), ha="center", va="center", fontsize=7, color=NUMBER)
    for i in np.flatnonzero(find_line_starts(boxes) if starts is None else starts)[1:]:
        axes.plot([left + CELL * i] * 2, [top, top + ROW], color=RULE, linewidth=0.8)


def _draw_panel(axes: Axes, page: Page, frame: Frame, left: float, top: float, number: int) -> None:
    """Draw one configuration: its transition, the row with stack and buffer tinted, and the arcs so far."""
    heads, stack, buffer, transition = frame
    axes.text(left, top + 0.12, f"{number}   {transition}", ha="left", va="center", fontsize=9, color=INK)
    on_stack = set(stack)
    colors = []
    for n in range(1, len(page) + 1):
        tint = STACK if n in on_stack else BUFFER if n >= buffer else ""
        colors.append(INK if tint else FAINT)
        if tint:
            corner = (left + CELL * (n - 1) + 0.035, top + 0.3 + 0.02)
            size = (CELL - 0.07, ROW + NUMBERS - 0.04)
            axes.add_patch(
                FancyBboxPatch(corner, *size, boxstyle="round,pad=0,rounding_size=0.05", color=tint, zorder=0)
            )
    _draw_row(axes, page, left, top + 0.3, colors)
    draw_arcs(axes, heads, left, top + 0.3 + ROW + NUMBERS, [ARC] * len(page))
