"""How an environment is brought back to a state: by a snapshot, or by replaying the episode."""

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
    """How one comes back to a state."""

    @property
    def words(self) -> str:
        """How an environment comes back, said of it."""
        ...

    @property
    def replayed(self) -> int:
        """How many steps were taken again so far."""
        ...

    @property
    def drift(self) -> DataError:
        """What to say when an environment does not come back to where it was."""
        ...

    def record_reset(self, env: Environment, seed: int) -> Any:
        """The way back to an environment that was just reset."""
        ...

    def claim(self, spots: list[EnvironmentState]) -> list[Environment | None]:
        """For each of the spots, an environment that stands there already, if there is one."""
        ...

    def restore(self, spot: EnvironmentState) -> Environment:
        """An environment brought back to a spot."""
        ...

    def record_step(self, spot: EnvironmentState, env: Environment, action: Any) -> Any:
        """The way back to an environment that has taken an action at a spot."""
        ...

    def release(self, env: Environment, spot: EnvironmentState) -> None:
        """Take an environment back that stands at a spot."""
        ...

    def reseed(self, back: Any, seed: int) -> Any:
        """The same way back, with another generator there."""
        ...

    def move_to_state(self, env: Environment, back: Any, at: Any = None) -> Any:
        """Bring an environment, which stands `at` another state, to be drawn; where it stands now."""
        ...


@dataclass(frozen=True)
class SnapshotRestorer:
    """By what an environment is set by; one environment serves all."""

    border: EnvironmentAdapter
    pool: EnvironmentPool
    recipe: SnapshotAdapter
    replayed = 0

    @property
    def words(self) -> str:
        return f"it comes back to a state {self.recipe.words}"

    @property
    def drift(self) -> DataError:
        return DataError(
            f"{self.border.name} does not repeat itself exactly after set_state: let get_state return all that the "
            "next step depends on, random generators and counters included"
        )

    def record_reset(self, env: Environment, seed: int) -> SnapshotState:
        if self.recipe.ours:
            return SnapshotState(self.recipe.get(env))
        return SnapshotState(call_user_code(self.border.name, "get_state", lambda: self.recipe.get(env)))

    def claim(self, spots: list[EnvironmentState]) -> list[Environment | None]:
        return [None] * len(spots)

    def restore(self, spot: EnvironmentState) -> Environment:
        env = self.pool.take()
        self._set(env, spot.back)
        return env

    def record_step(self, spot: EnvironmentState, env: Environment, action: Any) -> SnapshotState:
        return self.record_reset(env, 0)

    def release(self, env: Environment, spot: EnvironmentState) -> None:
        if spot.ended and not self.recipe.ours:
            reset_environment(env, 0, self.border.seeding)
        self.pool.spare.append(env)

    def reseed(self, back: SnapshotState, seed: int) -> SnapshotState:
        return SnapshotState(back.value, seed)

    def move_to_state(self, env: Environment, back: Any, at: Any = None) -> Any:
        self._set(env, back)
        self.recipe.draws(env)
        return back

    def _set(self, env: Environment, back: Any) -> None:
        if self.recipe.ours:
            self.recipe.set(env, back.value)
        else:
            call_user_code(self.border.name, "set_state", lambda: self.recipe.set(env, back.value))
        if back.luck is not None:
            reseed_environment(env, back.luck)


@dataclass
class ReplayRestorer:
    """By resetting it and taking the actions again; environments are kept where they stand, for those who go on."""

    border: EnvironmentAdapter
    pool: EnvironmentPool
    replayed: int = 0
    words = "it comes back to a state by replaying the episode"

    @property
    def drift(self) -> DataError:
        return DataError(
            f"{self.border.name} does not repeat itself exactly when its seed and actions are replayed: let "
            "reset(seed) seed all that is random in it and undo all that came before, or supply get_state and set_state"
        )

    def record_reset(self, env: Environment, seed: int) -> HistoryPosition:
        return HistoryPosition(ActionHistory(seed), 0)

    def claim(self, spots: list[EnvironmentState]) -> list[Environment | None]:
        places: list[Any] = [spot.back for spot in spots]
        if any(place.t >= self.border.horizon for place in places):
            raise UsageError(f"{self.border.name} was stepped beyond its horizon; make it with a larger one")
        return [self.pool.claim((place.history, place.t)) for place in places]

    def restore(self, spot: EnvironmentState) -> Environment:
        """Replays the episode, and compares what is seen at its end with what was seen there the first time."""
        env = self.pool.take()
        place = spot.back
        assert isinstance(place, HistoryPosition)
        seen, done = self._replay_to(env, place, None)
        self.replayed += place.t
        if done or (seen is not None and not is_bitwise_equal(seen, spot.observation)):
            raise self.drift
        return env

    def record_step(self, spot: EnvironmentState, env: Environment, action: Any) -> HistoryPosition:
        assert isinstance(spot.back, HistoryPosition)
        return spot.back.append_action(action)

    def release(self, env: Environment, spot: EnvironmentState) -> None:
        assert isinstance(spot.back, HistoryPosition)
        if spot.ended or spot.back.t == self.border.horizon:
            self.pool.spare.append(env)
        else:
            self.pool.keep((spot.back.history, spot.back.t), env)

    def reseed(self, back: HistoryPosition, seed: int) -> HistoryPosition:
        return back.reseed(seed)

    def move_to_state(self, env: Environment, back: Any, at: Any = None) -> Any:
        self._replay_to(env, back, at)
        return back

    def _replay_to(
        self, env: Environment, to: HistoryPosition, at: HistoryPosition | None
    ) -> tuple[Array | None, bool]:
        """(what is seen, done) at a place, to which an environment goes from `at`, if that is on the way, or anew."""
        parts = [*to.iter_segments()]
        there = [
            i
            for i, (history, start, stop) in enumerate(parts)
            if at is not None and is_within_history(at, history, stop)
        ]
        seen = None
        done = False
        now = 0
        if at is not None and there:
            parts = parts[: there[0] + 1]
            now = at.t
        else:
            seen = self.border.reset(env, to.history.seed).observation
        for history, start, stop in reversed(parts):
            lucks = dict(history.lucks)
            taken = history.actions[now - start : stop - start]
            if now in lucks:
                reseed_environment(env, lucks[now])
            for action in self.border.to_native_actions(taken):
                if done:
                    raise self.drift
                shown, _, done = self.border.advance(env, action)
                seen = shown.observation
                now = now + 1
                if now in lucks:
                    reseed_environment(env, lucks[now])
        return seen, done


def is_within_history(at: HistoryPosition, history: ActionHistory, stop: int) -> bool:
    """Whether a place is in that part of a history."""
    return at.history is history and at.t <= stop


def is_bitwise_equal(one: Array, other: Array) -> bool:
    """Whether two observations are equal."""
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def find_state_restorers(
    border: EnvironmentAdapter, pool: EnvironmentPool, get_state: StateGetter | None, set_state: StateSetter | None
) -> list[StateRestorer]:
    """Those to be tried, the best first; the last must do."""
    if get_state is not None and set_state is not None:
        return [SnapshotRestorer(border, pool, make_user_adapter(get_state, set_state))]
    env = make_environment(border.source)
    found = find_snapshot_adapters(env)
    env.close()
    return [*(SnapshotRestorer(border, pool, recipe) for recipe in found), ReplayRestorer(border, pool)]
