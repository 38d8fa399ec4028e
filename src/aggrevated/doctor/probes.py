"""Experiments that the checks share: rollouts with a discount, and experts whose actions are perturbed."""

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
    """What it cost to take an action and then to follow the expert to the horizon."""

    discounts: tuple[float, ...]
    costs: Array  # [discounts, n]; NaN where the simulation diverged
    left: Array  # [n]: how many steps there were
    cut: Array  # [n] bool: whether the horizon ended it, and not the environment
    following: Array  # [n, ...]: the states after the first action
    first_cost: Array  # [n]
    first_done: Array  # [n] bool

    def get_costs(self, discount: float) -> Array:
        """[n]: the costs with this discount."""
        found: Array = self.costs[self.discounts.index(discount)]
        return found

    def estimate_infinite_costs(self, discount: float, usual: float) -> Array:
        """[n]: the same if those that the horizon cut went on for ever at the usual cost of a step."""
        if discount == 1.0:
            return self.get_costs(discount)
        return self.get_costs(discount) + self.cut * discount**self.left * usual / (1.0 - discount)


def run_discounted_rollouts(
    simulator: Simulator, expert: Expert, states: Array, times: Array, first: Array, discounts: tuple[float, ...]
) -> DiscountedRollouts:
    """Take `first` in `states` at `times`, then follow the expert to the horizon; one batch for all."""
    n = len(states)
    space = simulator.action_space
    costs = np.zeros((len(discounts), n))
    left = np.zeros(n, int)
    cut = np.zeros(n, bool)
    following, cost, done = step_and_check(simulator, states, first)
    first_cost = cost
    first_done = done
    afterwards = following
    weight = np.ones((len(discounts), n))
    costs += cost
    left += 1
    lanes = np.flatnonzero(~done)
    state = following[~done]
    now = times + 1
    for t in range(int(times.min(initial=0)) + 1, simulator.horizon):
        here = now[lanes] == t  # the others join later: whoever depends on t is asked rightly
        if not here.any():
            continue
        rows = lanes[here]
        with add_error_position(rows=rows, step=t):
            action = query_actions(expert, state[here], t, space)
            following, cost, done = step_and_check(simulator, state[here], action)
        weight[:, rows] *= np.array(discounts)[:, None]
        costs[:, rows] += weight[:, rows] * cost
        left[rows] += 1
        now[rows] += 1
        state = state.copy()
        state[here] = following
        over = np.zeros(len(lanes), bool)
        over[here] = done
        lanes = lanes[~over]
        state = state[~over]
    cut[lanes] = True
    return DiscountedRollouts(discounts, costs, left, cut, afterwards, first_cost, first_done)


FAR = 1.0  # how far actions go where the space has no bounds


@dataclass(frozen=True)
class UniformActor:
    """Every legal action alike; of vectors every one within the bounds."""

    space: Discrete | Box

    def memory(self, count: int) -> Array:
        return np.zeros((count, 0), np.float32)

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        size = int(self.space.n) if isinstance(self.space, Discrete) else int(np.prod(self.space.shape))
        drawn = np.stack([generator.random((horizon, size), np.float32) for generator in generators])
        return gumbel(drawn) if isinstance(self.space, Discrete) else drawn

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        return np.zeros((len(observation), 1), np.float32), memory

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        drawn = np.asarray(noise)
        if isinstance(self.space, Discrete):
            chosen: Array = (drawn if legal is None else np.where(legal, drawn, -np.inf)).argmax(axis=1)
            return chosen
        low, high = find_action_bounds(self.space)
        vectors: Array = low + (high - low) * drawn
        return vectors


def find_action_bounds(space: Box) -> tuple[Array, Array]:
    """(low, high) [A], where there are none some that are usual."""
    low = np.asarray(space.low, float).ravel()
    high = np.asarray(space.high, float).ravel()
    return np.where(np.isfinite(low), low, -FAR), np.where(np.isfinite(high), high, FAR)


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
