"""The way to the goal through doors and keys, by breadth-first search: exact, and free of simulator steps."""

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
    """Q*(s, a): the steps to the goal after each action, its own among them, whatever the horizon is."""

    simulator: Keys
    name: str = "breadth-first search"

    def q(self, states: Array) -> Array:
        """[n, 4]. A layout is searched once for all states in a row that have it."""
        found = np.empty((len(states), ACTIONS))
        _query_states(np.ascontiguousarray(states), self.simulator.side, 1 << self.simulator.doors, found)
        return found

    def act(self, states: Array, t: int) -> Array:
        """The first of the best actions."""
        actions: Array = self.q(states).argmin(axis=1)
        return actions


@njit_cached
def write_distances(state, side, masks, distance, queue):  # type: ignore[no-untyped-def]
    """Write the steps to the goal from every cell with every set of keys, [masks, cells], −1 where there is no way.

    It goes backwards from the goal: whoever is in a cell came there from beside it, with these keys or, where a key
    lies there, without that one.
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
        found = 0
        for colour in range(COLOURS):
            if state[KEY + colour] == cell:
                found = 1 << colour
        if found & ~mask:
            continue  # nobody is there without it
        for before in (mask, mask & ~found):
            if is_barred(state, before, cell):
                continue
            for beside in (cell - side, cell + side, cell - 1, cell + 1):
                if distance[before, beside] == -1 and not is_barred(state, before, beside):
                    distance[before, beside] = distance[mask, cell] + 1
                    queue[tail, 0] = before
                    queue[tail, 1] = beside
                    tail += 1


@njit_cached
def _query_states(states, side, masks, found):  # type: ignore[no-untyped-def]
    distance = np.empty((masks, side * side), np.int32)
    queue = np.empty((masks * side * side, 2), np.int64)
    for row in range(len(states)):
        state = states[row]
        if row == 0 or not np.array_equal(state[GOAL:], states[row - 1, GOAL:]):
            write_distances(state, side, masks, distance, queue)
        for action in range(ACTIONS):
            there, carried = move(state, side, int(state[POSITION]), int(state[CARRIED]), action)
            found[row, action] = 1.0 + distance[carried, there]
