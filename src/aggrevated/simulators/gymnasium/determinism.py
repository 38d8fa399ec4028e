"""That an environment repeats itself exactly is not believed, but tried; and whether anything is left to chance."""

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
MOST_TRIES = 10  # with other luck, where episodes are short
FEWEST = 5  # steps of an episode: of fewer nothing can be told
# The whole takes some ten times as long as its first episodes: they end early where it would take 30 seconds, and where
# it would take more than a minute even so, the environment is refused.
LONG = 3.0
TOO_LONG = 6.0


@dataclass(frozen=True)
class RecordedStep:
    """One step of a small batch of episodes."""

    state: Array
    action: Array
    following: Array
    cost: Array
    done: Array


def check_deterministic(simulator: Simulator, pool: EnvironmentPool, drift: DataError) -> list[RecordedStep]:
    """Short random episodes; raise `drift` unless they can be repeated exactly, from their start and their middle.

    They are repeated in used environments, which shows what is carried over from episode to episode, and in new ones,
    which shows what is drawn at construction; and in reverse order, which shows what environments share.
    """
    episodes = run_random_episodes(simulator, simulator.reset)
    for prepare in (pool.forget, pool.clear):
        prepare()
        first = simulator.reset(PROOF_SEEDS[::-1])
        if not is_equal_reversed(first, episodes[0].state):
            raise drift
        middle = len(episodes) // 2
        for start, state in ((middle, episodes[middle].state[::-1]), (0, first)):
            prepare()
            for moment in episodes[start:]:
                following, cost, done = simulator.step(state, moment.action[::-1])
                if not all(
                    map(is_equal_reversed, (following, cost, done), (moment.following, moment.cost, moment.done))
                ):
                    raise drift
                state = following[~done]
    pool.forget()
    return episodes


def is_equal_reversed(reversed_batch: Array, batch: Array) -> bool:
    """Whether two batches are equal, one of them in reverse order."""
    if batch.dtype == object:
        return len(batch) == len(reversed_batch) and all(
            a == b for a, b in zip(reversed_batch[::-1], batch, strict=True)
        )
    return np.array_equal(reversed_batch[::-1], batch, equal_nan=True)


def is_stochastic(
    simulator: Simulator, pool: EnvironmentPool, reseed: Callable[[Array, Array], Array], steps: int
) -> bool:
    """Whether the same actions lead elsewhere with other luck, in random episodes: more where they are short."""
    compared = 0
    for actions in range(MOST_TRIES):

        def record_episodes(luck: int, actions: int = actions) -> list[RecordedStep]:
            def reset_reseeded(seeds: Array) -> Array:
                states = simulator.reset(seeds)
                pool.forget()
                return reseed(states, np.full(len(seeds), luck, np.uint64))

            return run_random_episodes(simulator, reset_reseeded, steps, actions)

        one = record_episodes(2 * actions + 1)
        other = record_episodes(2 * actions + 2)
        if not is_equal_trajectory(simulator, one, other):
            return True
        compared += len(one)
        if compared >= 2 * steps:
            break
    return False


def is_equal_trajectory(simulator: Simulator, one: list[RecordedStep], other: list[RecordedStep]) -> bool:
    """Whether the same was to be seen in two batches of episodes, and cost the same."""
    return len(one) == len(other) and all(
        np.array_equal(a.done, b.done)
        and np.array_equal(a.cost, b.cost, equal_nan=True)
        and np.array_equal(simulator.observe(a.following), simulator.observe(b.following))
        for a, b in zip(one, other, strict=True)
    )


def run_random_episodes(
    simulator: Simulator, initial: Callable[[Array], Array], steps: int = PROOF_STEPS, seed: int = 0
) -> list[RecordedStep]:
    """The steps of a small batch of episodes under random actions, few where they take long."""
    began = time.monotonic()
    state = initial(PROOF_SEEDS)
    seeds = PROOF_SEEDS
    found: list[RecordedStep] = []
    generator = np.random.default_rng(seed)
    for t in range(min(steps, simulator.horizon)):
        took = time.monotonic() - began
        if took > LONG and t >= FEWEST:
            break
        if took > TOO_LONG:
            raise UsageError(
                f"{simulator.name} took {took:.0f} seconds to be reset twice and to take {len(found)} steps: too slow "
                "to learn in; make its steps and its reset faster"
            )
        action = sample_legal_actions(simulator, state, generator)
        with add_error_position(seeds, step=t):
            following, cost, done = simulator.step(state, action)
        found.append(RecordedStep(state, action, following, cost, done))
        state = following[~done]
        seeds = seeds[~done]
        if not len(state):
            break
    return found


def sample_legal_actions(simulator: Simulator, state: Array, generator: np.random.Generator) -> Array:
    """One for each state, among those that are legal; of vectors within wide bounds."""
    space = simulator.action_space
    rules = find_action_mask(simulator)
    n = len(state)
    if isinstance(space, Discrete):
        lots = generator.random((n, int(space.n)))
        chosen: Array = (np.where(rules.action_mask(state), lots, -1.0) if rules else lots).argmax(axis=1)
        return chosen
    low, high = (np.clip(bound.astype(np.float64), -10.0, 10.0) for bound in (space.low, space.high))
    return (low + (high - low) * generator.random((n, *space.shape))).astype(space.dtype)
