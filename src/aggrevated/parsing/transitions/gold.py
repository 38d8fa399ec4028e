"""The expert of a parser: gold trees, known at training time only, and by them what every transition loses."""

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
    """[batch] the legal transition that loses least; of several the one that comes first in the system's order.

    From a configuration in which nothing is lost it is the static oracle: the gold sequence, arcs as early as can be.
    """
    costs = np.where(system.action_mask(rows), system.count_lost_arcs(rows, gold), NEVER)
    order = np.array(system.order)
    choice: Array = order[costs[:, order].argmin(axis=1)]
    return choice


def find_gold_transitions(system: TransitionSystem, heads: Array) -> list[int]:
    """The transitions that make this tree."""
    rows = make_initial_configurations(np.array([len(heads)]), len(heads))
    gold = add_root(heads, len(heads))[None]
    sequence = []
    while not system.is_done(rows)[0]:
        action = select_best_transition(system, rows, gold)
        sequence.append(int(action[0]))
        rows = system.step(rows, action)
    return sequence


def count_already_lost(system: TransitionSystem, rows: Array, gold: Array) -> Array:
    """[batch] how many gold arcs can no longer be made: to heads that are wrong, and between symbols that have passed.

    An arc can still be made while one of its ends is in the buffer and the other there or on the stack without a wrong
    head; which ones can be made between two on the stack, the system knows.
    """
    view = ConfigurationView(rows)
    wanted = (gold != NO_SYMBOL) & (np.arange(view.width) >= 1)
    given = view.heads >= 0
    mistaken = wanted & given & (view.heads != gold)
    buffer = view.is_in_buffer()
    on = view.on_stack.astype(bool)
    head = np.where(wanted, gold, 0)
    lane = np.arange(len(rows))[:, None]
    head_in_buffer = buffer[lane, head]
    head_on = on[lane, head]
    reachable = buffer & (head_in_buffer | head_on)
    reachable |= on & ~given & (head_in_buffer | system.is_stack_arc_reachable(rows, head))
    lost: Array = (mistaken | (wanted & ~given & ~reachable)).sum(axis=1)
    return lost
