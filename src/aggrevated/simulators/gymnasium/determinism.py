"""Checks by short random episodes of whether an environment is repeatable, and whether it is stochastic."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.errors import DataError, UsageError
from aggrevated.core.user_code import add_error_position
from aggrevated.simulators import Simulator, find_action_mask
from aggrevated.simulators.gymnasium.make import LARGEST_SEED
from aggrevated.simulators.gymnasium.pool import EnvironmentPool

PROOF_SEEDS = np.array([0, LARGEST_SEED], np.uint64)
PROOF_STEPS = 20
MOST_TRIES = 10  # pairs of reseeded episodes, where episodes are short
FEWEST = 5  # steps of an episode, below which a check says nothing
# All checks take about ten times as long as the first episodes. These end early after 3 s, which means 30 s
# in all. The environment is refused if they take more than 6 s, which means a minute in all.
LONG = 3.0
TOO_LONG = 6.0


@dataclass(frozen=True)
class RecordedStep:
    """One step of a small batch of episodes."""

    state: Array
    action: Array
    next_state: Array
    cost: Array
    done: Array


def check_deterministic(simulator: Simulator, pool: EnvironmentPool, drift: DataError) -> list[RecordedStep]:
    """Run short random episodes, repeat them from their start and their middle, and return their steps.

    They are repeated in used environments, which detects state carried over between episodes; in new ones,
    which detects random construction; and in reverse order, which detects state shared between environments.

    Args:
        simulator: the simulator.
        pool: its environments.
        drift: the error to raise.

    Raises:
        DataError: `drift`, if a repetition differs.
    """
    episodes = run_random_episodes(simulator, simulator.reset)
    for reset_pool in (pool.forget, pool.clear):
        reset_pool()
        first = simulator.reset(PROOF_SEEDS[::-1])
        if not is_equal_reversed(first, episodes[0].state):
            raise drift
        middle = len(episodes) // 2
        for start, state in ((middle, episodes[middle].state[::-1]), (0, first)):
            reset_pool()
            for recorded in episodes[start:]:
                step = simulator.step(state, recorded.action[::-1])
                if not all(map(is_equal_reversed, step, (recorded.next_state, recorded.cost, recorded.done))):
                    raise drift
                next_state, _, done = step
                state = next_state[~done]
    pool.forget()
    return episodes


def is_equal_reversed(reversed_batch: Array, batch: Array) -> bool:
    """Return whether a batch in reverse order equals another batch."""
    if batch.dtype == object:
        return len(batch) == len(reversed_batch) and all(
            a == b for a, b in zip(reversed_batch[::-1], batch, strict=True)
        )
    return np.array_equal(reversed_batch[::-1], batch, equal_nan=True)


def is_stochastic(
    simulator: Simulator, pool: EnvironmentPool, reseed: Callable[[Array, Array], Array], steps: int
) -> bool:
    """Return whether equal actions lead to other states after reseeding, in some random episodes."""
    compared = 0
    for action_seed in range(MOST_TRIES):

        def record_episodes(seed: int, action_seed: int = action_seed) -> list[RecordedStep]:
            def reset_reseeded(seeds: Array) -> Array:
                states = simulator.reset(seeds)
                pool.forget()
                return reseed(states, np.full(len(seeds), seed, np.uint64))

            return run_random_episodes(simulator, reset_reseeded, steps, action_seed)

        one = record_episodes(2 * action_seed + 1)
        other = record_episodes(2 * action_seed + 2)
        if not is_equal_trajectory(simulator, one, other):
            return True
        compared += len(one)
        if compared >= 2 * steps:
            break
    return False


def is_equal_trajectory(simulator: Simulator, one: list[RecordedStep], other: list[RecordedStep]) -> bool:
    """Return whether two batches of episodes have equal observations, costs and ends."""
    return len(one) == len(other) and all(
        np.array_equal(a.done, b.done)
        and np.array_equal(a.cost, b.cost, equal_nan=True)
        and np.array_equal(simulator.observe(a.next_state), simulator.observe(b.next_state))
        for a, b in zip(one, other, strict=True)
    )


def run_random_episodes(
    simulator: Simulator, initial: Callable[[Array], Array], steps: int = PROOF_STEPS, seed: int = 0
) -> list[RecordedStep]:
    """Return the steps of a batch of two episodes under random actions, fewer where steps are slow."""
    started_at = time.monotonic()
    state = initial(PROOF_SEEDS)
    seeds = PROOF_SEEDS
    recorded: list[RecordedStep] = []
    generator = np.random.default_rng(seed)
    for t in range(min(steps, simulator.horizon)):
        seconds = time.monotonic() - started_at
        if seconds > LONG and t >= FEWEST:
            break
        if seconds > TOO_LONG:
            raise UsageError(
                f"{simulator.name} is too slow to learn in: 2 resets and {len(recorded)} steps took {seconds:.0f} "
                "seconds; make its reset and its step faster"
            )
        action = sample_legal_actions(simulator, state, generator)
        with add_error_position(seeds, step=t):
            next_state, cost, done = simulator.step(state, action)
        recorded.append(RecordedStep(state, action, next_state, cost, done))
        state = next_state[~done]
        seeds = seeds[~done]
        if not len(state):
            break
    return recorded


def sample_legal_actions(simulator: Simulator, state: Array, generator: np.random.Generator) -> Array:
    """Return one random legal action per state; vectors are uniform within the bounds, clipped to ±10."""
    space = simulator.action_space
    masked = find_action_mask(simulator)
    n = len(state)
    if isinstance(space, Discrete):
        scores = generator.random((n, int(space.n)))
        actions: Array = (np.where(masked.action_mask(state), scores, -1.0) if masked else scores).argmax(axis=1)
        return actions
    low, high = (np.clip(bound.astype(np.float64), -10.0, 10.0) for bound in (space.low, space.high))
    return (low + (high - low) * generator.random((n, *space.shape))).astype(space.dtype)
