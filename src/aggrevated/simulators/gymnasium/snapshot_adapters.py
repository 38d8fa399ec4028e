"""Environments that are known, or that know themselves: what all of their next steps hang on, and how it is set."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers

from aggrevated.simulators.gymnasium.make import Environment, without_time_limit

Get = Callable[[Environment], Any]
Set = Callable[[Environment, Any], Any]

PAIRS = (("get_state", "set_state"), ("save_state", "restore_state"), ("clone_state", "restore_state"))
# Gymnasium's own, by name: what changes in them besides their generator.
ATTRIBUTES = {
    "CartPoleEnv": ("state", "steps_beyond_terminated"),
    "PendulumEnv": ("state", "last_u"),
    "MountainCarEnv": ("state",),
    "Continuous_MountainCarEnv": ("state",),
    "AcrobotEnv": ("state",),
    "FrozenLakeEnv": ("s", "lastaction"),
    "CliffWalkingEnv": ("s", "lastaction"),
    "TaxiEnv": ("s", "lastaction", "fickle_step", "taxi_orientation"),
    "BlackjackEnv": ("player", "dealer", "dealer_top_card_suit", "dealer_top_card_value_str"),
}
FAMILIES = ("gymnasium.envs.classic_control.", "gymnasium.envs.toy_text.")
MUJOCO = "gymnasium.envs.mujoco."
STATELESS = (
    wrappers.OrderEnforcing, wrappers.PassiveEnvChecker, wrappers.FlattenObservation, wrappers.RescaleAction,
    wrappers.ClipAction, wrappers.ReshapeObservation, wrappers.RescaleObservation, wrappers.DtypeObservation,
    wrappers.FilterObservation, wrappers.GrayscaleObservation, wrappers.ResizeObservation,
)  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """How a snapshot is taken of an environment, and how it is set by one: both of them copy what might be changed."""

    words: str
    get: Get
    set: Set
    ours: bool = True  # else it may raise, or forget what an environment notes at the end of an episode
    draws: Callable[[Environment], Any] = lambda env: None  # what it needs before it can be drawn


def recipes_for(env: Environment) -> list[Recipe]:
    """Those that might do for it; whether they are exact has to be tried."""
    env = without_time_limit(env)
    while isinstance(env, gymnasium.Wrapper):
        if type(env) not in STATELESS:
            return []
        env = env.env
    kind = type(env)
    found = [
        Recipe(f"by its own {get} and {set_}", *own_pair(get, set_), ours=False)
        for get, set_ in PAIRS
        if has_pair(env, get, set_)
    ]
    if kind.__module__.startswith(FAMILIES) and kind.__name__ in ATTRIBUTES:
        names = ATTRIBUTES[kind.__name__]
        found.append(Recipe(f"by setting {', '.join(names)}", *attributes(names)))
    elif kind.__module__.startswith(MUJOCO):
        found.append(mujoco_recipe(env))
    return found


def has_pair(env: Environment, get: str, set_: str) -> bool:
    """Whether it has two such methods, the one without arguments and the other with a single one."""
    try:
        inspect.signature(getattr(env, get)).bind()
        inspect.signature(getattr(env, set_)).bind(None)
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def given(get: Get, set_: Set) -> Recipe:
    """The user's own."""
    words = "by the get_state and set_state that were given"
    return Recipe(words, lambda env: copied(get(env)), lambda env, value: set_(env, copied(value)), ours=False)


def own_pair(get: str, set_: str) -> tuple[Get, Set]:
    """The environment's own methods, and its generator."""

    def taken(env: Environment) -> Any:
        return copied(getattr(env.unwrapped, get)()), luck_of(env)

    def put(env: Environment, snapshot: Any) -> None:
        getattr(env.unwrapped, set_)(copied(snapshot[0]))
        restore_luck(env, snapshot[1])

    return taken, put


def attributes(names: tuple[str, ...]) -> tuple[Get, Set]:
    """Some of the environment's attributes, and its generator."""

    def taken(env: Environment) -> Any:
        inner = env.unwrapped
        return tuple([copied(getattr(inner, name)) for name in names]), luck_of(env)

    def put(env: Environment, snapshot: Any) -> None:
        inner = env.unwrapped
        for name, value in zip(names, snapshot[0], strict=True):
            setattr(inner, name, copied(value))
        restore_luck(env, snapshot[1])

    return taken, put


def mujoco_recipe(env: Any) -> Recipe:
    """All that MuJoCo integrates, where the last step left the bodies (some read it before they step), and luck."""
    import mujoco

    whole = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    size = mujoco.mj_stateSize(env.model, whole)

    def taken(env: Environment) -> Any:
        inner: Any = env.unwrapped
        state = np.empty(size)
        mujoco.mj_getState(inner.model, inner.data, state, whole)
        return state, inner.data.xpos.copy(), inner.data.xipos.copy(), luck_of(env)

    def put(env: Environment, snapshot: Any) -> None:
        inner: Any = env.unwrapped
        state, bodies, masses, luck = snapshot
        mujoco.mj_setState(inner.model, inner.data, state, whole)
        inner.data.xpos[:], inner.data.xipos[:] = bodies, masses
        restore_luck(env, luck)

    def draws(env: Environment) -> None:
        inner: Any = env.unwrapped
        mujoco.mj_forward(inner.model, inner.data)

    return Recipe("by MuJoCo's own state", taken, put, draws=draws)


def luck_of(env: Environment) -> Any:
    """Where its generator is."""
    return env.unwrapped.np_random.bit_generator.state


def restore_luck(env: Environment, state: Any) -> None:
    """Set its generator."""
    env.unwrapped.np_random.bit_generator.state = state


def copied(value: Any) -> Any:
    """A copy that no environment can change, nor be changed by."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if value is None or isinstance(value, int | float | str | bytes | np.generic):
        return value
    if type(value) is tuple:
        return tuple([copied(one) for one in value])
    if type(value) is list:
        return [copied(one) for one in value]
    if type(value) is dict:
        return {key: copied(one) for key, one in value.items()}
    return deepcopy(value)
