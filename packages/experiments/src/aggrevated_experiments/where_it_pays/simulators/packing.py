"""Simulator of bin packing, item by item: all items are known, and each goes into an open or a new bin."""

from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.simulators.tabular import hash_to_uniform

CAPACITY = 10
# sizes of items
MIN_ITEM = 2
MAX_ITEM = 7
# Columns of a state: number of packed items, open bins by their room, and the items in their order.
PACKED = 0
BINS = 1
ITEMS = 1 + CAPACITY
OBSERVATION_SIZE = (CAPACITY - 1) + 2 * (MAX_ITEM - MIN_ITEM + 1) + 1


@dataclass(frozen=True)
class Packing:
    """State [n, 11 + items] int16: number of packed items, number of bins with room for 0 … 9, and all items.

    Action a puts the item into a bin with room for a + 1; bins of equal room are interchangeable. The last
    action opens a new bin, which costs 1.
    """

    horizon: int = 12
    items: int = 12
    name: str = "packing"
    action_space = Discrete(CAPACITY)
    observation_space = Box(0.0, 1.0, (OBSERVATION_SIZE,), np.float32)

    def reset(self, seeds: Array) -> Array:
        """Return states without bins, with item sizes drawn uniformly from the seed."""
        states = np.zeros((len(seeds), ITEMS + self.items), np.int16)
        uniform = hash_to_uniform(np.asarray(seeds, np.uint64)[:, None], np.arange(self.items))
        states[:, ITEMS:] = MIN_ITEM + (uniform * (MAX_ITEM - MIN_ITEM + 1)).astype(np.int16)
        return states

    def observe(self, state: Array) -> Array:
        """Return [n, 22] float32: bins by room, the item, items to come by size, and the share of these.

        A count c becomes c/(c + 1), so that observations do not depend on the number of items.
        """
        sizes = np.arange(MIN_ITEM, MAX_ITEM + 1)
        bins = state[:, BINS + 1 : ITEMS].astype(np.float64)
        to_come = count_items_to_come(state)
        share = to_come.sum(axis=1, keepdims=True) / self.items
        item = get_current_item(state)[:, None] == sizes
        columns = [bins / (bins + 1), item, to_come / (to_come + 1), share]
        return np.concatenate(columns, axis=1).astype(np.float32)

    def action_mask(self, state: Array) -> Array:
        """Return the legal actions [n, 10]: bins that exist with room for the item, and always a new bin."""
        room = np.arange(1, CAPACITY + 1)
        exists = np.concatenate([state[:, BINS + 1 : ITEMS] > 0, np.ones((len(state), 1), bool)], axis=1)
        fits: Array = exists & (room >= get_current_item(state)[:, None])
        return fits

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Return next states, costs and whether all items are packed."""
        following = state.copy()
        rows = np.arange(len(state))
        room = np.asarray(action) + 1
        opened = room == CAPACITY
        following[rows, BINS + np.where(opened, 0, room)] -= ~opened
        following[rows, BINS + room - get_current_item(state)] += 1
        following[:, PACKED] += 1
        return following, opened.astype(np.float64), following[:, PACKED] == self.items


def get_current_item(state: Array) -> Array:
    """Return the size of the item to pack, [n]."""
    item: Array = np.take_along_axis(state, ITEMS + state[:, :1].astype(np.int64), axis=1)[:, 0]
    return item


def count_items_to_come(state: Array) -> Array:
    """Return the number of items of each size after this one, [n, sizes]."""
    later = np.arange(state.shape[1] - ITEMS) > state[:, :1]
    sizes = np.arange(MIN_ITEM, MAX_ITEM + 1)
    counts: Array = ((state[:, ITEMS:, None] == sizes) & later[..., None]).sum(axis=1)
    return counts
