"""Experts for bin packing: exhaustive search, which takes no simulator steps, and simple rules."""

from dataclasses import dataclass

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import njit_cached
from aggrevated_experiments.where_it_pays.simulators.packing import BINS, CAPACITY, ITEMS, PACKED, Packing


@dataclass(frozen=True)
class ExactPacking:
    """Q*(s, a): the new bins of the best packing of the remaining items, including the bin of the action.

    The order of the items does not matter, since all are known. For illegal actions, Q* exceeds that of any
    packing.
    """

    simulator: Packing
    name: str = "exact packing"

    def q(self, states: Array) -> Array:
        """Return Q* [n, 10]."""
        q_values = np.empty((len(states), CAPACITY))
        _query_states(np.ascontiguousarray(states), q_values)
        return q_values

    def act(self, states: Array, t: int) -> Array:
        """Return the first of the best actions, [n]: it fills a bin most."""
        actions: Array = self.q(states).argmin(axis=1)
        return actions


@njit_cached
def is_packable(bins, items, count, chosen):  # type: ignore[no-untyped-def]
    """Return whether the first `count` items, from large to small, fit into bins [11] counted by their room.

    The search tries bins from the fullest. An item that fills a bin exactly is best there, since anything
    else in the bin could take its place. Equal items go into bins of decreasing room. `bins` is restored at
    the end.
    """
    free = 0
    total = 0
    for room in range(CAPACITY + 1):
        free += room * bins[room]
    for i in range(count):
        total += items[i]
    if total > free:
        return False
    i = 0
    back = False
    while 0 <= i < count:
        size = items[i]
        room = items[i]
        most = CAPACITY
        if i > 0 and items[i - 1] == size and chosen[i - 1] > size:
            most = chosen[i - 1]
        if back:  # undo this item, and try the next bin
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
    """Return the smallest number of new bins that these items take in addition to the open ones."""
    new = 0
    while not is_packable(bins, items, count, chosen):
        new += 1
        bins[CAPACITY] += 1
    bins[CAPACITY] = 0
    return new


@njit_cached
def _query_states(states, q_values):  # type: ignore[no-untyped-def]
    count = states.shape[1] - ITEMS
    chosen = np.empty(count, np.int64)
    bins = np.empty(CAPACITY + 1, np.int64)
    for row in range(len(states)):
        state = states[row]
        packed = state[PACKED]
        item = state[ITEMS + packed]
        items = np.sort(state[ITEMS + packed + 1 :])[::-1]
        bins[:CAPACITY] = state[BINS:ITEMS]
        bins[CAPACITY] = 0
        for room in range(1, CAPACITY + 1):
            new = room == CAPACITY
            if room < item or (bins[room] == 0 and not new):
                q_values[row, room - 1] = count + 1.0
                continue
            if not new:
                bins[room] -= 1
            bins[room - item] += 1
            q_values[row, room - 1] = new + count_new_bins(bins, items, len(items), chosen)
            bins[room - item] -= 1
            if not new:
                bins[room] += 1


@dataclass(frozen=True)
class BestFit:
    """A rule that puts each item into the fullest bin with room for it."""

    simulator: Packing
    name: str = "best fit"

    def act(self, states: Array, t: int) -> Array:
        """Return the actions of the rule, [n]."""
        actions: Array = self.simulator.action_mask(states).argmax(axis=1)
        return actions


def count_first_fit_bins(items: Array) -> int:
    """Return the number of bins if each item goes into the oldest bin with room for it."""
    bins: list[int] = []
    for item in map(int, items):
        index = next((i for i, room in enumerate(bins) if room >= item), len(bins))
        bins[index:] = [bins[index] - item, *bins[index + 1 :]] if index < len(bins) else [CAPACITY - item]
    return len(bins)


def compute_lower_bound(items: Array) -> int:
    """Return ⌈Σ sizes / C⌉, a lower bound on the bins of any packing."""
    return -(-int(items.sum()) // CAPACITY)
