"""Expert of the parser: gold trees, known only during training, and the gold arcs that transitions lose."""

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.parsing.transitions.configurations import (
    NO_SYMBOL,
    ConfigurationView,
    add_root,
    make_initial_configurations,
)

NEVER = np.iinfo(np.int64).max


def select_best_transition(system: TransitionSystem, rows: Array, gold: Array) -> Array:
    """Return the legal transition that loses the fewest gold arcs, int [batch].

    Ties go to the transition that comes first in the system's `order`. In a configuration without lost arcs
    this is the static oracle: the gold sequence that makes each arc as early as possible.

    Args:
        system: transition system of the configurations.
        rows: configurations, int16 [batch, 2 + 2(N+1)].
        gold: gold heads, int [batch, N+1].

    Returns:
        Actions, int [batch].
    """
    costs = np.where(system.action_mask(rows), system.count_lost_arcs(rows, gold), NEVER)
    order = np.array(system.order)
    choice: Array = order[costs[:, order].argmin(axis=1)]
    return choice


def find_gold_transitions(system: TransitionSystem, heads: Array) -> list[int]:
    """Return the transitions that make the tree with these heads [n]."""
    rows = make_initial_configurations(np.array([len(heads)]), len(heads))
    gold = add_root(heads, len(heads))[None]
    sequence = []
    while not system.is_done(rows)[0]:
        action = select_best_transition(system, rows, gold)
        sequence.append(int(action[0]))
        rows = system.step(rows, action)
    return sequence


def count_already_lost(system: TransitionSystem, rows: Array, gold: Array) -> Array:
    """Return how many gold arcs can no longer be made, int [batch].

    An arc is reachable while one end is in the buffer and the other is in the buffer or on the stack, and its
    dependent has no other head. The system says which arcs between two symbols on the stack are reachable.
    """
    view = ConfigurationView(rows)
    has_gold_head = (gold != NO_SYMBOL) & (np.arange(view.width) >= 1)
    has_head = view.heads >= 0
    wrong = has_gold_head & has_head & (view.heads != gold)
    buffer = view.is_in_buffer()
    on_stack = view.on_stack.astype(bool)
    head = np.where(has_gold_head, gold, 0)
    row = np.arange(len(rows))[:, None]
    head_in_buffer = buffer[row, head]
    head_on_stack = on_stack[row, head]
    reachable = buffer & (head_in_buffer | head_on_stack)
    reachable |= on_stack & ~has_head & (head_in_buffer | system.is_stack_arc_reachable(rows, head))
    lost: Array = (wrong | (has_gold_head & ~has_head & ~reachable)).sum(axis=1)
    return lost
