"""Arc-eager transition system: Shift, Left, Right and Reduce.

Left makes the first symbol of the buffer the head of the top of the stack; Right makes the opposite arc and
shifts.
"""

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.transitions.configurations import (
    BUFFER,
    STACK,
    ConfigurationView,
    count_dependents,
    gather_entries,
    set_entries,
)

SHIFT, LEFT, RIGHT, REDUCE = range(4)


@dataclass(frozen=True)
class ArcEager:
    """Arc-eager transition system with ROOT at the bottom of the stack.

    A parse ends when the buffer is empty. Symbols without a head then count as errors.
    """

    name: str = "arc-eager"
    actions: tuple[str, ...] = ("shift", "left", "right", "reduce")
    order: tuple[int, ...] = (LEFT, RIGHT, REDUCE, SHIFT)
    action_arcs: tuple[tuple[int, int] | None, ...] = (None, (STACK, BUFFER), (BUFFER, STACK), None)

    def max_transitions(self, n: int) -> int:
        """Return 2n − 1: each symbol is pushed once and popped at most once."""
        return 2 * n - 1

    def is_done(self, rows: Array) -> Array:
        return ConfigurationView(rows).is_buffer_empty

    def action_mask(self, rows: Array) -> Array:
        view = ConfigurationView(rows)
        s = view.find_top()
        has_head = gather_entries(view.heads, s) >= 0
        going = ~view.is_buffer_empty
        return np.stack([going, going & (s > 0) & ~has_head, going, going & has_head], axis=1)

    def step(self, rows: Array, action: Array) -> Array:
        rows = rows.copy()
        view = ConfigurationView(rows)
        s = view.find_top()
        b = view.b.astype(np.int64)
        left = action == LEFT
        right = action == RIGHT
        set_entries(view.heads, left, s, b)
        set_entries(view.heads, right, b, s)
        set_entries(view.on_stack, left | (action == REDUCE), s, 0)
        pushes = right | (action == SHIFT)
        set_entries(view.on_stack, pushes, b, 1)
        view.b[pushes] += 1
        return rows

    def count_lost_arcs(self, rows: Array, gold: Array) -> Array:
        view = ConfigurationView(rows)
        s = view.find_top()
        b = view.b.astype(np.int64)
        on_stack = view.on_stack.astype(bool)
        behind = view.is_in_buffer(after=1)
        buffer = view.is_in_buffer()
        headless = on_stack & (view.heads < 0)
        gold_s = gather_entries(gold, s)
        gold_b = gather_entries(gold, b)
        in_buffer_of_s = count_dependents(gold, s, buffer)
        waiting_for_b = count_dependents(gold, b, headless)
        head_of_b_on_stack = gather_entries(on_stack, gold_b, False).astype(bool)
        left = in_buffer_of_s + gather_entries(behind, gold_s, False)
        right = waiting_for_b + (gather_entries(behind, gold_b, False) | (head_of_b_on_stack & (gold_b != s)))
        shift = waiting_for_b + head_of_b_on_stack
        return np.stack([shift, left, right, in_buffer_of_s], axis=1).astype(np.int64)

    def is_stack_arc_reachable(self, rows: Array, head: Array) -> Array:
        """Return False everywhere: every arc has an end in the buffer."""
        return np.zeros(head.shape, bool)
