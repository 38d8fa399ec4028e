"""Arc-eager: Shift, Left (the buffer's first heads the top of the stack), Right (the other way), Reduce.

ROOT lies at the bottom of the stack. A parse ends when the buffer is empty; a symbol without a head counts as wrong.
Gold heads are int [batch, N+1] with NONE for ROOT and beyond a sentence.
"""

import numpy as np

from aggrevated.arrays import Array
from aggrevated.parsing.transitions.configurations import View, at, dependents, put

NAME, ACTIONS = "arc-eager", ("shift", "left", "right", "reduce")
SHIFT, LEFT, RIGHT, REDUCE = range(4)
ORDER = (LEFT, RIGHT, REDUCE, SHIFT)  # of the expert's preference among transitions that lose nothing


def longest(n: int) -> int:
    """The most transitions of a parse of n symbols: each is pushed once and popped at most once."""
    return 2 * n - 1


def done(rows: Array) -> Array:
    """[batch] whether the parse has ended."""
    return View(rows).buffer_is_empty


def legal(rows: Array) -> Array:
    """[batch, 4] which transitions may be taken."""
    view = View(rows)
    s = view.top()
    has_head = at(view.heads, s) >= 0
    going = ~view.buffer_is_empty
    return np.stack([going, going & (s > 0) & ~has_head, going, going & has_head], axis=1)


def step(rows: Array, action: Array) -> Array:
    """The configurations after these transitions."""
    rows = rows.copy()
    view = View(rows)
    s, b = view.top(), view.b.astype(np.int64)
    left, right = action == LEFT, action == RIGHT
    put(view.heads, left, s, b)
    put(view.heads, right, b, s)
    put(view.on_stack, left | (action == REDUCE), s, 0)
    pushes = right | (action == SHIFT)
    put(view.on_stack, pushes, b, 1)
    view.b[pushes] += 1
    return rows


def lost(rows: Array, gold: Array) -> Array:
    """[batch, 4]: how many gold arcs that can still be made each transition puts out of reach (the dynamic oracle).

    Arc-eager is arc-decomposable: arcs that can each be reached can all be reached, so nothing else is ever lost and
    the cost-to-go of a transition is what it loses here. What it means for an illegal one is not defined.
    """
    view = View(rows)
    s, b = view.top(), view.b.astype(np.int64)
    on, behind, buffer = view.on_stack.astype(bool), view.in_buffer(after=1), view.in_buffer()
    headless = on & (view.heads < 0)
    gold_s, gold_b = at(gold, s), at(gold, b)
    in_buffer_of_s = dependents(gold, s, buffer)
    waiting_for_b = dependents(gold, b, headless)
    head_of_b_on_stack = at(on, gold_b, False).astype(bool)
    left = in_buffer_of_s + at(behind, gold_s, False)
    right = waiting_for_b + (at(behind, gold_b, False) | (head_of_b_on_stack & (gold_b != s)))
    shift = waiting_for_b + head_of_b_on_stack
    return np.stack([shift, left, right, in_buffer_of_s], axis=1).astype(np.int64)
