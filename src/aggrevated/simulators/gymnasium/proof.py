"""That an environment repeats itself exactly is not believed, but tried."""

from collections.abc import Iterator

import numpy as np

from aggrevated.arrays import Array
from aggrevated.errors import DataError
from aggrevated.parts import placed
from aggrevated.simulators import Simulator
from aggrevated.simulators.gymnasium.environments import LARGEST_SEED
from aggrevated.simulators.gymnasium.pool import Pool

PROOF_SEEDS, PROOF_STEPS = np.array([0, LARGEST_SEED], np.uint64), 20


def prove(simulator: Simulator, pool: Pool, drift: DataError) -> None:
    """Raise `drift` unless short random episodes can be repeated exactly, from their start and from their middle.

    They are repeated in used environments, which shows what is carried over from episode to episode, and in new ones,
    which shows what is drawn at construction; and in reverse order, which shows what environments share.
    """
    episodes = list(random_episodes(simulator))
    for prepare in (pool.forget, pool.clear):
        prepare()
        if not same(simulator.initial(PROOF_SEEDS[::-1]), episodes[0][0]):
            raise drift
        for start in (len(episodes) // 2, 0):
            prepare()
            for state, action, *outcome in episodes[start:]:
                again = simulator.step(state[::-1], action[::-1])
                if not all(map(same, again, outcome)):
                    raise drift
    pool.forget()


def same(reversed_batch: Array, batch: Array) -> bool:
    """Whether two batches are equal, one of them in reverse order."""
    return np.array_equal(reversed_batch[::-1], batch, equal_nan=True)


def random_episodes(simulator: Simulator) -> Iterator[tuple[Array, Array, Array, Array, Array]]:
    """(state, action, next state, cost, done) of each step of a small batch of episodes under random actions."""
    space, state, seeds = simulator.action_space, simulator.initial(PROOF_SEEDS), PROOF_SEEDS
    space.seed(0)
    for t in range(min(PROOF_STEPS, simulator.horizon)):
        action = np.stack([np.asarray(space.sample()) for _ in state])
        with placed(seeds, step=t):
            following, cost, done = simulator.step(state, action)
        yield state, action, following, cost, done
        state, seeds = following[~done], seeds[~done]
        if not len(state):
            return
