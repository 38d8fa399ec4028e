"""Where Gymnasium's types meet ours."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.arrays import Array
from aggrevated.errors import PartError, UsageError
from aggrevated.parts import answer, numbers
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
        given = answer(self.name, "reset", lambda: env.reset(seed=seed))
        if not isinstance(given, tuple) or len(given) != 2:
            raise PartError(self.name, f"gave {type(given).__name__} as a reset", "give (observation, info)")
        return self.shown(given[0])

    def advance(self, env: Environment, action: Any) -> tuple[Array, float, bool]:
        """(observation [O], cost, done) of one step."""
        given = answer(self.name, "step", lambda: env.step(action))
        if not isinstance(given, tuple) or len(given) != 5:
            parts = "(observation, reward, terminated, truncated, info)"
            raise PartError(self.name, f"gave {of_parts(given)} as a step", f"give {parts}")
        observation, reward, terminated, truncated, _ = given
        cost = 0.0 - answer(self.name, "step, whose reward must be a number", lambda: float(reward))
        done = answer(self.name, "step, whose ends must be True or False", lambda: bool(terminated or truncated))
        if np.isfinite(cost):
            return self.shown(observation), cost, done
        return np.ravel(observation), cost, True  # it diverged: what it shows then is nobody's

    def shown(self, observation: Any) -> Array:
        """What it shows as a vector [O]; a `PartError` where that is not of its space, or no numbers."""
        remedy = "make what it returns fit its observation_space"
        shape = np.shape(observation)
        if shape != self.observations.shape and int(np.prod(shape)) == self.observation_size and shape != ():
            observation = np.reshape(observation, self.observations.shape)  # a row more or less is no fault
        array = np.ravel(numbers(self.name, "an observation", observation, self.observations.shape, remedy))
        if np.isfinite(array).all():
            return array
        place = int(np.argmin(np.isfinite(array)))
        what = f"gave an observation that is not finite (number {place} is {array[place]})"
        raise PartError(self.name, what, "check what its step and reset return")


def of_parts(given: object) -> str:
    """What it is, in words."""
    return f"a tuple of {len(given)}" if isinstance(given, tuple) else type(given).__name__


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
