"""Two ways to come back to where an environment was: the user's own, and replaying the episode."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import DataError, UsageError
from aggrevated.simulators.gymnasium.border import Border
from aggrevated.simulators.gymnasium.environments import Environment
from aggrevated.simulators.gymnasium.pool import Pool


class Way(Protocol):
    """How a snapshot is taken of an environment, and how an environment is brought back to it."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def replayed(self) -> int:
        """How many steps were taken again so far."""
        ...

    @property
    def drift(self) -> DataError:
        """What to say when an environment does not come back to where it was."""
        ...

    def first(self, env: Environment, seed: int) -> Array:
        """The snapshot [S] of an environment that was just reset."""
        ...

    def claim(self, snapshots: Array) -> list[Environment | None]:
        """For each of the snapshots [n, S], an environment that stands there already, if there is one."""
        ...

    def restore(self, snapshot: Array, observation: Array) -> Environment:
        """An environment brought back to a snapshot [S], where it showed `observation` [O]."""
        ...

    def update(self, snapshot: Array, env: Environment, action: Array) -> None:
        """Turn, in place, the snapshot [S] of an environment into that after it has taken `action` [A]."""
        ...

    def release(self, env: Environment, snapshot: Array, done: bool) -> None:
        """Take an environment back that stands at `snapshot`."""
        ...


@dataclass(frozen=True)
class OwnSnapshot:
    """The user's own `get_state` and `set_state`; one environment serves all."""

    border: Border
    pool: Pool
    get_state: Callable[[Environment], Array]
    set_state: Callable[[Environment, Array], None]
    dtype = np.dtype(np.float64)
    replayed = 0

    @property
    def drift(self) -> DataError:
        return DataError(
            f"{self.border.name} does not repeat itself exactly after set_state: let get_state return all that the "
            "next step depends on, random generators and counters included"
        )

    def first(self, env: Environment, seed: int) -> Array:
        snapshot = np.asarray(self.get_state(env), np.float64)
        if snapshot.ndim != 1:
            raise UsageError(f"{self.border.name}: get_state returned shape {snapshot.shape}; let it return 1-D arrays")
        return snapshot

    def claim(self, snapshots: Array) -> list[Environment | None]:
        return [None] * len(snapshots)

    def restore(self, snapshot: Array, observation: Array) -> Environment:
        env = self.pool.take()
        self.set_state(env, snapshot.copy())  # a copy, because it may be kept, and changed in place
        return env

    def update(self, snapshot: Array, env: Environment, action: Array) -> None:
        now = self.first(env, 0)
        if now.shape != snapshot.shape:
            raise DataError(
                f"{self.border.name}: get_state returned {len(now)} numbers after {len(snapshot)}; "
                "let it always return as many"
            )
        snapshot[:] = now

    def release(self, env: Environment, snapshot: Array, done: bool) -> None:
        if done:
            env.reset(seed=0)  # what an environment notes at the end of an episode is in hardly any get_state
        self.pool.spare.append(env)


@dataclass
class Replay:
    """Snapshots [four 16-bit pieces of the seed | t | H·A actions], restored by taking the first t of the actions."""

    border: Border
    pool: Pool
    replayed: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.border.dtype

    @property
    def drift(self) -> DataError:
        return DataError(
            f"{self.border.name} does not repeat itself exactly when its seed and actions are replayed: let "
            "reset(seed) seed all that is random in it and undo all that came before, or supply get_state and set_state"
        )

    def first(self, env: Environment, seed: int) -> Array:
        snapshot = np.zeros(5 + self.border.horizon * self.border.action_size, self.dtype)
        snapshot[:4] = np.array([seed], np.uint64).view(np.uint16)  # a float holds no 64-bit seed exactly
        return snapshot

    def claim(self, snapshots: Array) -> list[Environment | None]:
        if (snapshots[:, 4] >= self.border.horizon).any():
            raise UsageError(f"{self.border.name} was stepped beyond its horizon; make it with a larger one")
        return [self.pool.claim(self.key(snapshot)) for snapshot in snapshots]

    def restore(self, snapshot: Array, observation: Array) -> Environment:
        """Replays the episode, and compares what is seen at its end with what was seen there the first time."""
        env = self.pool.take()
        t, size = int(snapshot[4]), self.border.action_size
        seen = self.border.reset(env, int(snapshot[:4].astype(np.uint16).view(np.uint64)[0]))
        for action in self.border.native(snapshot[5 : 5 + t * size].reshape(t, size)):
            seen, _, done = self.border.advance(env, action)
            self.replayed += 1
            if done:
                raise self.drift
        if not np.array_equal(seen.astype(self.dtype), observation, equal_nan=True):
            raise self.drift
        return env

    def update(self, snapshot: Array, env: Environment, action: Array) -> None:
        start = 5 + int(snapshot[4]) * len(action)
        snapshot[start : start + len(action)] = action
        snapshot[4] += 1

    def release(self, env: Environment, snapshot: Array, done: bool) -> None:
        if done or snapshot[4] == self.border.horizon:
            self.pool.spare.append(env)
        else:
            self.pool.keep(self.key(snapshot), env)

    def key(self, snapshot: Array) -> bytes:
        """The part of the snapshot that is in use."""
        return snapshot[: 5 + int(snapshot[4]) * self.border.action_size].tobytes()
