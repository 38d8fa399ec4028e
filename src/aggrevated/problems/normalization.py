"""What the numbers of observations and actions are like: looked at before anything is learned."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.experts import Expert
from aggrevated.experts.checked import query_actions
from aggrevated.simulators import Simulator, find_action_mask
from aggrevated.simulators.checked import observe_float64, reset_and_check, step_and_check

# that are looked at, at most
STEPS = 2000
EPISODES = 20
# vectors that an expert is asked for, and episodes at once
ADVISED = 200
LANES = 4
UNITS = 1e-30, 1e30  # of actions: beyond, float32 has no room for them
VARIES = 1e-4  # of its size: less is no variation
LAST_BITS = 10  # what varies by so few of its own type does not


def estimate_observation_stats(simulator: Simulator) -> tuple[Array, Array]:
    """(mean, deviation) float64 [O] of each number; 0 and 1 of those that are only ever 0 or 1.

    One that never changes is its own mean, and has its own size for a scale. They belong to the simulator alone, so
    that all runs in it read the same numbers.
    """
    found = np.concatenate([*collect_random_observations(simulator)])
    last_bits = LAST_BITS * np.finfo(found.dtype).eps if found.dtype.kind == "f" else 0.0
    shown = found.astype(np.float64)
    mean = shown.mean(axis=0)
    deviation = shown.std(axis=0)
    flag = np.isin(shown, (0.0, 1.0)).all(axis=0)
    fixed = deviation <= last_bits * np.abs(mean)
    scale = np.where(fixed, np.maximum(np.abs(mean), 1.0), deviation)
    return np.where(flag, 0.0, mean), np.where(flag, 1.0, scale)


def collect_random_observations(simulator: Simulator) -> list[Array]:
    """What is seen in some episodes of actions that are drawn without looking, [n, O] at each step."""
    generator = np.random.default_rng(0)
    rules = find_action_mask(simulator)
    states = reset_and_check(simulator, derive_seeds(0, SeedPurpose.DEMONSTRATION, 0, EPISODES))
    found = []
    steps = 0
    for _ in range(simulator.horizon):
        found.append(observe_float64(simulator, states))
        steps += len(states)
        legal = None if rules is None else rules.action_mask(states)
        states, _, done = step_and_check(simulator, states, sample_actions(simulator, generator, len(states), legal))
        states = states[~done]
        if steps >= STEPS or not len(states):
            break
    return found


def sample_actions(simulator: Simulator, generator: np.random.Generator, count: int, legal: Array | None) -> Array:
    """Actions [count] or [count, A], all alike; of those without bounds, normal ones."""
    space = simulator.action_space
    if isinstance(space, Discrete):
        lots = generator.random((count, int(space.n)))
        actions: Array = np.where(legal, lots, -1.0).argmax(axis=1) if legal is not None else lots.argmax(axis=1)
        return actions
    low, high = (np.where(np.isfinite(b), b, 0.0).astype(np.float64) for b in (space.low, space.high))
    uniform = generator.random((count, *space.shape)) * (high - low) + low
    bounded = np.isfinite(space.low) & np.isfinite(space.high)
    return np.where(bounded, uniform, generator.standard_normal(uniform.shape)).astype(space.dtype)


def estimate_action_stats(simulator: Simulator, expert: Expert) -> tuple[Array, Array]:
    """(centre, unit) float32 [A] of the expert's actions on the first steps of some of its own episodes.

    An expert that always does the same has half of what the space allows for a unit, or its own size.
    """
    space = simulator.action_space
    assert isinstance(space, Box)
    shown = np.concatenate(collect_expert_actions(simulator, expert)).clip(space.low, space.high)
    centre = shown.mean(axis=0)
    deviation = shown.std(axis=0)
    half = (np.asarray(space.high, np.float64) - space.low) / 2
    otherwise = np.where(np.isfinite(half) & (half > 0), half, np.maximum(np.abs(centre), 1.0))
    varies = deviation > VARIES * np.minimum(otherwise, np.abs(shown).max(axis=0))
    unit = np.where(varies, deviation, np.minimum(otherwise, np.maximum(np.abs(centre), 1.0) / VARIES))
    return centre.astype(np.float32), unit.clip(*UNITS).astype(np.float32)


def collect_expert_actions(simulator: Simulator, expert: Expert) -> list[Array]:
    """What π* does at the first steps of a few episodes, float64 [n, A] at each."""
    states = reset_and_check(simulator, derive_seeds(0, SeedPurpose.DEMONSTRATION, 1, LANES))
    found = []
    for t in range(min(simulator.horizon, ADVISED // LANES)):
        actions = query_actions(expert, states, t, simulator.action_space)
        found.append(np.asarray(actions, np.float64).reshape(len(states), -1))
        states, _, done = step_and_check(simulator, states, actions)
        states = states[~done]
        if not len(states):
            break
    return found
