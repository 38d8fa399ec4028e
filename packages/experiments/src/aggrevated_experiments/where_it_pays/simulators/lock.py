"""A combination lock: only opening it pays, and nothing before the last digit tells whether those so far were right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array

DIGITS = 4  # to choose from at each place


@dataclass(frozen=True)
class Lock:
    """State [n, 2] int64: how many digits were dialled, and whether all of them were right. Opening it costs −1.

    A wrong digit is a dead end, and looks like a right one: all that an episode tells without an expert is whether one
    of 4^L combinations opens the lock. Whoever learns from that alone, in whatever way, needs (4^L + 1)/2 episodes in
    the mean. Were it seen, or did a wrong digit lead back to the start, counting visits would do it in order of L.
    """

    horizon: int = 10
    length: int = 10
    combination_seed: int = 0
    name: str = "lock"
    action_space = Discrete(DIGITS)

    @property
    def observation_space(self) -> Box:
        return Box(0.0, 1.0, (self.length,), np.float32)

    @cached_property
    def combination(self) -> Array:
        """[L]: the right digits, those of this length and this seed in every episode of every run."""
        return np.random.default_rng([self.combination_seed, self.length]).integers(DIGITS, size=self.length)

    def reset(self, seeds: Array) -> Array:
        return np.tile(np.array([0, 1]), (len(seeds), 1))

    def observe(self, state: Array) -> Array:
        """[n, L] float32: which digit is next."""
        seen: Array = (state[:, :1] == np.arange(self.length)).astype(np.float32)
        return seen

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        dialled = state[:, 0]
        right = state[:, 1] * self.is_right(state, action)
        done = dialled + 1 >= self.length
        return np.stack([dialled + 1, right], axis=1), -(right * done).astype(np.float64), done

    def is_right(self, state: Array, action: Array | int) -> Array:
        """[n]: whether these digits are the right next ones."""
        right: Array = self.combination[np.minimum(state[:, 0], self.length - 1)] == action
        return right


@dataclass(frozen=True)
class LockExpert:
    """Who knows the combination: Q* in closed form. In a dead end no digit is better, and it dials the right one."""

    lock: Lock
    name: str = "knows the combination"

    def q(self, states: Array) -> Array:
        """Q*(s, ·) [n, A]: −1 for the right digit while all were right and there is time for the rest, else 0."""
        lock = self.lock
        opens = states[:, 1] * (lock.horizon >= lock.length)
        return np.stack([-1.0 * opens * lock.is_right(states, digit) for digit in range(DIGITS)], axis=1)

    def act(self, states: Array, t: int) -> Array:
        digits: Array = self.lock.combination[np.minimum(states[:, 0], self.lock.length - 1)]
        return digits
