"""Experts π*: anything that can act, and, better, that can tell what each action would cost from here on."""

from typing import Protocol, runtime_checkable

from aggrevated.core.arrays import Array


class Expert(Protocol):
    """π*. It sees states, which may hold more than the learner's observations."""

    @property
    def name(self) -> str: ...

    def act(self, states: Array, t: int) -> Array:
        """The actions [n], or [n, A] where they are vectors, that π* takes in the states [n, ...] at time t."""
        ...


@runtime_checkable
class DiscreteQExpert(Expert, Protocol):
    """An expert that also knows Q*(s, a)."""

    def q(self, states: Array) -> Array:
        """[n, A]: the cost-to-go of every action in the states [n, ...]."""
        ...


@runtime_checkable
class StateActionQExpert(Expert, Protocol):
    """An expert that knows Q*(s, a) of an action that it is asked about, such as a vector."""

    def q_of(self, states: Array, actions: Array) -> Array:
        """[n]: the cost-to-go of the actions [n], or [n, A], each in its state of [n, ...]."""
        ...


@runtime_checkable
class StateValueExpert(Expert, Protocol):
    """An expert that also has a critic, V*(s)."""

    @property
    def discount(self) -> float:
        """γ of the critic."""
        ...

    def v(self, states: Array) -> Array:
        """[n]: the discounted cost-to-go of the states [n, ...] under π*."""
        ...


def get_discount(expert: Expert) -> float:
    """γ of what the expert knows; 1 where it does not say."""
    return float(getattr(expert, "discount", 1.0))
