"""Environments as they are made for us: without a time limit, and refused where they cannot be used."""

from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.spaces import Box, Discrete

from aggrevated.errors import UsageError

Environment = gymnasium.Env[Any, Any]
Maker = Callable[[], Environment]
LARGEST_SEED = 2**64 - 1  # of a trajectory


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
        env.reset(seed=LARGEST_SEED)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{name} cannot be reset with a 64-bit seed ({error}): wrap it so that reset takes the seed modulo 2**32"
        ) from error
