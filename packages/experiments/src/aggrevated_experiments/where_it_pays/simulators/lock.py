"""Simulator of a combination lock: only opening it pays, and wrong digits look like right ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array

DIGITS = 4  # choices for each digit


@dataclass(frozen=True)
class Lock:
    """State [n, 2] int64: number of dialed digits, and whether all were right. Opening the lock costs −1.

    A wrong digit leads to a dead end that looks like the right way. Without an expert, an episode only
    tests one of 4^L combinations, so that any method needs (4^L + 1)/2 episodes in the mean. If dead ends
    were visible, or led back to the start, counting visits would need on the order of L episodes.
    """

    horizon: int = 10
    length: int = 10
    combination_seed: int = 0
    name: str = "lock"
    action_space = Discrete(DIGITS)

    @property
    def observation_space(self) -> Box:
        """The space of one-hot positions [L]."""
        return Box(0.0, 1.0, (self.length,), np.float32)

    @cached_property
    def combination(self) -> Array:
        """Return the right digits [L]: the same for this length and seed in every episode of every run."""
        return np.random.default_rng([self.combination_seed, self.length]).integers(DIGITS, size=self.length)

    def reset(self, seeds: Array) -> Array:
        """Return states without dialed digits."""
        return np.tile(np.array([0, 1]), (len(seeds), 1))

    def observe(self, state: Array) -> Array:
        """Return [n, L] float32: the position of the next digit, one-hot."""
        observation: Array = (state[:, :1] == np.arange(self.length)).astype(np.float32)
        return observation

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Return next states, costs, and whether all digits are dialed."""
        dialed = state[:, 0]
        right = state[:, 1] * self.is_right(state, action)
        done = dialed + 1 >= self.length
        return np.stack([dialed + 1, right], axis=1), -(right * done).astype(np.float64), done

    def is_right(self, state: Array, action: Array | int) -> Array:
        """Return whether these digits are the right next ones, [n]."""
        right: Array = self.combination[np.minimum(state[:, 0], self.length - 1)] == action
        return right


@dataclass(frozen=True)
class LockExpert:
    """An expert that knows the combination: Q* in closed form, and the right digit even in dead ends."""

    lock: Lock
    name: str = "knows the combination"

    def q(self, states: Array) -> Array:
        """Return Q*(s, ·) [n, A]: −1 for the right digit if the lock can still be opened in time, else 0."""
        lock = self.lock
        opens = states[:, 1] * (lock.horizon >= lock.length)
        return np.stack([-1.0 * opens * lock.is_right(states, digit) for digit in range(DIGITS)], axis=1)

    def act(self, states: Array, t: int) -> Array:
        """Return the right digits, [n]."""
        digits: Array = self.lock.combination[np.minimum(states[:, 0], self.lock.length - 1)]
        return digits
