"""Bin packing, item by item: all items are known from the start, and each is put into an open bin or into a new one."""

from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.simulators.tabular import hash_to_uniform

CAPACITY = 10
# items
MIN_ITEM = 2
MAX_ITEM = 7
# Places in a state: how many items were put away, the open bins by their room, and the items in their order.
PACKED = 0
BINS = 1
ITEMS = 1 + CAPACITY
OBSERVATION_SIZE = (CAPACITY - 1) + 2 * (MAX_ITEM - MIN_ITEM + 1) + 1


@dataclass(frozen=True)
class Packing:
    """State [n, 11 + items] int16: how many items were put away, how many bins have room for 0 … 9, and all items.

    Action a puts the item into a bin with room for a + 1, of which all are alike; the last one is a new bin, and
    costs 1.
    """

    horizon: int = 12
    items: int = 12
    name: str = "packing"
    action_space = Discrete(CAPACITY)
    observation_space = Box(0.0, 1.0, (OBSERVATION_SIZE,), np.float32)

    def reset(self, seeds: Array) -> Array:
        """No bin yet, and items of sizes that are drawn from the seed, each as likely as the others."""
        states = np.zeros((len(seeds), ITEMS + self.items), np.int16)
        luck = hash_to_uniform(np.asarray(seeds, np.uint64)[:, None], np.arange(self.items))
        states[:, ITEMS:] = MIN_ITEM + (luck * (MAX_ITEM - MIN_ITEM + 1)).astype(np.int16)
        return states

    def observe(self, state: Array) -> Array:
        """[n, 22] float32: bins by their room, the item, items to come by their sizes, and the share of these.

        A count c is seen as c/(c + 1), so that what is seen does not hang on how many items there are.
        """
        sizes = np.arange(MIN_ITEM, MAX_ITEM + 1)
        bins = state[:, BINS + 1 : ITEMS].astype(np.float64)
        to_come = count_items_to_come(state)
        share = to_come.sum(axis=1, keepdims=True) / self.items
        item = get_current_item(state)[:, None] == sizes
        seen = [bins / (bins + 1), item, to_come / (to_come + 1), share]
        return np.concatenate(seen, axis=1).astype(np.float32)

    def action_mask(self, state: Array) -> Array:
        """[n, 10]: where there is such a bin and the item fits into it; a new one can always be had."""
        room = np.arange(1, CAPACITY + 1)
        there = np.concatenate([state[:, BINS + 1 : ITEMS] > 0, np.ones((len(state), 1), bool)], axis=1)
        fits: Array = there & (room >= get_current_item(state)[:, None])
        return fits

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Put the item away."""
        following = state.copy()
        rows = np.arange(len(state))
        room = np.asarray(action) + 1
        opened = room == CAPACITY
        following[rows, BINS + np.where(opened, 0, room)] -= ~opened
        following[rows, BINS + room - get_current_item(state)] += 1
        following[:, PACKED] += 1
        return following, opened.astype(np.float64), following[:, PACKED] == self.items


def get_current_item(state: Array) -> Array:
    """[n]: the item that is to be put away."""
    item: Array = np.take_along_axis(state, ITEMS + state[:, :1].astype(np.int64), axis=1)[:, 0]
    return item


def count_items_to_come(state: Array) -> Array:
    """[n, sizes]: how many items of each size come after this one."""
    later = np.arange(state.shape[1] - ITEMS) > state[:, :1]
    sizes = np.arange(MIN_ITEM, MAX_ITEM + 1)
    counted: Array = ((state[:, ITEMS:, None] == sizes) & later[..., None]).sum(axis=1)
    return counted
