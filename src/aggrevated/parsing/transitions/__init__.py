"""Transition systems over batches of configurations, their dynamic oracles and a check by brute force."""

from typing import Protocol

from aggrevated.core.arrays import Array


class TransitionSystem(Protocol):
    """The transitions of a parser and their costs, for batches of configurations.

    `rows` are configurations, int16 [batch, 2 + 2(N+1)]; `gold` are gold heads, int [batch, N+1]. A system
    must be arc-decomposable: if each of several arcs of a projective tree is reachable, all of them are
    reachable together. The number of gold arcs that a transition makes unreachable is then its exact cost,
    without a rollout.
    """

    @property
    def name(self) -> str:
        """Return the value of `--transition-system` that selects this system."""
        ...

    @property
    def actions(self) -> tuple[str, ...]:
        """Return the names of the A transitions."""
        ...

    @property
    def order(self) -> tuple[int, ...]:
        """Return the actions in the order in which the expert prefers them when they cost the same."""
        ...

    @property
    def action_arcs(self) -> tuple[tuple[int, int] | None, ...]:
        """Return the arc of each action, as indices of (dependent, head) in an observation, or None."""
        ...

    def max_transitions(self, n: int) -> int:
        """Return the largest number of transitions in a parse of `n` symbols."""
        ...

    def is_done(self, rows: Array) -> Array:
        """Return whether each parse has ended, bool [batch]."""
        ...

    def action_mask(self, rows: Array) -> Array:
        """Return which transitions are legal, bool [batch, A]."""
        ...

    def step(self, rows: Array, action: Array) -> Array:
        """Return the configurations after the transitions `action` [batch], without changing `rows`."""
        ...

    def count_lost_arcs(self, rows: Array, gold: Array) -> Array:
        """Return how many reachable gold arcs each legal transition makes unreachable, int [batch, A]."""
        ...

    def is_stack_arc_reachable(self, rows: Array, head: Array) -> Array:
        """Return whether symbols on the stack can still get `head` if it is on the stack, bool [batch, N+1]."""
        ...
