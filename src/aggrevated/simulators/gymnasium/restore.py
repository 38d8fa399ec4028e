"""Restoring an environment to a state: by a snapshot, or by replaying the episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.user_code import call_user_code
from aggrevated.simulators.gymnasium.make import Environment, make_environment, reseed_environment, reset_environment
from aggrevated.simulators.gymnasium.pool import EnvironmentPool
from aggrevated.simulators.gymnasium.snapshot_adapters import (
    SnapshotAdapter,
    StateGetter,
    StateSetter,
    find_snapshot_adapters,
    make_user_adapter,
)
from aggrevated.simulators.gymnasium.space_conversion import EnvironmentAdapter
from aggrevated.simulators.gymnasium.states import ActionHistory, EnvironmentState, HistoryPosition, SnapshotState


class StateRestorer(Protocol):
    """A restorer of environments to states."""

    @property
    def description(self) -> str:
        """Phrase that says how states are restored: "by …"."""

    @property
    def replayed(self) -> int:
        """Number of steps replayed so far."""

    @property
    def drift(self) -> DataError:
        """The error for an environment that is not restored exactly."""

    def record_reset(self, env: Environment, seed: int) -> Any:
        """Return the restore point of an environment that was just reset with `seed`."""

    def claim(self, states: list[EnvironmentState]) -> list[Environment | None]:
        """Return, for each state, an environment that is in it already; None where there is none."""

    def restore(self, state: EnvironmentState) -> Environment:
        """Return an environment restored to `state`."""

    def record_step(self, state: EnvironmentState, env: Environment, action: Any) -> Any:
        """Return the restore point of an environment that has taken `action` in `state`."""

    def release(self, env: Environment, state: EnvironmentState) -> None:
        """Return an environment, which is in `state`, to the pool."""

    def reseed(self, restore_point: Any, seed: int) -> Any:
        """Return an equal restore point from which another generator is used."""

    def move_to_state(self, env: Environment, restore_point: Any, current: Any = None) -> Any:
        """Restore an environment, now at `current`, for drawing; return its new restore point."""


@dataclass(frozen=True)
class SnapshotRestorer:
    """Restorer by snapshots; one environment serves all episodes."""

    env_adapter: EnvironmentAdapter
    pool: EnvironmentPool
    snapshot_adapter: SnapshotAdapter
    replayed = 0

    @property
    def description(self) -> str:
        return self.snapshot_adapter.description

    @property
    def drift(self) -> DataError:
        return DataError(
            f"{self.env_adapter.name} does not repeat itself exactly after set_state: let get_state return everything "
            "that the next step depends on, including random generators and counters"
        )

    def record_reset(self, env: Environment, seed: int) -> SnapshotState:
        if self.snapshot_adapter.is_builtin:
            return SnapshotState(self.snapshot_adapter.get(env))
        return SnapshotState(call_user_code(self.env_adapter.name, "get_state", lambda: self.snapshot_adapter.get(env)))

    def claim(self, states: list[EnvironmentState]) -> list[Environment | None]:
        return [None] * len(states)

    def restore(self, state: EnvironmentState) -> Environment:
        env = self.pool.take()
        self._set(env, state.restore_point)
        return env

    def record_step(self, state: EnvironmentState, env: Environment, action: Any) -> SnapshotState:
        return self.record_reset(env, 0)

    def release(self, env: Environment, state: EnvironmentState) -> None:
        if state.ended and not self.snapshot_adapter.is_builtin:
            reset_environment(env, 0, self.env_adapter.seeding)
        self.pool.spare.append(env)

    def reseed(self, restore_point: SnapshotState, seed: int) -> SnapshotState:
        return SnapshotState(restore_point.value, seed)

    def move_to_state(self, env: Environment, restore_point: Any, current: Any = None) -> Any:
        self._set(env, restore_point)
        self.snapshot_adapter.prepare_rendering(env)
        return restore_point

    def _set(self, env: Environment, restore_point: Any) -> None:
        snapshot = restore_point.value
        if self.snapshot_adapter.is_builtin:
            self.snapshot_adapter.set(env, snapshot)
        else:
            call_user_code(self.env_adapter.name, "set_state", lambda: self.snapshot_adapter.set(env, snapshot))
        if restore_point.generator_seed is not None:
            reseed_environment(env, restore_point.generator_seed)


@dataclass
class ReplayRestorer:
    """Restorer by a reset and the actions so far; a pool keeps environments in recent states."""

    env_adapter: EnvironmentAdapter
    pool: EnvironmentPool
    replayed: int = 0
    description = "by replaying the episode"

    @property
    def drift(self) -> DataError:
        return DataError(
            f"{self.env_adapter.name} does not repeat itself exactly when its seed and actions are replayed: let "
            "reset(seed) seed everything random and undo everything before it, or supply get_state and set_state"
        )

    def record_reset(self, env: Environment, seed: int) -> HistoryPosition:
        return HistoryPosition(ActionHistory(seed), 0)

    def claim(self, states: list[EnvironmentState]) -> list[Environment | None]:
        positions: list[Any] = [state.restore_point for state in states]
        if any(position.t >= self.env_adapter.horizon for position in positions):
            raise UsageError(f"{self.env_adapter.name} was stepped beyond its horizon; make it with a larger horizon")
        return [self.pool.claim((position.history, position.t)) for position in positions]

    def restore(self, state: EnvironmentState) -> Environment:
        """Replay the episode, and check that the last observation is the recorded one."""
        env = self.pool.take()
        position = state.restore_point
        assert isinstance(position, HistoryPosition)
        observation, done = self._replay_to(env, position, None)
        self.replayed += position.t
        if done or (observation is not None and not is_bitwise_equal(observation, state.observation)):
            raise self.drift
        return env

    def record_step(self, state: EnvironmentState, env: Environment, action: Any) -> HistoryPosition:
        assert isinstance(state.restore_point, HistoryPosition)
        return state.restore_point.append_action(action)

    def release(self, env: Environment, state: EnvironmentState) -> None:
        position = state.restore_point
        assert isinstance(position, HistoryPosition)
        if state.ended or position.t == self.env_adapter.horizon:
            self.pool.spare.append(env)
        else:
            self.pool.keep((position.history, position.t), env)

    def reseed(self, restore_point: HistoryPosition, seed: int) -> HistoryPosition:
        return restore_point.reseed(seed)

    def move_to_state(self, env: Environment, restore_point: Any, current: Any = None) -> Any:
        self._replay_to(env, restore_point, current)
        return restore_point

    def _replay_to(
        self, env: Environment, target: HistoryPosition, current: HistoryPosition | None
    ) -> tuple[Array | None, bool]:
        """Move an environment to `target`, from `current` if possible, and return (observation, done)."""
        segments = [*target.iter_segments()]
        containing = [
            i
            for i, (history, start, stop) in enumerate(segments)
            if current is not None and is_within_history(current, history, stop)
        ]
        observation = None
        done = False
        t = 0
        if current is not None and containing:
            segments = segments[: containing[0] + 1]
            t = current.t
        else:
            observation = self.env_adapter.reset(env, target.history.seed).observation
        for history, start, stop in reversed(segments):
            generator_seeds = dict(history.generator_seeds)
            actions = history.actions[t - start : stop - start]
            if t in generator_seeds:
                reseed_environment(env, generator_seeds[t])
            for action in self.env_adapter.to_native_actions(actions):
                if done:
                    raise self.drift
                converted, _, done = self.env_adapter.advance(env, action)
                observation = converted.observation
                t = t + 1
                if t in generator_seeds:
                    reseed_environment(env, generator_seeds[t])
        return observation, done


def is_within_history(position: HistoryPosition, history: ActionHistory, stop: int) -> bool:
    """Return whether a position is among the first `stop` steps of a history."""
    return position.history is history and position.t <= stop


def is_bitwise_equal(one: Array, other: Array) -> bool:
    """Return whether two observations have equal types and bytes."""
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def find_state_restorers(
    env_adapter: EnvironmentAdapter,
    pool: EnvironmentPool,
    get_state: StateGetter | None,
    set_state: StateSetter | None,
) -> list[StateRestorer]:
    """Return the restorers to try, the fastest first; the last one is used if all others are inexact."""
    if get_state is not None and set_state is not None:
        return [SnapshotRestorer(env_adapter, pool, make_user_adapter(get_state, set_state))]
    env = make_environment(env_adapter.source)
    adapters = find_snapshot_adapters(env)
    env.close()
    return [
        *(SnapshotRestorer(env_adapter, pool, adapter) for adapter in adapters),
        ReplayRestorer(env_adapter, pool),
    ]
