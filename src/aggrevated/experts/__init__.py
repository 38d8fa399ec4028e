"""Experts π*: objects that act in states and may also return costs-to-go."""

from typing import Protocol, runtime_checkable

from aggrevated.core.arrays import Array


class Expert(Protocol):
    """The policy π* that the learner imitates.

    An expert receives the simulator's states, which may contain more than the learner's observations.
    """

    @property
    def name(self) -> str:
        """Return the name that errors, reports and run folders use for the expert."""
        ...

    def act(self, states: Array, t: int) -> Array:
        """Return the actions of π* in the states [n, ...] at time t.

        Returns:
            Integers [n] for discrete actions, or vectors [n, A] for continuous actions.
        """
        ...


@runtime_checkable
class DiscreteQExpert(Expert, Protocol):
    """An expert that knows Q*(s, ·), the cost-to-go of every discrete action."""

    def q(self, states: Array) -> Array:
        """Return the cost-to-go [n, A] of every action in the states [n, ...]."""
        ...


@runtime_checkable
class StateActionQExpert(Expert, Protocol):
    """An expert that knows Q*(s, a), the cost-to-go of one given action."""

    def q_of(self, states: Array, actions: Array) -> Array:
        """Return the cost-to-go [n] of one action in each state.

        Args:
            states: states [n, ...].
            actions: actions [n] or [n, A], one for each state.
        """
        ...


@runtime_checkable
class StateValueExpert(Expert, Protocol):
    """An expert that knows V*(s), for example from a critic."""

    @property
    def discount(self) -> float:
        """Return the discount γ of the values."""
        ...

    def v(self, states: Array) -> Array:
        """Return the discounted cost-to-go [n] of the states [n, ...] under π*."""
        ...


def get_discount(expert: Expert) -> float:
    """Return the expert's discount γ, or 1 if the expert has no `discount`."""
    return float(getattr(expert, "discount", 1.0))
