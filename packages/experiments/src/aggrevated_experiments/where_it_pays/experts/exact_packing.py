"""The fewest bins, by exhaustive search: exact, and free of simulator steps. And what one would do by hand."""

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import njit_cached
from aggrevated_experiments.where_it_pays.simulators.packing import BINS, CAPACITY, ITEMS, PACKED, Packing


@dataclass(frozen=True)
class ExactPacking:
    """Q*(s, a): how many new bins the best packing of what is left takes, that of the action among them.

    In which order items come changes nothing, since all of them are known. Where an action is not legal, Q* is more
    than any packing takes.
    """

    simulator: Packing
    name: str = "exact packing"

    def q(self, states: Array) -> Array:
        """[n, 10]."""
        found = np.empty((len(states), CAPACITY))
        _query_states(np.ascontiguousarray(states), found)
        return found

    def act(self, states: Array, t: int) -> Array:
        """The first of the best actions: of several, the one that fills a bin most."""
        actions: Array = self.q(states).argmin(axis=1)
        return actions


@njit_cached
def is_packable(bins, items, count, chosen):  # type: ignore[no-untyped-def]
    """Whether the first `count` items, from large to small, fit into bins [11] that are counted by their room.

    The largest is tried in bins of all rooms, from the fullest; an item that fills a bin is best there, since whatever
    else were there could take its place; others that are alike go into bins of less and less room. `bins` stays
    what it is.
    """
    free = 0
    needed = 0
    for room in range(CAPACITY + 1):
        free += room * bins[room]
    for i in range(count):
        needed += items[i]
    if needed > free:
        return False
    i = 0
    back = False
    while 0 <= i < count:
        size = items[i]
        room = items[i]
        most = CAPACITY
        if i > 0 and items[i - 1] == size and chosen[i - 1] > size:
            most = chosen[i - 1]
        if back:  # take it out again, and try the next
            bins[chosen[i] - size] -= 1
            bins[chosen[i]] += 1
            room = CAPACITY + 1 if chosen[i] == size else chosen[i] + 1
        while room <= most and bins[room] == 0:
            room += 1
        back = room > most
        if back:
            i -= 1
        else:
            bins[room] -= 1
            bins[room - size] += 1
            chosen[i] = room
            i += 1
    fits = i == count
    for j in range(i - 1, -1, -1):
        bins[chosen[j] - items[j]] -= 1
        bins[chosen[j]] += 1
    return fits


@njit_cached
def count_new_bins(bins, items, count, chosen):  # type: ignore[no-untyped-def]
    """How many new bins these items take besides the open ones, at least."""
    new = 0
    while not is_packable(bins, items, count, chosen):
        new += 1
        bins[CAPACITY] += 1
    bins[CAPACITY] = 0
    return new


@njit_cached
def _query_states(states, found):  # type: ignore[no-untyped-def]
    count = states.shape[1] - ITEMS
    chosen = np.empty(count, np.int64)
    bins = np.empty(CAPACITY + 1, np.int64)
    for row in range(len(states)):
        state = states[row]
        put = state[PACKED]
        item = state[ITEMS + put]
        items = np.sort(state[ITEMS + put + 1 :])[::-1]
        bins[:CAPACITY] = state[BINS:ITEMS]
        bins[CAPACITY] = 0
        for room in range(1, CAPACITY + 1):
            new = room == CAPACITY
            if room < item or (bins[room] == 0 and not new):
                found[row, room - 1] = count + 1.0
                continue
            if not new:
                bins[room] -= 1
            bins[room - item] += 1
            found[row, room - 1] = new + count_new_bins(bins, items, len(items), chosen)
            bins[room - item] -= 1
            if not new:
                bins[room] += 1


@dataclass(frozen=True)
class BestFit:
    """A rule: into the fullest bin that has room for it."""

    simulator: Packing
    name: str = "best fit"

    def act(self, states: Array, t: int) -> Array:
        actions: Array = self.simulator.action_mask(states).argmax(axis=1)
        return actions


def count_first_fit_bins(items: Array) -> int:
    """How many bins the rule takes that puts an item into the oldest bin that has room for it."""
    bins: list[int] = []
    for item in map(int, items):
        place = next((i for i, room in enumerate(bins) if room >= item), len(bins))
        bins[place:] = [bins[place] - item, *bins[place + 1 :]] if place < len(bins) else [CAPACITY - item]
    return len(bins)


def compute_lower_bound(items: Array) -> int:
    """⌈Σ sizes / C⌉ bins, which no packing undercuts."""
    return -(-int(items.sum()) // CAPACITY)
