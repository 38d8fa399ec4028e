"""Arc-hybrid transition system: Shift, Left and Right.

The head of the top of the stack becomes the first symbol of the buffer (Left) or the symbol below it (Right).
"""

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.transitions.configurations import (
    BELOW,
    BUFFER,
    NO_SYMBOL,
    STACK,
    ConfigurationView,
    count_dependents,
    gather_entries,
    set_entries,
)

SHIFT, LEFT, RIGHT = range(3)


@dataclass(frozen=True)
class ArcHybrid:
    """Arc-hybrid transition system with ROOT at the bottom of the stack.

    The last symbol above ROOT depends on ROOT. The last transition of a parse also makes that arc, as in the
    paper's appendix.
    """

    name: str = "arc-hybrid"
    actions: tuple[str, ...] = ("shift", "left", "right")
    order: tuple[int, ...] = (LEFT, RIGHT, SHIFT)
    action_arcs: tuple[tuple[int, int] | None, ...] = (None, (STACK, BUFFER), (STACK, BELOW))

    def max_transitions(self, n: int) -> int:
        """Return 2n − 1, which is also the smallest number."""
        return 2 * n - 1

    def is_done(self, rows: Array) -> Array:
        """Return whether the buffer is empty and at most one symbol is above ROOT, bool [batch]."""
        view = ConfigurationView(rows)
        ended: Array = view.is_buffer_empty & (view.on_stack.sum(axis=1) <= 2)
        return ended

    def action_mask(self, rows: Array) -> Array:
        view = ConfigurationView(rows)
        going = ~view.is_buffer_empty
        size = view.on_stack.sum(axis=1)
        return np.stack([going, going & (size >= 2), size >= 3], axis=1)

    def step(self, rows: Array, action: Array) -> Array:
        rows = rows.copy()
        view = ConfigurationView(rows)
        s = view.find_top()
        b = view.b.astype(np.int64)
        left = action == LEFT
        right = action == RIGHT
        shift = action == SHIFT
        set_entries(view.heads, left, s, b)
        set_entries(view.heads, right, s, view.find_top(below=s))
        set_entries(view.on_stack, left | right, s, 0)
        set_entries(view.on_stack, shift, b, 1)
        view.b[shift] += 1
        set_entries(view.heads, self.is_done(rows), view.find_top(), 0)
        return rows

    def count_lost_arcs(self, rows: Array, gold: Array) -> Array:
        view = ConfigurationView(rows)
        s = view.find_top()
        b = view.b.astype(np.int64)
        s2 = view.find_top(below=s)
        on = view.on_stack.astype(bool)
        behind = view.is_in_buffer(after=1)
        buffer = view.is_in_buffer()
        gold_s = gather_entries(gold, s)
        gold_b = gather_entries(gold, b)
        in_buffer_of_s = count_dependents(gold, s, buffer)
        left = in_buffer_of_s + (gather_entries(behind, gold_s, False) | ((gold_s == s2) & (s2 != NO_SYMBOL)))
        right = in_buffer_of_s + gather_entries(buffer, gold_s, False)
        shift = count_dependents(gold, b, on) + (gather_entries(on, gold_b, False).astype(bool) & (gold_b != s))
        return np.stack([shift, left, right], axis=1).astype(np.int64)

    def is_stack_arc_reachable(self, rows: Array, head: Array) -> Array:
        """Return where the head is the next symbol below on the stack: Right makes that arc."""
        view = ConfigurationView(rows)
        highest = np.maximum.accumulate(np.where(view.on_stack, np.arange(view.width), NO_SYMBOL), axis=1)
        next_below = np.concatenate([np.full((len(rows), 1), NO_SYMBOL), highest[:, :-1]], axis=1)
        reachable: Array = next_below == head
        return reachable
