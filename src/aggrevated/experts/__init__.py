"""Experts π*: anything that can act, and, better, that can tell what each action would cost from here on."""

from typing import Protocol

from aggrevated.arrays import Array


class Expert(Protocol):
    """π*. It sees states, which may hold more than the learner's observations."""

    def act(self, states: Array, t: int) -> Array:
        """The actions [n] that π* takes in the states [n, ...] at time t."""
        ...


class ValueExpert(Expert, Protocol):
    """An expert that also knows Q*(s, a)."""

    def q(self, states: Array) -> Array:
        """[n, A]: the cost-to-go of every action in the states [n, ...]."""
        ...
