"""Experiments that the checks share: rollouts with several discounts, and experts whose actions are changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.random import Generator

from aggrevated.core.arrays import Array
from aggrevated.core.user_code import add_error_position
from aggrevated.experts import Expert
from aggrevated.experts.checked import query_actions
from aggrevated.kernels.elementary_functions import gumbel
from aggrevated.simulators import Simulator
from aggrevated.simulators.checked import step_and_check


@dataclass(frozen=True)
class DiscountedRollouts:
    """Costs of taking an action and then following the expert to the horizon.

    Attributes:
        discounts: The discounts.
        costs: [discounts, n] costs-to-go; NaN where the simulation diverged.
        left: [n] number of steps.
        cut: [n] bool, whether the horizon ended the rollout rather than the environment.
        following: [n, ...] states after the first action.
        first_cost: [n] cost of the first action.
        first_done: [n] bool, whether the first action ended the episode.
    """

    discounts: tuple[float, ...]
    costs: Array
    left: Array
    cut: Array
    following: Array
    first_cost: Array
    first_done: Array

    def get_costs(self, discount: float) -> Array:
        """Return the costs-to-go [n] with one of the discounts."""
        costs: Array = self.costs[self.discounts.index(discount)]
        return costs

    def estimate_infinite_costs(self, discount: float, step_cost: float) -> Array:
        """Return the costs-to-go [n], with rollouts that the horizon cut extended for ever at a cost per step."""
        if discount == 1.0:
            return self.get_costs(discount)
        return self.get_costs(discount) + self.cut * discount**self.left * step_cost / (1.0 - discount)


def run_discounted_rollouts(
    simulator: Simulator, expert: Expert, states: Array, times: Array, first: Array, discounts: tuple[float, ...]
) -> DiscountedRollouts:
    """Take an action in each state, then follow the expert to the horizon, in one batch.

    Args:
        simulator: The simulator.
        expert: The expert.
        states: [n, ...] states to start from.
        times: [n] their times.
        first: [n] or [n, A] actions to take first.
        discounts: The discounts of the costs.
    """
    n = len(states)
    space = simulator.action_space
    costs = np.zeros((len(discounts), n))
    left = np.zeros(n, int)
    cut = np.zeros(n, bool)
    following, cost, done = step_and_check(simulator, states, first)
    first_cost = cost
    first_done = done
    first_following = following
    weight = np.ones((len(discounts), n))
    costs += cost
    left += 1
    running = np.flatnonzero(~done)
    state = following[~done]
    current_times = times + 1
    for t in range(int(times.min(initial=0)) + 1, simulator.horizon):
        active = current_times[running] == t  # the others start later, so that the expert is queried at the right t
        if not active.any():
            continue
        rows = running[active]
        with add_error_position(rows=rows, step=t):
            action = query_actions(expert, state[active], t, space)
            following, cost, done = step_and_check(simulator, state[active], action)
        weight[:, rows] *= np.array(discounts)[:, None]
        costs[:, rows] += weight[:, rows] * cost
        left[rows] += 1
        current_times[rows] += 1
        state = state.copy()
        state[active] = following
        ended = np.zeros(len(running), bool)
        ended[active] = done
        running = running[~ended]
        state = state[~ended]
    cut[running] = True
    return DiscountedRollouts(discounts, costs, left, cut, first_following, first_cost, first_done)


DEFAULT_BOUND = 1.0  # absolute value of actions where the space has no bounds


@dataclass(frozen=True)
class UniformActor:
    """An actor that samples uniformly from the legal actions, or from the vectors within the bounds."""

    space: Discrete | Box

    def memory(self, count: int) -> Array:
        return np.zeros((count, 0), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        size = int(self.space.n) if isinstance(self.space, Discrete) else int(np.prod(self.space.shape))
        uniform = np.stack([generator.random((horizon, size), np.float32) for generator in generators])
        return gumbel(uniform) if isinstance(self.space, Discrete) else uniform

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        return np.zeros((len(observation), 1), np.float32), memory

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        sample = np.asarray(noise)
        if isinstance(self.space, Discrete):
            actions: Array = (sample if legal is None else np.where(legal, sample, -np.inf)).argmax(axis=1)
            return actions
        low, high = find_action_bounds(self.space)
        vectors: Array = low + (high - low) * sample
        return vectors


def find_action_bounds(space: Box) -> tuple[Array, Array]:
    """Return the bounds (low, high) [A] of the actions, with defaults where the space has none."""
    low = np.asarray(space.low, float).ravel()
    high = np.asarray(space.high, float).ravel()
    low = np.where(np.isfinite(low), low, -DEFAULT_BOUND)
    return low, np.where(np.isfinite(high), high, DEFAULT_BOUND)


@dataclass(frozen=True)
class PerturbedExpert:
    """An expert whose actions are changed before they are taken."""

    expert: Expert
    change: Callable[[Array], Array]

    @property
    def name(self) -> str:
        return self.expert.name

    def act(self, states: Array, t: int) -> Array:
        return self.change(np.asarray(self.expert.act(states, t)))
