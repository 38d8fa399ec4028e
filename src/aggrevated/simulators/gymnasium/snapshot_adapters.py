"""Snapshots of environments: of Gymnasium's own by their known state, of others by their own methods."""

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
# Attributes that change in Gymnasium's own environments, besides their generator, by class name.
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
    """Functions that take and restore snapshots of an environment; both copy mutable values.

    Attributes:
        description: how states are restored, for people: "by …".
        get: function from an environment to a snapshot.
        set: function that restores a snapshot in an environment.
        is_builtin: whether the functions are ours; others may raise, or leave out flags that the end of an
            episode sets.
        prepare_rendering: function to call before a restored environment is drawn.
    """

    description: str
    get: StateGetter
    set: StateSetter
    is_builtin: bool = True
    prepare_rendering: Callable[[Environment], Any] = lambda env: None


def find_snapshot_adapters(env: Environment) -> list[SnapshotAdapter]:
    """Return the adapters that may suit an environment; the caller must check that they are exact."""
    env = unwrap_time_limit(env)
    while isinstance(env, gymnasium.Wrapper):
        if type(env) not in STATELESS:
            return []
        env = env.env
    kind = type(env)
    adapters = [
        SnapshotAdapter(f"by its own {get} and {set_}", *make_get_set_state_adapter(get, set_), is_builtin=False)
        for get, set_ in PAIRS
        if has_get_set_state(env, get, set_)
    ]
    if kind.__module__.startswith(FAMILIES) and kind.__name__ in ATTRIBUTES:
        names = ATTRIBUTES[kind.__name__]
        adapters.append(SnapshotAdapter(f"by setting {', '.join(names)}", *make_attribute_adapter(names)))
    elif kind.__module__.startswith(MUJOCO):
        adapters.append(make_mujoco_adapter(env))
    return adapters


def has_get_set_state(env: Environment, get: str, set_: str) -> bool:
    """Return whether the environment has both methods, `get` without arguments and `set_` with one."""
    try:
        inspect.signature(getattr(env, get)).bind()
        inspect.signature(getattr(env, set_)).bind(None)
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def make_user_adapter(get: StateGetter, set_: StateSetter) -> SnapshotAdapter:
    """Return the adapter of functions that the user passed."""
    return SnapshotAdapter(
        "by the get_state and set_state that you passed",
        lambda env: copy_value(get(env)),
        lambda env, value: set_(env, copy_value(value)),
        is_builtin=False,
    )


def make_get_set_state_adapter(get: str, set_: str) -> tuple[StateGetter, StateSetter]:
    """Return functions that use the environment's own methods, and its generator."""

    def read_snapshot(env: Environment) -> Any:
        return copy_value(getattr(env.unwrapped, get)()), get_rng_state(env)

    def write_snapshot(env: Environment, snapshot: Any) -> None:
        getattr(env.unwrapped, set_)(copy_value(snapshot[0]))
        set_rng_state(env, snapshot[1])

    return read_snapshot, write_snapshot


def make_attribute_adapter(names: tuple[str, ...]) -> tuple[StateGetter, StateSetter]:
    """Return functions that copy attributes of the environment, and its generator."""

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
    """Return an adapter of MuJoCo's integration state, body positions and the environment's generator.

    Body positions are part of the snapshot because some environments read them before they step.
    """
    import mujoco

    spec = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    size = mujoco.mj_stateSize(env.model, spec)

    def read_snapshot(env: Environment) -> Any:
        inner: Any = env.unwrapped
        state = np.empty(size)
        mujoco.mj_getState(inner.model, inner.data, state, spec)
        return state, inner.data.xpos.copy(), inner.data.xipos.copy(), get_rng_state(env)

    def write_snapshot(env: Environment, snapshot: Any) -> None:
        inner: Any = env.unwrapped
        state, body_positions, body_centers, rng_state = snapshot
        mujoco.mj_setState(inner.model, inner.data, state, spec)
        inner.data.xpos[:] = body_positions
        inner.data.xipos[:] = body_centers
        set_rng_state(env, rng_state)

    def prepare_rendering(env: Environment) -> None:
        inner: Any = env.unwrapped
        mujoco.mj_forward(inner.model, inner.data)

    return SnapshotAdapter("by MuJoCo's own state", read_snapshot, write_snapshot, prepare_rendering=prepare_rendering)


def get_rng_state(env: Environment) -> Any:
    """Return the state of the environment's generator."""
    return env.unwrapped.np_random.bit_generator.state


def set_rng_state(env: Environment, state: Any) -> None:
    """Set the state of the environment's generator."""
    env.unwrapped.np_random.bit_generator.state = state


def copy_value(value: Any) -> Any:
    """Return a deep copy, with fast paths for common types."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if value is None or isinstance(value, int | float | str | bytes | np.generic):
        return value
    if type(value) is tuple:
        return tuple([copy_value(entry) for entry in value])
    if type(value) is list:
        return [copy_value(entry) for entry in value]
    if type(value) is dict:
        return {key: copy_value(one) for key, one in value.items()}
    return deepcopy(value)
