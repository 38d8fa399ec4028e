"""Arcs from heads to dependents beside a row of symbols, nested so that none runs into another. Lengths are inches."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path as Outline

from aggrevated.core.arrays import Array

ARC, WRONG, ROOT = "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito's
CELL = 0.34  # of one symbol in the row, wide
LEVEL = 0.17  # by which an arc goes deeper than those inside it
FOOT = 0.5  # below the deepest arc, for ROOT


def arcs_height(heads: Array) -> float:
    """How much room the arcs need below the row."""
    return LEVEL * max(arc_levels(heads).values(), default=0) + (FOOT if (heads == 0).any() else 0.2)


def arc_levels(heads: Array) -> dict[int, int]:
    """How deep the arc to each dependent goes (by its number): one more than the deepest inside it."""
    spans = sorted((abs(int(head) - n), min(int(head), n), max(int(head), n), n) for n, head in head_pairs(heads))
    levels: dict[int, int] = {}
    drawn: list[tuple[int, int, int]] = []
    for _, first, last, n in spans:
        inside = [level for a, b, level in drawn if first <= a and b <= last]
        crossed = [level for a, b, level in drawn if a < first < b < last or first < a < last < b]
        level = 1 + max(inside, default=0)
        while level in crossed:
            level += 1
        levels[n] = level
        drawn.append((first, last, level))
    return levels


def head_pairs(heads: Array) -> list[tuple[int, int]]:
    """(dependent, head) of all arcs between two symbols."""
    return [(n, int(head)) for n, head in enumerate(heads, start=1) if head > 0]


def draw_arcs(axes: Axes, heads: Array, left: float, top: float, colours: Sequence[str]) -> None:
    """Arcs of `heads` [n] below a row of cells that begins at `left`, each in the colour of its dependent.

    Longer ones go deeper; those from ROOT come from the foot. A head of −1 is not known yet.
    """
    levels = arc_levels(heads)
    foot = top + LEVEL * max(levels.values(), default=0) + 0.28
    for dependent, head in head_pairs(heads):
        start = left + CELL * (head - 0.5 + arc_exit_offset(heads, dependent, head))
        end, y = left + CELL * (dependent - 0.5), top + LEVEL * levels[dependent]
        draw_arrow(axes, [(start, top), (start, y), (end, y), (end, top)], colours[dependent - 1])
    for place in map(int, np.flatnonzero(heads == 0)):
        x, colour = left + CELL * (place + 0.5), colours[place]
        draw_arrow(axes, [(x, foot), (x, top)], ROOT if colour == ARC else colour)
        axes.text(x, foot + 0.09, "ROOT", ha="center", va="center", fontsize=8, color=ROOT if colour == ARC else colour)


def arc_exit_offset(heads: Array, dependent: int, head: int) -> float:
    """How far beside the middle of its head's cell an arc begins, in cells: the longest nearest to the middle."""
    side = 1 if dependent > head else -1
    siblings = [n for n, other in head_pairs(heads) if other == head and (n - head) * side > 0]
    place = 1 + sum(abs(n - head) > abs(dependent - head) for n in siblings)
    return side * 0.38 * place / (len(siblings) + 0.2)


def draw_arrow(axes: Axes, corners: list[tuple[float, float]], colour: str, width: float = 1.2) -> None:
    """A line with rounded corners from the first point to the arrow head at the last."""
    outline = _rounded(corners)
    arrow = FancyArrowPatch(
        path=outline,
        arrowstyle="-|>,head_length=3.2,head_width=1.7",
        color=colour,
        linewidth=width,
        linestyle="--" if colour == WRONG else "-",
        joinstyle="miter",
        shrinkA=0,
        shrinkB=0,
    )
    axes.add_patch(arrow)


def _rounded(corners: list[tuple[float, float]]) -> Outline:
    points = [np.array(corner) for corner in corners]
    vertices, codes = [points[0]], [Outline.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        a, b = (
            corner + (other - corner) * min(0.5, 0.1 / max(float(np.hypot(*(other - corner))), 1e-9))
            for other in (before, after)
        )
        vertices += [a, corner, b]
        codes += [Outline.LINETO, Outline.CURVE3, Outline.CURVE3]
    return Outline(np.array([*vertices, points[-1]]), [*codes, Outline.LINETO])
