"""Simulators are functions of values: the state is a plain array, and that array *is* the snapshot."""

from typing import Protocol, runtime_checkable

from gymnasium.spaces import Box, Discrete

from aggrevated.arrays import Array


@runtime_checkable
class Simulator(Protocol):
    """An MDP (S, A, P, C, ρ₀, H) over batches of n independent episodes. Costs, not rewards.

    One in which not every action is legal everywhere has, besides, `legal(state) -> [n, A]` bool. One with chance in
    it keeps the numbers to come in its states, and has `reseed(state, seeds)`: the same states with other luck ahead.
    """

    @property
    def name(self) -> str: ...

    @property
    def horizon(self) -> int:
        """H: an episode is cut after this many steps, whoever is running it."""
        ...

    @property
    def observation_space(self) -> Box: ...

    @property
    def action_space(self) -> Discrete | Box: ...

    def initial(self, seeds: Array) -> Array:
        """States [n, ...] drawn from ρ₀, one per seed."""
        ...

    def observe(self, state: Array) -> Array:
        """What the learner sees of the states, float32 [n, ...]."""
        ...

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """(next state [n, ...], cost [n], done [n]). `state` is not changed. Cost NaN: the simulation diverged."""
        ...
