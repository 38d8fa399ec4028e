"""Any Gymnasium environment as a simulator: a state array is the snapshot of an environment that itself keeps state.

A state is one row [observation | ended | snapshot]. The snapshot is what the user's `get_state` returns, or, where
there is none, the seed and the actions so far, from which a state is restored by replaying them. The observation is in
the row because Gymnasium has no way to ask an environment what it shows without stepping it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import PartError, UsageError
from aggrevated.simulators.gymnasium.border import border_of
from aggrevated.simulators.gymnasium.environments import Environment, Maker
from aggrevated.simulators.gymnasium.pool import Pool
from aggrevated.simulators.gymnasium.proof import prove
from aggrevated.simulators.gymnasium.snapshots import OwnSnapshot, Replay, Way

OWN = {"_made_by", "_border", "name", "horizon", "observation_space", "action_space", "_pool", "_way"}


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
        self._made_by = environment, horizon, name, get_state, set_state, live
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

    def __reduce__(self) -> tuple[Any, ...]:
        added = {name: value for name, value in self.__dict__.items() if name not in OWN}
        return made_again, (type(self), added, self._made_by)  # environments are made, and prove themselves, there

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
            try:
                if env is None:
                    env = way.restore(row[at + 1 :], row[:at])
                row[:at], cost[i], ended = self._border.advance(env, native[i])
            except PartError as error:
                raise error.at(row=i) from error.__cause__
            row[at] = done[i] = ended
            way.update(row[at + 1 :], env, actions[i])
            way.release(env, row[at + 1 :], ended)
        return following, cost, done

    def replayed(self) -> int:
        """How many steps of environments were replayed so far, to come back to a state."""
        return self._way.replayed

    def close(self) -> None:
        """Close the environments that are kept. The simulator stays usable: it makes new ones."""
        self._pool.clear()

    def _first(self, seed: int) -> Array:
        """The state [...] after `reset(seed=seed)`."""
        env = self._pool.take()
        try:
            observation = self._border.reset(env, seed)
            snapshot = self._way.first(env, seed)
        except PartError as error:
            raise error.at(step=0, seed=seed) from error.__cause__
        self._way.release(env, snapshot, False)
        return np.concatenate([observation, np.zeros(1), snapshot], dtype=self._way.dtype)


def made_again(kind: type[GymnasiumSimulator], state: dict[str, Any], made_by: tuple[Any, ...]) -> GymnasiumSimulator:
    """The simulator that these arguments once made, with what a class of somebody's own added to it."""
    environment, horizon, name, get_state, set_state, live = made_by
    simulator = kind.__new__(kind)
    simulator.__dict__.update(state)  # before it proves itself, for which it is stepped
    GymnasiumSimulator.__init__(
        simulator, environment, horizon, name=name, get_state=get_state, set_state=set_state, live=live
    )
    return simulator
