"""Line 6 of Algorithm 1, first half: what the actions at the visited states will cost.

An oracle is a function from `Trajectories`, and the policy that is learning, to `CostToGo`. There are two shapes:
[K, T, A] where it is known for every action, and [K, T] where it is known for the action taken; the losses assert which
of them they need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError, UserCodeError
from aggrevated.core.settings import Settings, setting
from aggrevated.experts import Expert
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from torch import Tensor

    from aggrevated.policies import Policy


@dataclass(frozen=True)
class CostToGo:
    """Q at the visited states, and what it took to know it."""

    values: Array  # float32 [K, T, A] for every action, or [K, T] for the one taken; 0 where there was no step
    weight: Array  # float32 [K, T]: 0 where it was not asked, else the step's weight in the sum (1, or H/M for M of H)
    queries: int = 0  # how many states the expert was asked about
    simulator_steps: int = 0  # how many steps the oracle itself simulated
    diverged: int = 0  # how many of its roll-outs diverged, and were left out
    lost_trajectories: int = (
        0  # about how many trajectories nothing is known for that reason; the others stand for them
    )
    expert_actions: Array | None = (
        None  # π*(s_t): float32 [K, T, A] where actions are vectors, [K, T] where they are finite
    )
    entropy_bonus: float = 0.0  # β_n: what a nat of the policy's entropy saves at each step
    advantage: bool = False  # whether the values are A*, of which 0 is as good as π*

    def __post_init__(self) -> None:
        assert self.values.ndim in (2, 3) and self.values.shape[:2] == self.weight.shape, self.values.shape
        wrong = ~np.isfinite(self.values)
        if wrong.any():
            raise DataError(
                f"the oracle returned a cost-to-go that is not finite at {int(wrong.sum())} of {wrong.size} places; "
                "check the expert's weights and that it was trained for this simulator"
            )

    @property
    def has_all_actions(self) -> bool:
        """Whether the cost-to-go of every action is known, not only of the one taken."""
        return self.values.ndim == 3

    @property
    def arrays(self) -> dict[str, Array]:
        """Those of its arrays that it has, by name."""
        named = {"values": self.values, "weight": self.weight, "expert_actions": self.expert_actions}
        return {name: array for name, array in named.items() if array is not None}


class Oracle(Protocol):
    """What knows, or finds out, the cost-to-go."""

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None, /) -> CostToGo:
        """At the visited states. `policy` is π_n, for oracles that roll the learner itself out or learn beside it."""
        ...


@runtime_checkable
class Stateful(Protocol):
    """An oracle that learns, and so changes from iteration to iteration."""

    def state(self) -> dict[str, Tensor]:
        """All that it remembers, for a checkpoint."""
        ...

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        ...


def iter_stateful(oracle: object, path: str = "oracle") -> Iterator[tuple[str, Stateful]]:
    """Those that remember something, among an oracle and the oracles that it is made of, each with where it is."""
    if isinstance(oracle, Stateful):
        yield path, oracle
    elif is_dataclass(oracle) and callable(oracle):
        for part in fields(oracle):
            yield from iter_stateful(getattr(oracle, part.name), f"{path}.{part.name}")


def is_per_trajectory(oracle: Oracle) -> bool:
    """Whether what it tells of a trajectory hangs on that one alone, and on no policy: then a worker can be asked."""
    return bool(getattr(oracle, "is_per_trajectory", False))


class Feedback(Enum):
    """What an oracle can tell."""

    ALL_ACTIONS = "what every action costs"
    TAKEN_ACTION = "what the action taken costs"
    BEST_ACTION = "which action is best"


@dataclass(frozen=True)
class OracleSettings(Settings, ABC):
    """A way to ask what a mistake costs."""

    @abstractmethod
    def get_feedback(self, finite: bool) -> Feedback:
        """What it can tell, of a finite set of actions or of vectors."""

    def is_partial(self, finite: bool) -> bool:
        """Whether there are actions or steps of which it tells nothing."""
        return self.get_feedback(finite) is not Feedback.ALL_ACTIONS

    def max_steps(self, horizon: int, actions: int | None) -> int:
        """How many steps it simulates at most for a trajectory of H steps; of `actions`, or of vectors where None."""
        return 0

    @abstractmethod
    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        """The oracle; a `UsageError` if this expert cannot be asked so."""

    def make_missing_capability_error(self, expert: Expert, method: str) -> UsageError:
        """What to say if an expert lacks the method that this oracle asks it by."""
        return UsageError(
            f"the oracle {self.name} asks an expert by its method {method}, which {expert.name} does not have; "
            "choose another --oracle, or another expert"
        )


@dataclass(frozen=True)
class CostOracleSettings(OracleSettings):
    """One that tells costs, as they are or less what the state costs whatever is done there."""

    advantage: bool = setting(True, "The variance-reduced advantage (Eq. 12, 13), rather than Q itself (Eq. 10, 11).")


def max_rollout_steps(horizon: int, asked: int, rolled: int) -> int:
    """The steps of so many roll-outs from each of `asked` steps of a trajectory; 0: from all.

    Each takes H at most, also where the way to its first state is replayed.
    """
    return rolled * min(asked or horizon, horizon) * horizon


def check_expert_has(expert: Expert, *methods: str) -> None:
    """A `UsageError` if the expert has none of these methods, by which an oracle asks it."""
    if not any(callable(getattr(expert, method, None)) for method in methods):
        name = getattr(expert, "name", type(expert).__name__)
        needed = " or ".join(methods)
        remedy = "give it one, or take MonteCarlo or disagreement, which need only act"
        raise UsageError(f"the expert {name} has no method {needed} to be asked by; {remedy}")


@contextmanager
def add_trajectory_to_errors(trajectories: Trajectories) -> Iterator[None]:
    """Say of errors in here in which episode they were, and when: their rows are the live steps of the whole batch."""
    try:
        yield
    except UserCodeError as error:
        if error.row is None:
            raise
        lane, step = np.argwhere(trajectories.mask)[error.row]
        raise error.add_position(step=int(step), seed=int(trajectories.seeds[lane])) from error.__cause__


def scatter_to_steps(trajectories: Trajectories, live: Array) -> Array:
    """Values for the live steps only, [steps, ...], laid out as float32 [K, T, ...] with zeros elsewhere."""
    out = np.zeros((*trajectories.mask.shape, *live.shape[1:]), np.float32)
    out[trajectories.mask] = live
    return out
