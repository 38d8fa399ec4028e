"""Finite MDPs: exact values and state distributions by dynamic programming, and a simulator of such an MDP.

The functions take any number of leading axes, to solve many MDPs at once: transitions [..., S, A, S],
expected costs c̄ [..., S, A], start [..., S], policies [..., H, S, A].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array

# ---- dynamic programming


def compute_optimal_q(transitions: Array, costs: Array, horizon: int) -> Array:
    """Return Q*_t(s, a) of the best policy, [..., H, S, A]."""
    q = [costs]
    for _ in range(horizon - 1):
        q.append(costs + np.einsum("...sax,...x->...sa", transitions, q[-1].min(axis=-1)))
    return np.stack(q[::-1], axis=-3)


def compute_policy_q_values(transitions: Array, costs: Array, policy: Array) -> Array:
    """Return Q^π_t(s, a), [..., H, S, A]."""
    horizon = policy.shape[-3]
    q = [np.broadcast_to(costs, policy.shape[:-3] + costs.shape[-2:])]
    for t in range(horizon - 1, 0, -1):
        value = (policy[..., t, :, :] * q[-1]).sum(axis=-1)
        q.append(costs + np.einsum("...sax,...x->...sa", transitions, value))
    return np.stack(q[::-1], axis=-3)


def compute_state_distributions(transitions: Array, start: Array, policy: Array) -> Array:
    """Return d_t^π(s), [..., H, S]."""
    states = start.shape[-1]
    d = [np.broadcast_to(start, (*policy.shape[:-3], states))]
    matrices = transitions.reshape(*transitions.shape[:-3], -1, states)  # [..., S·A, S]
    for t in range(policy.shape[-3] - 1):
        joint = d[-1][..., None] * policy[..., t, :, :]  # [..., S, A]
        d.append((joint.reshape(*joint.shape[:-2], 1, -1) @ matrices)[..., 0, :])
    return np.stack(d, axis=-2)


def compute_total_cost(transitions: Array, costs: Array, start: Array, policy: Array) -> Array:
    """Return the expected total cost μ(π), [...]."""
    d = compute_state_distributions(transitions, start, policy)
    total: Array = (d[..., None] * policy * costs[..., None, :, :]).sum(axis=(-3, -2, -1))
    return total


def make_greedy_policy(q: Array) -> Array:
    """Return the policy [..., S, A] that takes the first of the cheapest actions."""
    policy: Array = np.eye(q.shape[-1])[q.argmin(axis=-1)]
    return policy


def sample_categorical(probabilities: Array, generator: np.random.Generator) -> Array:
    """Return one index [...] drawn from each distribution [..., n]."""
    uniform = generator.random(probabilities.shape[:-1])
    index: Array = (uniform[..., None] >= probabilities.cumsum(axis=-1)).sum(axis=-1)
    return index.clip(0, probabilities.shape[-1] - 1)


# ---- the MDPs of the theorems


def make_random_mdps(count: int, states: int, actions: int, seed: int) -> tuple[Array, Array, Array]:
    """Return (transitions, costs, start) of random MDPs: Dirichlet next states, uniform costs in [0, 1]."""
    generator = np.random.default_rng(seed)
    transitions = generator.dirichlet(np.full(states, 0.5), (count, states, actions))
    return transitions, generator.random((count, states, actions)), generator.dirichlet(np.ones(states), count)


# ---- a simulator, for Algorithm 1


@dataclass(frozen=True)
class TabularSimulator:
    """A finite MDP as a batched simulator; costs are 0 or 1, with means c̄.

    A state is uint64 [3]: s, t, and a key from which the random numbers to come are computed.

    Args:
        transitions: probabilities P(s′ | s, a), [S, A, S].
        costs: expected costs c̄(s, a), [S, A], in [0, 1].
        start: distribution ρ₀ of the first state, [S].
        horizon: H, the number of steps of an episode.
        name: name in messages and files.

    Example:
        >>> two_states = TabularSimulator(np.full((2, 2, 2), 0.5), np.eye(2), np.array([1.0, 0.0]), horizon=3)
        >>> two_states.q_star[0]
        array([[1., 0.],
               [0., 1.]])
    """

    transitions: Array
    costs: Array
    start: Array
    horizon: int
    name: str = "tabular"

    def __post_init__(self) -> None:
        assert ((self.costs >= 0) & (self.costs <= 1)).all(), (
            "expected costs must lie in [0, 1], since costs are 0 or 1"
        )

    @property
    def action_space(self) -> Discrete:
        """Space of the A actions."""
        return Discrete(self.costs.shape[1])

    @property
    def observation_space(self) -> Box:
        """Space of one-hot vectors of (t, s), [H·S]."""
        return Box(0.0, 1.0, (self.horizon * len(self.costs),), np.float32)

    @cached_property
    def thresholds(self) -> Array:
        """Cumulative distributions of the next state, [S, A, S]."""
        cumulative: Array = self.transitions.cumsum(axis=2)
        return cumulative

    @cached_property
    def q_star(self) -> Array:
        """Exact Q*_t(s, a), [H, S, A]."""
        return compute_optimal_q(self.transitions, self.costs, self.horizon)

    def reset(self, seeds: Array) -> Array:
        """Return initial states drawn from ρ₀.

        Args:
            seeds: one seed per episode, [n]; it becomes the key of the state.

        Returns:
            States, uint64 [n, 3].
        """
        key = np.asarray(seeds, np.uint64)
        s = np.searchsorted(self.start.cumsum(), hash_to_uniform(key, 0), side="right")
        return np.stack([s.clip(0, len(self.start) - 1), np.zeros_like(s), key], axis=1).astype(np.uint64)

    def reseed(self, state: Array, seeds: Array) -> Array:
        """Return the states with other random numbers to come.

        Args:
            state: states, uint64 [n, 3].
            seeds: one seed per state, [n].

        Returns:
            States, uint64 [n, 3], with unchanged s and t.
        """
        state = state.copy()
        state[:, 2] = seeds
        return state

    def observe(self, state: Array) -> Array:
        """Return one-hot vectors of (t, s).

        Args:
            state: states, uint64 [n, 3].

        Returns:
            Observations, float32 [n, H·S].
        """
        one_hot = np.zeros((len(state), self.horizon * len(self.costs)), np.float32)
        one_hot[np.arange(len(state)), state[:, 1] * np.uint64(len(self.costs)) + state[:, 0]] = 1.0
        return one_hot

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Draw the next states and the costs.

        Args:
            state: states, uint64 [n, 3].
            action: actions, integers [n].

        Returns:
            (next states [n, 3], costs [n], done [n]); `done` is always false, since only the horizon ends
            episodes.
        """
        s = state[:, 0].astype(np.int64)
        t = state[:, 1]
        key = state[:, 2]
        uniform = hash_to_uniform(key, 2 * t + np.uint64(1))
        next_s = (uniform[:, None] >= self.thresholds[s, action]).sum(axis=1).clip(0, len(self.start) - 1)
        cost = (hash_to_uniform(key, 2 * t + np.uint64(2)) < self.costs[s, action]).astype(np.float64)
        return np.stack([next_s.astype(np.uint64), t + np.uint64(1), key], axis=1), cost, np.zeros(len(s), bool)


@dataclass(frozen=True)
class TabularExpert:
    """π* and the exact Q* of a tabular MDP.

    Args:
        mdp: the simulator of the MDP.
        name: name in messages and files.
    """

    mdp: TabularSimulator
    name: str = "exact"

    def q(self, states: Array) -> Array:
        """Return Q*_t(s, ·) of every action.

        Args:
            states: states, uint64 [n, 3].

        Returns:
            Costs-to-go, float64 [n, A].
        """
        values: Array = self.mdp.q_star[states[:, 1].astype(np.int64), states[:, 0].astype(np.int64)]
        return values

    def act(self, states: Array, t: int) -> Array:
        """Return the best actions.

        Args:
            states: states, uint64 [n, 3].
            t: number of steps taken so far; the states contain it already.

        Returns:
            Actions, integers [n].
        """
        actions: Array = self.q(states).argmin(axis=1)
        return actions


def hash_to_uniform(key: Array, index: Array | int) -> Array:
    """Return numbers [n] in [0, 1) that depend only on key and index (the SplitMix64 mixing function)."""
    with np.errstate(over="ignore"):
        z = key + (np.asarray(index, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    number: Array = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return number
