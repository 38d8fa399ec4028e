"""Environments as they are made for us: without a time limit, and with seeds that they take."""

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
EnvironmentSource = str | EnvSpec | EnvironmentFactory  # of which new environments can be made
LARGEST_SEED = 2**64 - 1  # of a trajectory
SMALL = 2**31


class SeedingMode(Enum):
    """How an environment is given the seed of a trajectory, in words where that is unusual."""

    WHOLE = ""
    SMALL = "its reset takes no 64-bit seeds, and is given them modulo 2**31"
    GENERATOR = "its reset takes no seed; its generator np_random is made anew from it before"


def resolve_environment_source(environment: EnvironmentSource | Environment) -> EnvironmentSource:
    """What new environments are made of: an id, a function, or what an environment says of how it was made."""
    if isinstance(environment, gymnasium.Env) and environment.spec is not None:
        return environment.spec
    if isinstance(environment, str | EnvSpec) or callable(environment):
        return environment
    raise UsageError("one environment runs one episode at a time: give its id, or a function that makes a new one")


def make_environment(source: EnvironmentSource, **options: Any) -> Environment:
    """A new environment, as it comes."""
    if isinstance(source, str | EnvSpec):
        try:
            return gymnasium.make(source, disable_env_checker=True, **options)  # `prove` checks more, and once
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
        f"{get_environment_name(source)} returned {type(env).__name__} where a gymnasium.Env was to be made"
    )


def get_environment_name(source: EnvironmentFactory) -> str:
    """Of a function."""
    return str(getattr(source, "__name__", type(source).__name__))


def make_rendering_environment(source: EnvironmentSource, name: str) -> Environment:
    """A new environment that draws pictures, without its time limit; a `UsageError` where none can be made."""
    if not isinstance(source, str | EnvSpec):
        taken = inspect.signature(source).parameters.values()
        if not any(p.name == "render_mode" or p.kind is p.VAR_KEYWORD for p in taken):
            raise UsageError(f"{name} cannot be drawn: let the function that makes it take render_mode and pass it on")
    env = unwrap_time_limit(make_environment(source, render_mode="rgb_array"))
    if env.render_mode != "rgb_array":
        raise UsageError(f"{name} cannot be drawn, for it has no render_mode 'rgb_array'; give it one")
    return env


def unwrap_time_limit(env: Environment) -> Environment:
    """The environment without `TimeLimit`: its counter is a hidden state, and the horizon cuts episodes already."""
    if isinstance(env, gymnasium.wrappers.TimeLimit):
        return unwrap_time_limit(env.env)
    if isinstance(env, gymnasium.Wrapper):
        env.env = unwrap_time_limit(env.env)
    return env


def read_time_limit(env: Environment) -> int | None:
    """After how many steps it cuts its episodes, as far as it says."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.wrappers.TimeLimit):
            return int(env._max_episode_steps)
        env = env.env
    return env.spec.max_episode_steps if env.spec is not None else None


def reset_environment(env: Environment, seed: int, seeding: SeedingMode) -> Any:
    """What `reset` gives."""
    if seeding is SeedingMode.WHOLE:
        return env.reset(seed=seed)
    if seeding is SeedingMode.SMALL:
        return env.reset(seed=seed % SMALL)
    reseed_environment(env, seed)
    return env.reset()


def reseed_environment(env: Environment, seed: int) -> None:
    """Give an environment another generator."""
    env.unwrapped.np_random = np.random.Generator(np.random.PCG64(seed))


def detect_seeding_mode(env: Environment, name: str) -> SeedingMode:
    """How it takes seeds, which have 64 bits; found by trying."""
    taken = inspect.signature(env.reset).parameters.values()
    if not any(p.name == "seed" or p.kind is p.VAR_KEYWORD for p in taken):
        return SeedingMode.GENERATOR
    try:
        env.reset(seed=LARGEST_SEED)
    except (ValueError, OverflowError, TypeError, gymnasium.error.Error):
        call_user_code(name, "reset", lambda: env.reset(seed=SMALL - 1))
        return SeedingMode.SMALL
    except Exception:
        call_user_code(name, "reset", lambda: env.reset(seed=LARGEST_SEED))
    return SeedingMode.WHOLE
