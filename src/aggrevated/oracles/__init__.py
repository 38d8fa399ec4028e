"""Cost-to-go oracles: line 6 of Algorithm 1, first half.

An oracle is a function from `Trajectories` and the learner's policy to `CostToGo`. The values have shape [K,
T, A] if the cost-to-go of every action is known, and [K, T] if only that of the action taken is. Losses
assert the shape that they need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError, UserCodeError
from aggrevated.core.settings import SelectedComponents, Settings, setting
from aggrevated.experts import Expert
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators import Simulator

if TYPE_CHECKING:
    from torch import Tensor

    from aggrevated.policies import Policy


@dataclass(frozen=True)
class CostToGo:
    """Cost-to-go (Q or A*) at the visited states, and the number of queries and steps that it took.

    Attributes:
        values: float32 [K, T, A] for every action, or [K, T] for the action taken; 0 where no step was taken.
        weight: float32 [K, T], the weight of each step in the loss: 0 without a query, else 1, or H/M if M of
            H steps were queried.
        queries: number of states at which the expert was queried.
        simulator_steps: number of steps that the oracle simulated.
        diverged: number of the oracle's roll-outs that diverged and were dropped.
        lost_trajectories: number of trajectories without a value because their roll-outs diverged.
        expert_actions: π*(s_t), float32 [K, T, A] for vector actions, integers [K, T] for discrete ones, or
            None.
        entropy_bonus: β_n, the cost subtracted at each step per nat of the policy's entropy.
        advantage: whether the values are advantages A* relative to π*, so that 0 is as good as π*.

    Raises:
        DataError: a value is not finite.
    """

    values: Array
    weight: Array
    queries: int = 0
    simulator_steps: int = 0
    diverged: int = 0
    lost_trajectories: int = 0
    expert_actions: Array | None = None
    entropy_bonus: float = 0.0
    advantage: bool = False

    def __post_init__(self) -> None:
        assert self.values.ndim in (2, 3) and self.values.shape[:2] == self.weight.shape, self.values.shape
        invalid = ~np.isfinite(self.values)
        if invalid.any():
            raise DataError(
                f"the oracle returned a cost-to-go that is not finite at {int(invalid.sum())} of "
                f"{invalid.size} entries; check the expert's weights, and whether it belongs to this simulator"
            )

    @property
    def has_all_actions(self) -> bool:
        """Return whether the values cover every action, not only the action taken."""
        return self.values.ndim == 3

    @property
    def arrays(self) -> dict[str, Array]:
        """Return the arrays that are not None, by name."""
        arrays = {"values": self.values, "weight": self.weight, "expert_actions": self.expert_actions}
        return {name: array for name, array in arrays.items() if array is not None}


class Oracle(Protocol):
    """Function from trajectories to the cost-to-go at their states."""

    def __call__(self, trajectories: Trajectories, policy: Policy | None = None, /) -> CostToGo:
        """Return the cost-to-go at the visited states.

        Args:
            trajectories: K trajectories that were rolled in.
            policy: the learner's policy π_n, required by oracles that roll it out.

        Returns:
            Values of shape [K, T, A] or [K, T], and their weights [K, T].
        """
        ...


@runtime_checkable
class Stateful(Protocol):
    """Oracle that learns from iteration to iteration, such as a critic; its state is saved in checkpoints."""

    def state(self) -> dict[str, Tensor]:
        """Return the state for a checkpoint, as tensors by name."""
        ...

    def restore(self, state: dict[str, Tensor]) -> None:
        """Set the state to one that `state` returned."""
        ...


def iter_stateful(oracle: object, path: str = "oracle") -> Iterator[tuple[str, Stateful]]:
    """Yield (path, oracle) for each stateful oracle among an oracle and the oracles in its fields."""
    if isinstance(oracle, Stateful):
        yield path, oracle
    elif is_dataclass(oracle) and callable(oracle):
        for field in fields(oracle):
            yield from iter_stateful(getattr(oracle, field.name), f"{path}.{field.name}")


def is_per_trajectory(oracle: Oracle) -> bool:
    """Return whether the costs of a trajectory depend on no other trajectory and no policy.

    Such an oracle can be queried in the worker that rolled the trajectory in.
    """
    return bool(getattr(oracle, "is_per_trajectory", False))


class Feedback(Enum):
    """Actions of which an oracle returns the cost: all, the action taken, or which action is best."""

    ALL_ACTIONS = "what every action costs"
    TAKEN_ACTION = "what the action taken costs"
    BEST_ACTION = "which action is best"


@dataclass(frozen=True)
class OracleSettings(Settings, ABC):
    """Base class of the settings of a cost-to-go oracle."""

    def list_unused_settings(self, chosen: SelectedComponents) -> Mapping[str, str]:
        if chosen.has_discrete_actions or "all_actions" not in self.to_values():
            return {}
        return {"all_actions": "actions that are vectors, which cannot be enumerated; leave it out"}

    @abstractmethod
    def get_feedback(self, finite: bool) -> Feedback:
        """Return the feedback of the oracle.

        Args:
            finite: whether actions are discrete; otherwise they are vectors.

        Returns:
            The actions of which the oracle returns costs.
        """

    def is_partial(self, finite: bool) -> bool:
        """Return whether the oracle leaves out some actions or steps.

        Args:
            finite: whether actions are discrete; otherwise they are vectors.

        Returns:
            True if the loss sees only a part of the costs.
        """
        return self.get_feedback(finite) is not Feedback.ALL_ACTIONS

    def max_steps(self, horizon: int, actions: int | None) -> int:
        """Return the largest number of steps that the oracle simulates per trajectory.

        Args:
            horizon: H, the largest number of steps of a trajectory.
            actions: number of discrete actions, or None for vector actions.

        Returns:
            Number of simulator steps, 0 if the oracle does not simulate.
        """
        return 0

    @abstractmethod
    def build(self, simulator: Simulator, expert: Expert) -> Oracle:
        """Build the oracle.

        Args:
            simulator: simulator of the problem, for oracles that roll out.
            expert: π*.

        Returns:
            The oracle with these settings.

        Raises:
            UsageError: the expert lacks a capability that the oracle needs.
        """

    def make_missing_capability_error(self, expert: Expert, method: str) -> UsageError:
        """Return the error for an expert without a method that the oracle needs.

        Args:
            expert: π*, named in the error.
            method: the missing method, such as "q_of".

        Returns:
            The error, to be raised by `build`.
        """
        return UsageError(
            f"the oracle {self.name} needs an expert with the method {method}, which {expert.name} does not "
            "have; choose another --oracle, or another expert"
        )


@dataclass(frozen=True)
class CostOracleSettings(OracleSettings):
    """Base class of the settings of an oracle that returns costs, as Q or as advantages."""

    advantage: bool = setting(True, "Use the advantage (Eq. 12, 13), instead of Q (Eq. 10, 11).")


def max_rollout_steps(horizon: int, query_steps: int, rollouts: int) -> int:
    """Return the largest number of steps, with replays, of `rollouts` roll-outs per query; 0 queries all."""
    return rollouts * min(query_steps or horizon, horizon) * horizon


def check_expert_has(expert: Expert, *methods: str) -> None:
    """Raise a `UsageError` if the expert has none of the methods."""
    if not any(callable(getattr(expert, method, None)) for method in methods):
        name = getattr(expert, "name", type(expert).__name__)
        remedy = "add it, or use MonteCarloOracle or make_zero_one_oracle, which need only act"
        raise UsageError(f"the expert {name} has no method {' or '.join(methods)}; {remedy}")


@contextmanager
def add_trajectory_to_errors(trajectories: Trajectories) -> Iterator[None]:
    """Add seed and step to errors whose rows count the steps of all trajectories."""
    try:
        yield
    except UserCodeError as error:
        if error.row is None:
            raise
        k, t = np.argwhere(trajectories.mask)[error.row]
        raise error.add_position(step=int(t), seed=int(trajectories.seeds[k])) from error.__cause__


def scatter_to_steps(trajectories: Trajectories, live: Array) -> Array:
    """Return values of the steps taken [steps, ...] as float32 [K, T, ...], with zeros elsewhere."""
    out = np.zeros((*trajectories.mask.shape, *live.shape[1:]), np.float32)
    out[trajectories.mask] = live
    return out
