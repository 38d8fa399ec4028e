"""Any Gymnasium environment as a simulator: a state array is the snapshot of an environment that itself keeps state.

A state is one row [observation | ended | snapshot]. The snapshot is what the user's `get_state` returns, or, where
there is none, the seed and the actions so far, from which a state is restored by replaying them. The observation is in
the row because Gymnasium has no way to ask an environment what it shows without stepping it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.arrays import Array
from aggrevated.errors import DataError, UsageError

Environment = gymnasium.Env[Any, Any]
Maker = Callable[[], Environment]
PROOF_SEEDS, PROOF_STEPS = np.array([0, 2**64 - 1], np.uint64), 20


class GymnasiumSimulator:
    """An environment, given by its id or by a function that makes a new one, over a batch of independent episodes.

    Rewards become costs, `terminated` and `truncated` both end an episode, and `horizon` takes the place of the
    environment's time limit. With `get_state(env) -> [S]` and `set_state(env, [S])` a step costs one of each and one
    `env.step`. Without them, up to `live` environments are kept where they stand: going forward costs one `env.step`,
    going back replays the episode, and a state holds H actions, so that K trajectories hold K·H² of them.
    An environment that does not repeat itself exactly is refused.
    """

    def __init__(
        self,
        environment: str | Maker,
        horizon: int | None = None,
        *,
        name: str | None = None,
        get_state: Callable[[Environment], Array] | None = None,
        set_state: Callable[[Environment, Array], None] | None = None,
        live: int = 256,
    ) -> None:
        self._border = border_of(environment, horizon, name)
        self.name, self.horizon = self._border.name, self._border.horizon
        self.observation_space, self.action_space = self._border.observation_space, self._border.action_space
        self._pool = Pool(self._border.make, live)
        self._way: Way
        if get_state is not None and set_state is not None:
            self._way = OwnSnapshot(self._border, self._pool, get_state, set_state)
        elif get_state is None and set_state is None:
            self._way = Replay(self._border, self._pool)
        else:
            raise UsageError(f"{self.name}: get_state and set_state are of use only together; supply both or neither")
        prove(self, self._pool, self._way.drift)

    def initial(self, seeds: Array) -> Array:
        """States [n, ...]: the environment after `reset(seed=seed)`, for each of the seeds."""
        return np.stack([self._first(int(seed)) for seed in seeds])

    def observe(self, state: Array) -> Array:
        """[n, O] float32: the environment's observations, flattened."""
        return state[:, : self._border.observation_size].astype(np.float32)

    def snapshot(self, state: Array) -> Array:
        """[n, S]: what `get_state` returned, or else four pieces of the seed, the number of steps, and the actions."""
        return state[:, self._border.observation_size + 1 :]

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """(next state [n, ...], cost [n], done [n]). A state in which the episode has ended cannot be stepped."""
        way, at = self._way, self._border.observation_size
        if state[:, at].any():
            raise UsageError(f"{self.name}: an episode that has ended was stepped; drop it from the batch")
        actions = self._border.rows(action)
        native = self._border.native(actions)
        following, cost, done = state.copy(), np.empty(len(state)), np.empty(len(state), bool)
        # All that stand ready are claimed, and used, before one is restored: restoring must not take them away.
        claimed = way.claim(state[:, at + 1 :])
        for i in sorted(range(len(state)), key=lambda i: claimed[i] is None):
            row, env = following[i], claimed[i]
            if env is None:
                env = way.restore(row[at + 1 :], row[:at])
            row[:at], cost[i], ended = self._border.advance(env, native[i])
            row[at] = done[i] = ended
            way.update(row[at + 1 :], env, actions[i])
            way.release(env, row[at + 1 :], ended)
        return following, cost, done

    def close(self) -> None:
        """Close the environments that are kept. The simulator stays usable: it makes new ones."""
        self._pool.clear()

    def _first(self, seed: int) -> Array:
        """The state [...] after `reset(seed=seed)`."""
        env = self._pool.take()
        observation = self._border.reset(env, seed)
        snapshot = self._way.first(env, seed)
        self._way.release(env, snapshot, False)
        return np.concatenate([observation, np.zeros(1), snapshot], dtype=self._way.dtype)


@dataclass(frozen=True)
class Border:
    """Where Gymnasium's types meet ours: the only place where environments are reset and stepped."""

    make: Maker
    name: str
    horizon: int
    observations: Box  # as the environment has them; ours are flat
    actions: Discrete | Box

    @property
    def observation_space(self) -> Box:
        return flat(self.observations, np.float32)

    @property
    def action_space(self) -> Discrete | Box:
        """Discrete actions count from 0, as policies do, wherever the environment starts."""
        return Discrete(int(self.actions.n)) if isinstance(self.actions, Discrete) else flat(self.actions)

    @cached_property
    def observation_size(self) -> int:
        return int(np.prod(self.observations.shape))

    @cached_property
    def action_size(self) -> int:
        return int(np.prod(self.actions.shape or ()))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest floats that hold every action and observation exactly."""
        kinds = [self.actions.dtype]
        if isinstance(self.actions, Discrete):
            kinds = [np.min_scalar_type(int(self.actions.n))]
        return np.result_type(np.float32, self.observations.dtype, *kinds)

    def rows(self, action: Array) -> Array:
        """Actions [n] or [n, ...] as rows [n, A]. Those of a Box are clipped to it: a Gaussian knows no bounds."""
        flattened: Array = np.reshape(action, (len(action), self.action_size))
        if isinstance(self.actions, Box):
            flattened = flattened.clip(self.actions.low.ravel(), self.actions.high.ravel()).astype(self.actions.dtype)
        return flattened

    def native(self, rows: Array) -> Array:
        """Rows [n, A] as the environment takes its actions, [n, ...]; a copy, which it is free to change."""
        if isinstance(self.actions, Discrete):
            return rows[:, 0].astype(np.int64) + self.actions.start
        return rows.astype(self.actions.dtype).reshape(len(rows), *self.actions.shape)

    def reset(self, env: Environment, seed: int) -> Array:
        """The first observation [O]."""
        observation = np.ravel(env.reset(seed=seed)[0])
        if observation.size != self.observation_size:
            raise DataError(
                f"{self.name} returned an observation of {observation.size} numbers where its space has "
                f"{self.observation_size}: make its observation_space fit"
            )
        return observation

    def advance(self, env: Environment, action: Any) -> tuple[Array, float, bool]:
        """(observation [O], cost, done) of one step."""
        observation, reward, terminated, truncated, _ = env.step(action)
        return np.ravel(observation), 0.0 - float(reward), bool(terminated or truncated)


class Way(Protocol):
    """How a snapshot is taken of an environment, and how an environment is brought back to it."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

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


@dataclass(frozen=True)
class Replay:
    """Snapshots [four 16-bit pieces of the seed | t | H·A actions], restored by taking the first t of the actions."""

    border: Border
    pool: Pool

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


class Pool:
    """Environments for use: at most `size` that are kept where they stand, and those that nobody needs any more."""

    def __init__(self, make: Maker, size: int) -> None:
        if size < 1:
            raise UsageError(f"live = {size} environments cannot be kept; give 1 or more")
        self.make, self.size = make, size
        self.spare: list[Environment] = []
        self.standing: OrderedDict[bytes, Environment] = OrderedDict()  # by the state they stand in, oldest first

    def __reduce__(self) -> tuple[type[Pool], tuple[Maker, int]]:
        """Copies and pickles start empty: the copy of an environment need not stand where the original does."""
        return Pool, (self.make, self.size)

    def claim(self, key: bytes) -> Environment | None:
        """The environment that stands in this state; it is the caller's from now on."""
        return self.standing.pop(key, None)

    def take(self) -> Environment:
        """An environment that may stand anywhere."""
        return self.spare.pop() if self.spare else self.make()

    def keep(self, key: bytes, env: Environment) -> None:
        """Keep an environment for whoever comes back to this state; the oldest gives way."""
        replaced = self.standing.pop(key, None)
        self.standing[key] = env
        if len(self.standing) > self.size:
            replaced = self.standing.popitem(last=False)[1]
        if replaced is not None:
            self.spare.append(replaced)

    def forget(self) -> None:
        """Keep the environments, but none of the states they stand in."""
        self.spare += self.standing.values()
        self.standing.clear()

    def clear(self) -> None:
        """Close all environments; new ones will be made."""
        self.forget()
        while self.spare:
            self.spare.pop().close()


def prove(simulator: GymnasiumSimulator, pool: Pool, drift: DataError) -> None:
    """Raise `drift` unless short random episodes can be repeated exactly, from their start and from their middle.

    They are repeated in used environments, which shows what is carried over from episode to episode, and in new ones,
    which shows what is drawn at construction; and in reverse order, which shows what environments share.
    """
    episodes = list(random_episodes(simulator))
    for prepare in (pool.forget, pool.clear):
        prepare()
        if not same(simulator.initial(PROOF_SEEDS[::-1]), episodes[0][0]):
            raise drift
        for start in (len(episodes) // 2, 0):
            prepare()
            for state, action, *outcome in episodes[start:]:
                again = simulator.step(state[::-1], action[::-1])
                if not all(map(same, again, outcome)):
                    raise drift
    pool.forget()


def same(reversed_batch: Array, batch: Array) -> bool:
    """Whether two batches are equal, one of them in reverse order."""
    return np.array_equal(reversed_batch[::-1], batch, equal_nan=True)


def random_episodes(simulator: GymnasiumSimulator) -> Iterator[tuple[Array, Array, Array, Array, Array]]:
    """(state, action, next state, cost, done) of each step of a small batch of episodes under random actions."""
    space, state = simulator.action_space, simulator.initial(PROOF_SEEDS)
    space.seed(0)
    for _ in range(min(PROOF_STEPS, simulator.horizon)):
        action = np.stack([np.asarray(space.sample()) for _ in state])
        following, cost, done = simulator.step(state, action)
        yield state, action, following, cost, done
        state = following[~done]
        if not len(state):
            return


def border_of(environment: str | Maker, horizon: int | None, name: str | None) -> Border:
    """What can be known of an environment by making it; a `UsageError` where it cannot be used."""
    if not isinstance(environment, str) and not callable(environment):
        raise UsageError("one environment runs one episode at a time: give its id, or a function that makes a new one")
    env, other = made(environment), made(environment)
    name = name or (env.spec.id if env.spec is not None else type(env.unwrapped).__name__)
    if env.unwrapped is other.unwrapped:
        raise UsageError(f"{name}: the function returned the same environment twice; let it make a new one each time")
    if horizon is None and env.spec is not None:
        horizon = env.spec.max_episode_steps
    if horizon is None or horizon < 1:
        raise UsageError(f"{name} needs a horizon: give the number of steps, 1 or more, after which episodes are cut")
    observations, actions = spaces_of(env, name)
    check_seeds(env, name)
    env.close()
    other.close()
    return Border(partial(ready, environment), name, horizon, observations, actions)


def spaces_of(env: Environment, name: str) -> tuple[Box, Discrete | Box]:
    """The spaces of observations and of actions."""
    observations, actions = env.observation_space, env.action_space
    if not isinstance(observations, Box):
        raise UsageError(
            f"{name} has observations of type {type(observations).__name__} where learners need a Box: "
            "wrap it in gymnasium.wrappers.FlattenObservation"
        )
    if not isinstance(actions, Discrete | Box):
        raise UsageError(f"{name} has actions of type {type(actions).__name__}: wrap it to make them Discrete or Box")
    return observations, actions


def check_seeds(env: Environment, name: str) -> None:
    """Raise a `UsageError` if the environment does not take the seeds of trajectories, which have 64 bits."""
    try:
        env.reset(seed=int(PROOF_SEEDS.max()))
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{name} cannot be reset with a 64-bit seed ({error}): wrap it so that reset takes the seed modulo 2**32"
        ) from error


def made(environment: str | Maker) -> Environment:
    """A new environment, as it comes."""
    if not isinstance(environment, str):
        return environment()
    try:
        return gymnasium.make(environment, disable_env_checker=True)  # `prove` checks more, and once
    except gymnasium.error.Error as error:
        raise UsageError(f"Gymnasium cannot make {environment!r}: {error}") from error


def ready(environment: str | Maker) -> Environment:
    """A new environment without its time limit, reset: before that, some can neither be stepped nor be set."""
    env = without_time_limit(made(environment))
    env.reset(seed=0)
    return env


def without_time_limit(env: Environment) -> Environment:
    """The environment without `TimeLimit`: its counter is a hidden state, and the horizon cuts episodes already."""
    if isinstance(env, gymnasium.wrappers.TimeLimit):
        return without_time_limit(env.env)
    if isinstance(env, gymnasium.Wrapper):
        env.env = without_time_limit(env.env)
    return env


def flat(box: Box, dtype: Any = None) -> Box:
    """The same Box with one axis."""
    dtype = dtype or box.dtype
    with np.errstate(over="ignore"):  # bounds beyond a float32 become infinite
        low, high = (bound.ravel().astype(dtype) for bound in (box.low, box.high))
    return Box(low, high, dtype=dtype)
