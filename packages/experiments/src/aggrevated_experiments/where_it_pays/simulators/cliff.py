"""Simulator of a walk along a cliff in the wind: errors are cheap away from the edge and expensive at it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.simulators.tabular import hash_to_uniform

WIDTH = 8  # cells from the edge, 0, to the wall
MOVES = np.array([-1, 0, 1])  # towards the edge, straight on, away from it
WINDS = np.array([-1, 0, 1])  # displacement in cells
CHANCES = np.array([0.3, 0.5, 0.2])  # probability of each wind
LEVELS = np.linspace(-1.0, 1.0, 8)  # values of the two signs that indicate stones; none is 0, to avoid ties
STONES = 0.1  # cost of a step on the largest stone
FALL = 10.0  # cost of a fall, which ends the walk
NUMBERS = 5  # numbers of a state before its key
TIME, CELL, WIND, FIRST, SECOND = range(NUMBERS)


@dataclass(frozen=True)
class Cliff:
    """State [n, 6] uint64: time, cell, wind, both signs, and a key of the randomness to come.

    Wind and signs are those of the next step. Stones lie towards the edge where the product of the signs is
    positive, and away from it where it is negative. Networks of several units can learn that, one unit
    cannot.
    """

    horizon: int = 50
    name: str = "cliff"
    action_space = Discrete(len(MOVES))
    observation_space = Box(-1.0, 1.0, (4,), np.float32)

    def reset(self, seeds: Array) -> Array:
        """Return initial states in random cells."""
        keys = np.asarray(seeds, np.uint64)
        cells = (hash_to_uniform(keys, 0) * WIDTH).astype(np.uint64)
        return make_states(np.zeros(len(keys), np.uint64), cells, keys)

    def observe(self, state: Array) -> Array:
        """Return [n, 4] float32, each from −1 to 1: distance from the edge, wind, and both signs."""
        away = 2.0 * state[:, CELL] / (WIDTH - 1) - 1.0
        signs = LEVELS[state[:, FIRST]], LEVELS[state[:, SECOND]]
        return np.stack([away, WINDS[state[:, WIND]], *signs], axis=1).astype(np.float32)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Return next states, costs, and whether the walk ended by a fall."""
        cell = state[:, CELL].astype(np.int64) + MOVES[action] + WINDS[state[:, WIND]]
        falls = cell < 0
        cost = np.where(falls, FALL, compute_stone_costs(state[:, FIRST], state[:, SECOND], action))
        following = make_states(state[:, TIME] + np.uint64(1), cell.clip(0, WIDTH - 1).astype(np.uint64), state[:, -1])
        return following, cost, falls

    def reseed(self, state: Array, seeds: Array) -> Array:
        """Return the states with other future randomness."""
        changed = state.copy()
        changed[:, -1] = seeds
        return changed

    @cached_property
    def q_star(self) -> Array:
        """Return Q*_t(s, a) by dynamic programming, [H, cells, winds, levels, levels, A]."""
        cell, wind, first, second, action = np.indices((WIDTH, len(WINDS), *[len(LEVELS)] * 2, len(MOVES)))
        next_cell = cell + MOVES[action] + WINDS[wind]
        costs = np.where(next_cell < 0, FALL, compute_stone_costs(first, second, action))
        value = np.zeros(WIDTH)
        q_values = []
        for _ in range(self.horizon):
            q = costs + np.where(next_cell < 0, 0.0, value[next_cell.clip(0, WIDTH - 1)])
            value = CHANCES @ q.min(axis=-1).mean(axis=(2, 3)).T
            q_values.append(q)
        return np.stack(q_values[::-1])


def compute_stone_costs(first: Array, second: Array, action: Array) -> Array:
    """Return the cost of stones: their size on their side, half of it straight on, 0 on the other side."""
    side = LEVELS[first] * LEVELS[second]
    size: Array = STONES * (np.abs(side) - MOVES[action] * side) / 2
    return size


def make_states(time: Array, cell: Array, key: Array) -> Array:
    """Return states with wind and signs of that time drawn from their keys."""
    chances = CHANCES.cumsum()[:-1]
    index = time * np.uint64(3)
    wind = (hash_to_uniform(key, index + np.uint64(1))[:, None] >= chances).sum(axis=1)
    signs = [(hash_to_uniform(key, index + np.uint64(i)) * len(LEVELS)).astype(np.uint64) for i in (2, 3)]
    return np.stack([time, cell, wind.astype(np.uint64), *signs, key], axis=1)


@dataclass(frozen=True)
class CliffExpert:
    """An expert that knows the exact cost-to-go of every step."""

    cliff: Cliff
    name: str = "exact"

    def q(self, states: Array) -> Array:
        """Return Q*_t(s, ·), [n, A]."""
        time, *rest = (states[:, i].astype(np.int64) for i in range(NUMBERS))
        values: Array = self.cliff.q_star[(np.minimum(time, self.cliff.horizon - 1), *rest)]
        return values

    def act(self, states: Array, t: int) -> Array:
        """Return the best actions, [n]."""
        actions: Array = self.q(states).argmin(axis=1)
        return actions
