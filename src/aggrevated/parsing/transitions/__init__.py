"""Transition systems over batches of configurations, their dynamic oracles, and the check of these by brute force."""

from typing import Protocol

from aggrevated.core.arrays import Array


class TransitionSystem(Protocol):
    """What a parser may do, and what it costs. Rows are configurations [batch, 2 + 2(N+1)], gold heads [batch, N+1].

    It must be arc-decomposable: arcs that can each still be made can all be made. Then counting those that a transition
    puts out of reach is its exact cost-to-go, without a roll-out.
    """

    @property
    def name(self) -> str: ...

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the A transitions."""
        ...

    @property
    def order(self) -> tuple[int, ...]:
        """The expert's preference among transitions that lose equally much."""
        ...

    @property
    def action_arcs(self) -> tuple[tuple[int, int] | None, ...]:
        """The arc that each makes, as places of (dependent, head) in what a learner sees; None where it makes none."""
        ...

    def max_transitions(self, n: int) -> int:
        """The most transitions of a parse of n symbols."""
        ...

    def is_done(self, rows: Array) -> Array:
        """[batch] whether the parse has ended."""
        ...

    def action_mask(self, rows: Array) -> Array:
        """[batch, A] which transitions may be taken."""
        ...

    def step(self, rows: Array, action: Array) -> Array:
        """The configurations after these transitions [batch]; `rows` are not changed."""
        ...

    def count_lost_arcs(self, rows: Array, gold: Array) -> Array:
        """[batch, A] the dynamic oracle: how many gold arcs each legal transition takes out of reach that are in it."""
        ...

    def is_stack_arc_reachable(self, rows: Array, head: Array) -> Array:
        """[batch, N+1] whether a symbol of the stack can still get that `head` [batch, N+1] if it is there, too."""
        ...
