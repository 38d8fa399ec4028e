"""Policies one step at a time, on NumPy copies of their weights: what rolls in. No torch in here: workers need none.

A roll-in of a small network is several times faster so than through torch, and a copy cannot change behind the back of
whoever holds it.
"""

from collections.abc import Sequence
from typing import Protocol

from numpy.random import Generator

from aggrevated.core.arrays import Array


class Actor(Protocol):
    """π_θ(·|o₁ … o_t) one step at a time, for n episodes at once. Never changes after it is made.

    One that also sees actions has a method `remember` (`aggrevated.actors.window`), called after each.
    """

    def memory(self, count: int) -> Array:
        """[count, M]: what the policy remembers before the first observation (M = 0 for a feed-forward policy)."""
        ...

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """[K, H, A]: all that is random in the actions of K trajectories, each drawn from its own generator."""
        ...

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """The parameters [n, A] of the action distribution, and the memory [n, M] after this step."""
        ...

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        """[n] or [n, A] actions: drawn from the distribution with `noise` [n, A], its mode with noise 0.

        Where `legal` [n, A] is given, only from the actions that it allows.
        """
        ...
