"""Arc-hybrid: Shift, Left (the buffer's first heads the top of the stack), Right (the second on the stack heads it).

ROOT lies at the bottom of the stack, and what is left above it at the end is its dependent: that arc is implicit, as in
the paper's appendix. A parse of n symbols always has 2n − 1 transitions.
"""

import numpy as np

from aggrevated.arrays import Array
from aggrevated.parsing.transitions.configurations import NONE, View, at, dependents, put

NAME, ACTIONS = "arc-hybrid", ("shift", "left", "right")
SHIFT, LEFT, RIGHT = range(3)
ORDER = (LEFT, RIGHT, SHIFT)  # of the expert's preference among transitions that lose nothing


def longest(n: int) -> int:
    """The transitions of a parse of n symbols."""
    return 2 * n - 1


def done(rows: Array) -> Array:
    """[batch] whether the parse has ended: nothing in the buffer, and one symbol above ROOT."""
    view = View(rows)
    ended: Array = view.buffer_is_empty & (view.on_stack.sum(axis=1) <= 2)
    return ended


def legal(rows: Array) -> Array:
    """[batch, 3] which transitions may be taken."""
    view = View(rows)
    going, size = ~view.buffer_is_empty, view.on_stack.sum(axis=1)
    return np.stack([going, going & (size >= 2), size >= 3], axis=1)


def step(rows: Array, action: Array) -> Array:
    """The configurations after these transitions; the last one of a parse makes the arc from ROOT, too."""
    rows = rows.copy()
    view = View(rows)
    s, b = view.top(), view.b.astype(np.int64)
    left, right, shift = action == LEFT, action == RIGHT, action == SHIFT
    put(view.heads, left, s, b)
    put(view.heads, right, s, view.top(below=s))
    put(view.on_stack, left | right, s, 0)
    put(view.on_stack, shift, b, 1)
    view.b[shift] += 1
    put(view.heads, done(rows), view.top(), 0)
    return rows


def lost(rows: Array, gold: Array) -> Array:
    """[batch, 3]: how many gold arcs that can still be made each transition puts out of reach (the dynamic oracle)."""
    view = View(rows)
    s, b = view.top(), view.b.astype(np.int64)
    s2 = view.top(below=s)
    on, behind, buffer = view.on_stack.astype(bool), view.in_buffer(after=1), view.in_buffer()
    gold_s, gold_b = at(gold, s), at(gold, b)
    in_buffer_of_s = dependents(gold, s, buffer)
    left = in_buffer_of_s + (at(behind, gold_s, False) | ((gold_s == s2) & (s2 != NONE)))
    right = in_buffer_of_s + at(buffer, gold_s, False)
    shift = dependents(gold, b, on) + (at(on, gold_b, False).astype(bool) & (gold_b != s))
    return np.stack([shift, left, right], axis=1).astype(np.int64)
