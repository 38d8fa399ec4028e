"""Protocols of simulators: functions of values, whose state is a plain array and therefore its own snapshot.

Optional abilities are separate protocols. `find_action_mask`, `find_reseedable`, `count_replayed_steps` and
`max_batch_size` find them through all wrappers.
"""

import sys
from typing import Any, Protocol, runtime_checkable

from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array


@runtime_checkable
class Simulator(Protocol):
    """An MDP (S, A, P, C, ρ₀, H) over batches of n independent episodes. It returns costs, not rewards."""

    @property
    def name(self) -> str:
        """Name of the simulator in messages and files."""

    @property
    def horizon(self) -> int:
        """H, the number of steps after which callers cut an episode."""

    @property
    def observation_space(self) -> Box:
        """Space of one observation, without the batch axis."""

    @property
    def action_space(self) -> Discrete | Box:
        """Space of one action, without the batch axis."""

    def reset(self, seeds: Array) -> Array:
        """Return initial states drawn from ρ₀.

        Args:
            seeds: one seed per episode, uint64 [n].

        Returns:
            States [n, ...].
        """

    def observe(self, state: Array) -> Array:
        """Return the learner's observations of the states.

        Args:
            state: states [n, ...].

        Returns:
            Observations, float32 [n, ...].
        """

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Return the next states, costs and ends of episodes, without changing `state`.

        Args:
            state: states [n, ...].
            action: actions, integers [n] or vectors [n, A].

        Returns:
            (next states [n, ...], costs [n], done [n]). A cost of NaN means that the simulation diverged.
        """


@runtime_checkable
class HasActionMask(Protocol):
    """A simulator in which some actions are illegal in some states."""

    def action_mask(self, state: Array) -> Array:
        """Return which actions are legal.

        Args:
            state: states [n, ...].

        Returns:
            Masks, bool [n, A]; true where an action may be taken.
        """


@runtime_checkable
class Reseedable(Protocol):
    """A stochastic simulator whose states contain the random numbers to come."""

    def reseed(self, state: Array, seeds: Array) -> Array:
        """Return copies of the states with other random numbers to come.

        Args:
            state: states [n, ...].
            seeds: one seed per state, uint64 [n].

        Returns:
            States [n, ...].
        """


@runtime_checkable
class HasReplayedSteps(Protocol):
    """A simulator that restores some of its states by replaying their episodes."""

    def replayed_steps(self) -> int:
        """Return the number of steps replayed so far; they count as simulator steps of the caller.

        Returns:
            The number of steps, 0 or more.
        """


@runtime_checkable
class HasBatchLimit(Protocol):
    """A simulator that replays more steps when larger batches are stepped together."""

    def max_batch_size(self) -> int:
        """Return the largest number of episodes that can be stepped together without replaying one of them.

        Returns:
            The number of episodes, 1 or more.
        """


@runtime_checkable
class SimulatorWrapper(Protocol):
    """A simulator around another that shares its states, and through which optional abilities are found."""

    @property
    def simulator(self) -> Simulator:
        """The wrapped simulator."""


def find_action_mask(simulator: Simulator) -> HasActionMask | None:
    """Return the simulator, or the wrapped one, that masks actions; None where all actions are legal.

    Args:
        simulator: the outermost simulator.
    """
    masked: HasActionMask | None = find_wrapped("action_mask", simulator)
    return masked


def find_reseedable(simulator: Simulator) -> Reseedable | None:
    """Return the simulator, or the wrapped one, that can be reseeded; None where it is deterministic.

    Args:
        simulator: the outermost simulator.
    """
    reseedable: Reseedable | None = find_wrapped("reseed", simulator)
    return reseedable


def count_replayed_steps(simulator: Simulator) -> int:
    """Return how many steps the simulator, or the wrapped one, has replayed; 0 where none replays."""
    replaying: HasReplayedSteps | None = find_wrapped("replayed_steps", simulator)
    return replaying.replayed_steps() if replaying is not None else 0


def max_batch_size(simulator: Simulator) -> int:
    """Return how many episodes to step together; larger batches are run in blocks with equal results."""
    limited: HasBatchLimit | None = find_wrapped("max_batch_size", simulator)
    return limited.max_batch_size() if limited is not None else sys.maxsize


def find_wrapped(method: str, simulator: Any) -> Any:
    """Return the simulator, or the wrapped one, that has this method; None where none has it."""
    # `isinstance` fails here: since Python 3.12 it ignores attributes passed on by `__getattr__`.
    while simulator is not None and not callable(getattr(simulator, method, None)):
        simulator = getattr(simulator, "simulator", None)
    return simulator
