"""Means and scales of observations and actions, estimated before training."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.experts import Expert
from aggrevated.experts.checked import query_actions
from aggrevated.simulators import Simulator, find_action_mask
from aggrevated.simulators.checked import observe_float64, reset_and_check, step_and_check

# for observations: maximum number of steps, and number of episodes
STEPS = 2000
EPISODES = 20
# for actions: maximum number of queries, and number of episodes
MAX_QUERIES = 200
EXPERT_EPISODES = 4
UNITS = 1e-30, 1e30  # range of scales of actions that float32 can hold
VARIES = 1e-4  # deviation relative to an action's size, below which the action counts as constant
LAST_BITS = 10  # deviation in units of the type's precision, below which an observation counts as constant


def estimate_observation_stats(simulator: Simulator) -> tuple[Array, Array]:
    """Return (mean, scale), float64 [O], of each number of the observations under random actions.

    The scale is the standard deviation. Numbers that are always 0 or 1 get mean 0 and scale 1. Constant
    numbers get their size, at least 1, as scale. Both depend on the simulator only, so all runs in it use
    equal values.
    """
    sample = np.concatenate([*collect_random_observations(simulator)])
    last_bits = LAST_BITS * np.finfo(sample.dtype).eps if sample.dtype.kind == "f" else 0.0
    observations = sample.astype(np.float64)
    mean = observations.mean(axis=0)
    deviation = observations.std(axis=0)
    is_binary = np.isin(observations, (0.0, 1.0)).all(axis=0)
    is_constant = deviation <= last_bits * np.abs(mean)
    scale = np.where(is_constant, np.maximum(np.abs(mean), 1.0), deviation)
    return np.where(is_binary, 0.0, mean), np.where(is_binary, 1.0, scale)


def collect_random_observations(simulator: Simulator) -> list[Array]:
    """Return the observations [n, O] at each step of some episodes of random actions."""
    generator = np.random.default_rng(0)
    masked = find_action_mask(simulator)
    states = reset_and_check(simulator, derive_seeds(0, SeedPurpose.DEMONSTRATION, 0, EPISODES))
    observations = []
    steps = 0
    for _ in range(simulator.horizon):
        observations.append(observe_float64(simulator, states))
        steps += len(states)
        legal = None if masked is None else masked.action_mask(states)
        states, _, done = step_and_check(simulator, states, sample_actions(simulator, generator, len(states), legal))
        states = states[~done]
        if steps >= STEPS or not len(states):
            break
    return observations


def sample_actions(simulator: Simulator, generator: np.random.Generator, count: int, legal: Array | None) -> Array:
    """Return random actions [count] or [count, A]: uniform, or standard normal where there are no bounds."""
    space = simulator.action_space
    if isinstance(space, Discrete):
        scores = generator.random((count, int(space.n)))
        actions: Array = (scores if legal is None else np.where(legal, scores, -1.0)).argmax(axis=1)
        return actions
    low, high = (np.where(np.isfinite(b), b, 0.0).astype(np.float64) for b in (space.low, space.high))
    uniform = generator.random((count, *space.shape)) * (high - low) + low
    bounded = np.isfinite(space.low) & np.isfinite(space.high)
    return np.where(bounded, uniform, generator.standard_normal(uniform.shape)).astype(space.dtype)


def estimate_action_stats(simulator: Simulator, expert: Expert) -> tuple[Array, Array]:
    """Return (center, unit), float32 [A], of the expert's actions on the first steps of some of its episodes.

    The unit is the standard deviation. For constant actions it is half of the action space, or the action's
    size.
    """
    space = simulator.action_space
    assert isinstance(space, Box)
    actions = np.concatenate(collect_expert_actions(simulator, expert)).clip(space.low, space.high)
    center = actions.mean(axis=0)
    deviation = actions.std(axis=0)
    half = (np.asarray(space.high, np.float64) - space.low) / 2
    default = np.where(np.isfinite(half) & (half > 0), half, np.maximum(np.abs(center), 1.0))
    varies = deviation > VARIES * np.minimum(default, np.abs(actions).max(axis=0))
    unit = np.where(varies, deviation, np.minimum(default, np.maximum(np.abs(center), 1.0) / VARIES))
    return center.astype(np.float32), unit.clip(*UNITS).astype(np.float32)


def collect_expert_actions(simulator: Simulator, expert: Expert) -> list[Array]:
    """Return the actions of π*, float64 [n, A], at each of the first steps of some episodes."""
    states = reset_and_check(simulator, derive_seeds(0, SeedPurpose.DEMONSTRATION, 1, EXPERT_EPISODES))
    collected = []
    for t in range(min(simulator.horizon, MAX_QUERIES // EXPERT_EPISODES)):
        actions = query_actions(expert, states, t, simulator.action_space)
        collected.append(np.asarray(actions, np.float64).reshape(len(states), -1))
        states, _, done = step_and_check(simulator, states, actions)
        states = states[~done]
        if not len(states):
            break
    return collected
