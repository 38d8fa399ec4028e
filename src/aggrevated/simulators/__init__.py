"""Simulators are functions of values: the state is a plain array, and that array *is* the snapshot.

What only some of them can do is a protocol of its own, which `restricted`, `stochastic`, `replayed_by` and
`lanes_at_once` find through all wrappers.
"""

import sys
from typing import Any, Protocol, runtime_checkable

from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array


@runtime_checkable
class Simulator(Protocol):
    """An MDP (S, A, P, C, ρ₀, H) over batches of n independent episodes. Costs, not rewards."""

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

    def reset(self, seeds: Array) -> Array:
        """States [n, ...] drawn from ρ₀, one per seed."""
        ...

    def observe(self, state: Array) -> Array:
        """What the learner sees of the states, float32 [n, ...]."""
        ...

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """(next state [n, ...], cost [n], done [n]). `state` is not changed. Cost NaN: the simulation diverged."""
        ...


@runtime_checkable
class HasActionMask(Protocol):
    """A simulator in which not every action is legal everywhere."""

    def action_mask(self, state: Array) -> Array:
        """[n, A] bool: which actions may be taken."""
        ...


@runtime_checkable
class Reseedable(Protocol):
    """A simulator with chance in it: the numbers to come are kept in its states."""

    def reseed(self, state: Array, seeds: Array) -> Array:
        """The same states [n, ...] with other luck ahead, one seed for each."""
        ...


@runtime_checkable
class HasReplayedSteps(Protocol):
    """A simulator that comes back to some of its states only by going the way to them again."""

    def replayed_steps(self) -> int:
        """How many steps it has taken again so far; they are on the bill of whoever made it go back."""
        ...


@runtime_checkable
class HasBatchLimit(Protocol):
    """A simulator that replays more where too many of its episodes go forward together."""

    def max_batch_size(self) -> int:
        """How many can go forward together without one of them having to go its way again."""
        ...


@runtime_checkable
class SimulatorWrapper(Protocol):
    """A simulator around another, whose states it shares: it need not repeat what that one can do besides."""

    @property
    def simulator(self) -> Simulator: ...


def find_action_mask(simulator: Simulator) -> HasActionMask | None:
    """The simulator, or the one inside of it, that knows which actions are legal; None where all are."""
    found: HasActionMask | None = find_wrapped("action_mask", simulator)
    return found


def find_reseedable(simulator: Simulator) -> Reseedable | None:
    """The simulator, or the one inside of it, that can change the luck ahead; None where nothing is left to chance."""
    found: Reseedable | None = find_wrapped("reseed", simulator)
    return found


def count_replayed_steps(simulator: Simulator) -> int:
    """How many steps the simulator, or the one inside of it, has replayed so far; 0 where none has to."""
    found: HasReplayedSteps | None = find_wrapped("replayed_steps", simulator)
    return found.replayed_steps() if found is not None else 0


def max_batch_size(simulator: Simulator) -> int:
    """How many episodes are best run together: more than that are run in blocks, to the same end."""
    found: HasBatchLimit | None = find_wrapped("max_batch_size", simulator)
    return found.max_batch_size() if found is not None else sys.maxsize


def find_wrapped(method: str, simulator: Any) -> Any:
    """The simulator, or the one inside of it, that has such a method; None where there is none."""
    # Not by `isinstance`: from Python 3.12 on it does not see what an object passes on by `__getattr__`.
    while simulator is not None and not callable(getattr(simulator, method, None)):
        simulator = getattr(simulator, "simulator", None)
    return simulator
