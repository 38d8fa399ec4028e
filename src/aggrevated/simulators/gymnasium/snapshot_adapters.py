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

from aggrevated.simulators.gymnasium.make import Environment, unwrap_time_limit

StateGetter = Callable[[Environment], Any]
StateSetter = Callable[[Environment, Any], Any]

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
class SnapshotAdapter:
    """How a snapshot is taken of an environment, and how it is set by one: both of them copy what might be changed."""

    words: str
    get: StateGetter
    set: StateSetter
    ours: bool = True  # else it may raise, or forget what an environment notes at the end of an episode
    draws: Callable[[Environment], Any] = lambda env: None  # what it needs before it can be drawn


def find_snapshot_adapters(env: Environment) -> list[SnapshotAdapter]:
    """Those that might do for it; whether they are exact has to be tried."""
    env = unwrap_time_limit(env)
    while isinstance(env, gymnasium.Wrapper):
        if type(env) not in STATELESS:
            return []
        env = env.env
    kind = type(env)
    found = [
        SnapshotAdapter(f"by its own {get} and {set_}", *make_get_set_state_adapter(get, set_), ours=False)
        for get, set_ in PAIRS
        if has_get_set_state(env, get, set_)
    ]
    if kind.__module__.startswith(FAMILIES) and kind.__name__ in ATTRIBUTES:
        names = ATTRIBUTES[kind.__name__]
        found.append(SnapshotAdapter(f"by setting {', '.join(names)}", *make_attribute_adapter(names)))
    elif kind.__module__.startswith(MUJOCO):
        found.append(make_mujoco_adapter(env))
    return found


def has_get_set_state(env: Environment, get: str, set_: str) -> bool:
    """Whether it has two such methods, the one without arguments and the other with a single one."""
    try:
        inspect.signature(getattr(env, get)).bind()
        inspect.signature(getattr(env, set_)).bind(None)
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def make_user_adapter(get: StateGetter, set_: StateSetter) -> SnapshotAdapter:
    """The user's own."""
    words = "by the get_state and set_state that were given"
    return SnapshotAdapter(
        words, lambda env: copy_value(get(env)), lambda env, value: set_(env, copy_value(value)), ours=False
    )


def make_get_set_state_adapter(get: str, set_: str) -> tuple[StateGetter, StateSetter]:
    """The environment's own methods, and its generator."""

    def read_snapshot(env: Environment) -> Any:
        return copy_value(getattr(env.unwrapped, get)()), get_rng_state(env)

    def write_snapshot(env: Environment, snapshot: Any) -> None:
        getattr(env.unwrapped, set_)(copy_value(snapshot[0]))
        set_rng_state(env, snapshot[1])

    return read_snapshot, write_snapshot


def make_attribute_adapter(names: tuple[str, ...]) -> tuple[StateGetter, StateSetter]:
    """Some of the environment's attributes, and its generator."""

    def read_snapshot(env: Environment) -> Any:
        inner = env.unwrapped
        return tuple([copy_value(getattr(inner, name)) for name in names]), get_rng_state(env)

    def write_snapshot(env: Environment, snapshot: Any) -> None:
        inner = env.unwrapped
        for name, value in zip(names, snapshot[0], strict=True):
            setattr(inner, name, copy_value(value))
        set_rng_state(env, snapshot[1])

    return read_snapshot, write_snapshot


def make_mujoco_adapter(env: Any) -> SnapshotAdapter:
    """All that MuJoCo integrates, where the last step left the bodies (some read it before they step), and luck."""
    import mujoco

    whole = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    size = mujoco.mj_stateSize(env.model, whole)

    def read_snapshot(env: Environment) -> Any:
        inner: Any = env.unwrapped
        state = np.empty(size)
        mujoco.mj_getState(inner.model, inner.data, state, whole)
        return state, inner.data.xpos.copy(), inner.data.xipos.copy(), get_rng_state(env)

    def write_snapshot(env: Environment, snapshot: Any) -> None:
        inner: Any = env.unwrapped
        state, bodies, masses, luck = snapshot
        mujoco.mj_setState(inner.model, inner.data, state, whole)
        inner.data.xpos[:] = bodies
        inner.data.xipos[:] = masses
        set_rng_state(env, luck)

    def draws(env: Environment) -> None:
        inner: Any = env.unwrapped
        mujoco.mj_forward(inner.model, inner.data)

    return SnapshotAdapter("by MuJoCo's own state", read_snapshot, write_snapshot, draws=draws)


def get_rng_state(env: Environment) -> Any:
    """Where its generator is."""
    return env.unwrapped.np_random.bit_generator.state


def set_rng_state(env: Environment, state: Any) -> None:
    """Set its generator."""
    env.unwrapped.np_random.bit_generator.state = state


def copy_value(value: Any) -> Any:
    """A copy that no environment can change, nor be changed by."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if value is None or isinstance(value, int | float | str | bytes | np.generic):
        return value
    if type(value) is tuple:
        return tuple([copy_value(one) for one in value])
    if type(value) is list:
        return [copy_value(one) for one in value]
    if type(value) is dict:
        return {key: copy_value(one) for key, one in value.items()}
    return deepcopy(value)
