"""NumPy copies of policies, which act one step at a time in roll-ins. Workers do not need torch for them.

A roll-in of a small network is several times faster than with torch, and training does not change the copy.
"""

from collections.abc import Sequence
from typing import Protocol

from numpy.random import Generator

from aggrevated.core.arrays import Array


class Actor(Protocol):
    """An immutable NumPy copy of a policy: π_θ(·|o₁ … o_t) one step at a time, for n episodes at once.

    An actor that also observes actions has a method `remember` (`aggrevated.actors.window`), called after
    each action.
    """

    def memory(self, count: int) -> Array:
        """Return the initial memory of `count` episodes, [count, M]; M = 0 for a feed-forward policy."""
        ...

    def noise(self, generators: Sequence[Generator], horizon: int) -> Array:
        """Return the noise of all actions of K episodes of H steps, one generator per episode, [K, H, A]."""
        ...

    def parameters(self, observation: Array, memory: Array) -> tuple[Array, Array]:
        """Return the parameters of the action distributions and the next memory.

        Args:
            observation: [n, ...], one per episode.
            memory: [n, M].

        Returns:
            Parameters [n, A], and the memory [n, M] after this step.
        """
        ...

    def choose(self, parameters: Array, noise: Array | float, legal: Array | None = None) -> Array:
        """Choose actions from parameters and noise.

        Args:
            parameters: [n, A], from `parameters`.
            noise: [n, A], one step of `noise`; 0 chooses the mode.
            legal: bool [n, A], the actions that may be chosen; None allows all.

        Returns:
            Actions, [n] for a finite set and [n, A] for vectors.
        """
        ...
