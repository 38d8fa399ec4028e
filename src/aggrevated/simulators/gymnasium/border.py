"""Where Gymnasium's types meet ours."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.arrays import Array
from aggrevated.errors import DataError, UsageError
from aggrevated.simulators.gymnasium.environments import Environment, Maker, check_seeds, made, ready, spaces_of


@dataclass(frozen=True)
class Border:
    """One environment's name, horizon and spaces; the only place where environments are reset and stepped."""

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


def flat(box: Box, dtype: Any = None) -> Box:
    """The same Box with one axis."""
    dtype = dtype or box.dtype
    with np.errstate(over="ignore"):  # bounds beyond a float32 become infinite
        low, high = (bound.ravel().astype(dtype) for bound in (box.low, box.high))
    return Box(low, high, dtype=dtype)
