"""Finite MDPs as arrays: exact values and state distributions by dynamic programming, and the same MDP as a simulator.

The functions take any number of leading axes, so that many MDPs are solved at once: transitions [..., S, A, S], costs
[..., S, A] (expected ones, c̄), start [..., S], policies [..., H, S, A].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array

# ---- dynamic programming


def compute_optimal_q(transitions: Array, costs: Array, horizon: int) -> Array:
    """Q*_t(s, a) for the best policy, [..., H, S, A]."""
    q = [costs]
    for _ in range(horizon - 1):
        q.append(costs + np.einsum("...sax,...x->...sa", transitions, q[-1].min(axis=-1)))
    return np.stack(q[::-1], axis=-3)


def compute_policy_q_values(transitions: Array, costs: Array, policy: Array) -> Array:
    """Q^π_t(s, a), [..., H, S, A]."""
    horizon = policy.shape[-3]
    q = [np.broadcast_to(costs, policy.shape[:-3] + costs.shape[-2:])]
    for t in range(horizon - 1, 0, -1):
        value = (policy[..., t, :, :] * q[-1]).sum(axis=-1)
        q.append(costs + np.einsum("...sax,...x->...sa", transitions, value))
    return np.stack(q[::-1], axis=-3)


def compute_state_distributions(transitions: Array, start: Array, policy: Array) -> Array:
    """d_t^π(s), [..., H, S]."""
    states = start.shape[-1]
    d = [np.broadcast_to(start, (*policy.shape[:-3], states))]
    matrices = transitions.reshape(*transitions.shape[:-3], -1, states)  # [..., S·A, S]
    for t in range(policy.shape[-3] - 1):
        taken = d[-1][..., None] * policy[..., t, :, :]  # [..., S, A]
        d.append((taken.reshape(*taken.shape[:-2], 1, -1) @ matrices)[..., 0, :])
    return np.stack(d, axis=-2)


def compute_total_cost(transitions: Array, costs: Array, start: Array, policy: Array) -> Array:
    """μ(π), [...]."""
    d = compute_state_distributions(transitions, start, policy)
    total: Array = (d[..., None] * policy * costs[..., None, :, :]).sum(axis=(-3, -2, -1))
    return total


def make_greedy_policy(q: Array) -> Array:
    """The policy that takes the cheapest action, [..., S, A], the first of several."""
    policy: Array = np.eye(q.shape[-1])[q.argmin(axis=-1)]
    return policy


def sample_categorical(probabilities: Array, generator: np.random.Generator) -> Array:
    """[...] one index each, drawn from distributions [..., n]."""
    luck = generator.random(probabilities.shape[:-1])
    index: Array = (luck[..., None] >= probabilities.cumsum(axis=-1)).sum(axis=-1)
    return index.clip(0, probabilities.shape[-1] - 1)


# ---- the MDPs of the theorems


def make_random_mdps(count: int, states: int, actions: int, seed: int) -> tuple[Array, Array, Array]:
    """(transitions [count, S, A, S], costs, start): Dirichlet next states, uniform expected costs in [0, 1]."""
    generator = np.random.default_rng(seed)
    transitions = generator.dirichlet(np.full(states, 0.5), (count, states, actions))
    return transitions, generator.random((count, states, actions)), generator.dirichlet(np.ones(states), count)


# ---- as a simulator, for Algorithm 1


@dataclass(frozen=True)
class TabularSimulator:
    """State [n, 3] uint64: s, t, and a key from which the chances to come are drawn. Costs are 0 or 1, with mean c̄."""

    transitions: Array  # [S, A, S]
    costs: Array  # [S, A], expected
    start: Array  # [S]
    horizon: int
    name: str = "tabular"

    def __post_init__(self) -> None:
        assert ((self.costs >= 0) & (self.costs <= 1)).all(), "costs are 0 or 1, so their means lie between"

    @property
    def action_space(self) -> Discrete:
        return Discrete(self.costs.shape[1])

    @property
    def observation_space(self) -> Box:
        return Box(0.0, 1.0, (self.horizon * len(self.costs),), np.float32)

    @cached_property
    def thresholds(self) -> Array:
        """[S, A, S]: the distribution functions of the next state."""
        cumulative: Array = self.transitions.cumsum(axis=2)
        return cumulative

    @cached_property
    def q_star(self) -> Array:
        """[H, S, A]."""
        return compute_optimal_q(self.transitions, self.costs, self.horizon)

    def reset(self, seeds: Array) -> Array:
        key = np.asarray(seeds, np.uint64)
        s = np.searchsorted(self.start.cumsum(), hash_to_uniform(key, 0), side="right")
        return np.stack([s.clip(0, len(self.start) - 1), np.zeros_like(s), key], axis=1).astype(np.uint64)

    def reseed(self, state: Array, seeds: Array) -> Array:
        """The same s and t, with other luck ahead."""
        state = state.copy()
        state[:, 2] = seeds
        return state

    def observe(self, state: Array) -> Array:
        """[n, H·S] float32: which (t, s) it is."""
        seen = np.zeros((len(state), self.horizon * len(self.costs)), np.float32)
        seen[np.arange(len(state)), state[:, 1] * np.uint64(len(self.costs)) + state[:, 0]] = 1.0
        return seen

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        s = state[:, 0].astype(np.int64)
        t = state[:, 1]
        key = state[:, 2]
        luck = hash_to_uniform(key, 2 * t + np.uint64(1))
        following = (luck[:, None] >= self.thresholds[s, action]).sum(axis=1).clip(0, len(self.start) - 1)
        cost = (hash_to_uniform(key, 2 * t + np.uint64(2)) < self.costs[s, action]).astype(np.float64)
        return np.stack([following.astype(np.uint64), t + np.uint64(1), key], axis=1), cost, np.zeros(len(s), bool)


@dataclass(frozen=True)
class TabularExpert:
    """π* and the exact Q* of a tabular MDP."""

    mdp: TabularSimulator
    name: str = "exact"

    def q(self, states: Array) -> Array:
        """Q*_t(s, ·), [n, A]."""
        values: Array = self.mdp.q_star[states[:, 1].astype(np.int64), states[:, 0].astype(np.int64)]
        return values

    def act(self, states: Array, t: int) -> Array:
        actions: Array = self.q(states).argmin(axis=1)
        return actions


def hash_to_uniform(key: Array, index: Array | int) -> Array:
    """[n] numbers in [0, 1), a function of key and index only (the SplitMix64 mixing function)."""
    with np.errstate(over="ignore"):
        z = key + (np.asarray(index, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    number: Array = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return number
