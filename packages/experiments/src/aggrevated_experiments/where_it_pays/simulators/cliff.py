"""A walk along a cliff in the wind: a wrong step costs very little almost everywhere, and very much near the edge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.simulators.tabular import hash_to_uniform

WIDTH = 8  # cells from the edge, 0, to the wall
MOVES = np.array([-1, 0, 1])  # towards the edge, straight on, away from it
WINDS = np.array([-1, 0, 1])  # cells that it carries
CHANCES = np.array([0.3, 0.5, 0.2])  # of each wind
LEVELS = np.linspace(-1.0, 1.0, 8)  # of each of the two signs by which stones can be told; none is 0, so nothing ties
STONES = 0.1  # what a step on the largest of them costs
FALL = 10.0  # what a fall costs, after which the walk is over
NUMBERS = 5  # of a state
TIME, CELL, WIND, FIRST, SECOND = range(NUMBERS)  # before the key


@dataclass(frozen=True)
class Cliff:
    """State [n, 6] uint64: time, cell, wind, both signs, and a key from which the luck to come is drawn.

    Wind and signs are those of the step to come. Stones lie towards the edge where the signs' product is positive,
    away from it where it is negative: their side is easily told by a network of some units, and not by one unit.
    """

    horizon: int = 50
    name: str = "cliff"
    action_space = Discrete(len(MOVES))
    observation_space = Box(-1.0, 1.0, (4,), np.float32)

    def reset(self, seeds: Array) -> Array:
        keys = np.asarray(seeds, np.uint64)
        cells = (hash_to_uniform(keys, 0) * WIDTH).astype(np.uint64)
        return make_states(np.zeros(len(keys), np.uint64), cells, keys)

    def observe(self, state: Array) -> Array:
        """[n, 4] float32, each from −1 to 1: how far the edge is, the wind, and both signs."""
        away = 2.0 * state[:, CELL] / (WIDTH - 1) - 1.0
        signs = LEVELS[state[:, FIRST]], LEVELS[state[:, SECOND]]
        return np.stack([away, WINDS[state[:, WIND]], *signs], axis=1).astype(np.float32)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        cell = state[:, CELL].astype(np.int64) + MOVES[action] + WINDS[state[:, WIND]]
        falls = cell < 0
        cost = np.where(falls, FALL, compute_stone_costs(state[:, FIRST], state[:, SECOND], action))
        following = make_states(state[:, TIME] + np.uint64(1), cell.clip(0, WIDTH - 1).astype(np.uint64), state[:, -1])
        return following, cost, falls

    def reseed(self, state: Array, seeds: Array) -> Array:
        """The same states with other luck ahead."""
        changed = state.copy()
        changed[:, -1] = seeds
        return changed

    @cached_property
    def q_star(self) -> Array:
        """Q*_t(s, a) by dynamic programming, [H, cells, winds, levels, levels, A]."""
        cell, wind, first, second, action = np.indices((WIDTH, len(WINDS), *[len(LEVELS)] * 2, len(MOVES)))
        after = cell + MOVES[action] + WINDS[wind]
        now = np.where(after < 0, FALL, compute_stone_costs(first, second, action))
        value = np.zeros(WIDTH)
        found = []
        for _ in range(self.horizon):
            q = now + np.where(after < 0, 0.0, value[after.clip(0, WIDTH - 1)])
            value = CHANCES @ q.min(axis=-1).mean(axis=(2, 3)).T
            found.append(q)
        return np.stack(found[::-1])


def compute_stone_costs(first: Array, second: Array, action: Array) -> Array:
    """What is stepped on: on the side of the stones their size, straight on half of it, on the other side nothing."""
    side = LEVELS[first] * LEVELS[second]
    size: Array = STONES * (np.abs(side) - MOVES[action] * side) / 2
    return size


def make_states(time: Array, cell: Array, key: Array) -> Array:
    """States with wind and signs of that time drawn from their keys."""
    chances = CHANCES.cumsum()[:-1]
    index = time * np.uint64(3)
    wind = (hash_to_uniform(key, index + np.uint64(1))[:, None] >= chances).sum(axis=1)
    signs = [(hash_to_uniform(key, index + np.uint64(i)) * len(LEVELS)).astype(np.uint64) for i in (2, 3)]
    return np.stack([time, cell, wind.astype(np.uint64), *signs, key], axis=1)


@dataclass(frozen=True)
class CliffExpert:
    """Who knows what every step costs to the end, exactly."""

    cliff: Cliff
    name: str = "exact"

    def q(self, states: Array) -> Array:
        """Q*_t(s, ·), [n, A]."""
        time, *rest = (states[:, i].astype(np.int64) for i in range(NUMBERS))
        values: Array = self.cliff.q_star[(np.minimum(time, self.cliff.horizon - 1), *rest)]
        return values

    def act(self, states: Array, t: int) -> Array:
        actions: Array = self.q(states).argmin(axis=1)
        return actions
