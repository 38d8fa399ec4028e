"""Expert for doors and keys by breadth-first search: exact, and without simulator steps."""

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import njit_cached
from aggrevated_experiments.where_it_pays.simulators.keys import (
    ACTIONS,
    CARRIED,
    COLOURS,
    GOAL,
    KEY,
    POSITION,
    Keys,
    is_barred,
    move,
)


@dataclass(frozen=True)
class BreadthFirst:
    """Q*(s, a): the steps to the goal after each action, including this step, for any horizon."""

    simulator: Keys
    name: str = "breadth-first search"

    def q(self, states: Array) -> Array:
        """Return Q* [n, 4]. Consecutive states with the same layout share one search."""
        q_values = np.empty((len(states), ACTIONS))
        _query_states(np.ascontiguousarray(states), self.simulator.side, 1 << self.simulator.doors, q_values)
        return q_values

    def act(self, states: Array, t: int) -> Array:
        """Return the first of the best actions, [n]."""
        actions: Array = self.q(states).argmin(axis=1)
        return actions


@njit_cached
def write_distances(state, side, masks, distance, queue):  # type: ignore[no-untyped-def]
    """Write the steps to the goal from each cell with each set of keys, [masks, cells]; −1 for unreachable.

    The search goes backwards from the goal. The predecessors of a cell are its neighbors, with the same
    keys or, where a key lies in the cell, without that key.
    """
    distance[:] = -1
    goal = int(state[GOAL])
    tail = 0
    for mask in range(masks):
        distance[mask, goal] = 0
        queue[tail, 0] = mask
        queue[tail, 1] = goal
        tail += 1
    head = 0
    while head < tail:
        mask, cell = queue[head]
        head += 1
        key_here = 0
        for color in range(COLOURS):
            if state[KEY + color] == cell:
                key_here = 1 << color
        if key_here & ~mask:
            continue  # this cell cannot be entered without taking its key
        for before in (mask, mask & ~key_here):
            if is_barred(state, before, cell):
                continue
            for neighbor in (cell - side, cell + side, cell - 1, cell + 1):
                if distance[before, neighbor] == -1 and not is_barred(state, before, neighbor):
                    distance[before, neighbor] = distance[mask, cell] + 1
                    queue[tail, 0] = before
                    queue[tail, 1] = neighbor
                    tail += 1


@njit_cached
def _query_states(states, side, masks, q_values):  # type: ignore[no-untyped-def]
    distance = np.empty((masks, side * side), np.int32)
    queue = np.empty((masks * side * side, 2), np.int64)
    for row in range(len(states)):
        state = states[row]
        if row == 0 or not np.array_equal(state[GOAL:], states[row - 1, GOAL:]):
            write_distances(state, side, masks, distance, queue)
        for action in range(ACTIONS):
            cell, carried = move(state, side, int(state[POSITION]), int(state[CARRIED]), action)
            q_values[row, action] = 1.0 + distance[carried, cell]
