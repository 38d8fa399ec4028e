"""Making, resetting and seeding Gymnasium environments without their time limits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from aggrevated.core.errors import UsageError
from aggrevated.core.user_code import call_user_code

Environment = gymnasium.Env[Any, Any]
EnvironmentFactory = Callable[..., Environment]
EnvironmentSource = str | EnvSpec | EnvironmentFactory  # each makes new environments
LARGEST_SEED = 2**64 - 1  # of a trajectory
SMALL = 2**31


class SeedingMode(Enum):
    """Ways to pass the seed of a trajectory to an environment; the values describe unusual ones."""

    WHOLE = ""
    SMALL = "its reset accepts no 64-bit seeds: it receives them modulo 2**31"
    GENERATOR = "its reset accepts no seed: its generator np_random is replaced before each reset"


def resolve_environment_source(environment: EnvironmentSource | Environment) -> EnvironmentSource:
    """Return the source of new environments: an id, a function, or the spec of an environment."""
    if isinstance(environment, gymnasium.Env) and environment.spec is not None:
        return environment.spec
    if isinstance(environment, str | EnvSpec) or callable(environment):
        return environment
    raise UsageError(
        "one environment object cannot be copied for a batch: pass its Gymnasium id, or a function that makes a new one"
    )


def make_environment(source: EnvironmentSource, **options: Any) -> Environment:
    """Return a new environment with all its wrappers; raise a `UsageError` where it cannot be made."""
    if isinstance(source, str | EnvSpec):
        try:
            # `check_deterministic` replaces Gymnasium's checker.
            return gymnasium.make(source, disable_env_checker=True, **options)
        except (gymnasium.error.Error, ImportError) as error:
            name = source if isinstance(source, str) else source.id
            raise UsageError(f"Gymnasium cannot make {name!r}: {' '.join(str(error).split())}") from error
    try:
        env: object = source(**options)
    except (gymnasium.error.Error, ImportError) as error:
        raise UsageError(
            f"{get_environment_name(source)} cannot make its environment: {' '.join(str(error).split())}"
        ) from error
    except Exception:
        env = call_user_code(get_environment_name(source), "making of environments", lambda: source(**options))
    if isinstance(env, gymnasium.Env):
        return env
    raise UsageError(
        f"{get_environment_name(source)} returned {type(env).__name__}; it must return a new gymnasium.Env"
    )


def get_environment_name(source: EnvironmentFactory) -> str:
    """Return the name of a function that makes environments, or of its type."""
    return str(getattr(source, "__name__", type(source).__name__))


def make_rendering_environment(source: EnvironmentSource, name: str) -> Environment:
    """Return a new environment that renders RGB arrays, without its time limit, or raise a `UsageError`."""
    if not isinstance(source, str | EnvSpec):
        parameters = inspect.signature(source).parameters.values()
        if not any(p.name == "render_mode" or p.kind is p.VAR_KEYWORD for p in parameters):
            raise UsageError(f"{name} cannot be drawn: let the function that makes it take render_mode and pass it on")
    env = unwrap_time_limit(make_environment(source, render_mode="rgb_array"))
    if env.render_mode != "rgb_array":
        raise UsageError(f"{name} cannot be drawn: it has no render_mode 'rgb_array'; add one")
    return env


def unwrap_time_limit(env: Environment) -> Environment:
    """Return the environment without `TimeLimit`, whose counter is hidden state."""
    if isinstance(env, gymnasium.wrappers.TimeLimit):
        return unwrap_time_limit(env.env)
    if isinstance(env, gymnasium.Wrapper):
        env.env = unwrap_time_limit(env.env)
    return env


def read_time_limit(env: Environment) -> int | None:
    """Return the number of steps after which an environment cuts its episodes; None: it declares none."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.wrappers.TimeLimit):
            return int(env._max_episode_steps)
        env = env.env
    return env.spec.max_episode_steps if env.spec is not None else None


def reset_environment(env: Environment, seed: int, seeding: SeedingMode) -> Any:
    """Reset an environment with a seed and return what its `reset` returns."""
    if seeding is SeedingMode.WHOLE:
        return env.reset(seed=seed)
    if seeding is SeedingMode.SMALL:
        return env.reset(seed=seed % SMALL)
    reseed_environment(env, seed)
    return env.reset()


def reseed_environment(env: Environment, seed: int) -> None:
    """Replace the generator of an environment."""
    env.unwrapped.np_random = np.random.Generator(np.random.PCG64(seed))


def detect_seeding_mode(env: Environment, name: str) -> SeedingMode:
    """Return how an environment accepts 64-bit seeds, found by resetting it."""
    parameters = inspect.signature(env.reset).parameters.values()
    if not any(p.name == "seed" or p.kind is p.VAR_KEYWORD for p in parameters):
        return SeedingMode.GENERATOR
    try:
        env.reset(seed=LARGEST_SEED)
    except (ValueError, OverflowError, TypeError, gymnasium.error.Error):
        call_user_code(name, "reset", lambda: env.reset(seed=SMALL - 1))
        return SeedingMode.SMALL
    except Exception:
        call_user_code(name, "reset", lambda: env.reset(seed=LARGEST_SEED))
    return SeedingMode.WHOLE
