"""Random seeds: a run has one seed, from which each (purpose, iteration, trajectory) gets its own.

No random state is carried between iterations, so that checkpoints contain no generator, and the random
numbers of a trajectory depend neither on the batch size nor on the number of workers.
"""

from enum import IntEnum

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from aggrevated.core.arrays import Array


class SeedPurpose(IntEnum):
    """Purpose of a list of seeds; the seeds of different purposes are independent."""

    ROLL_IN = 0
    VALIDATION = 1
    TEST = 2
    DEMONSTRATION = 3
    INITIAL_POLICY = 4
    UPDATE = 5
    SWITCH = 6
    SEARCH = 7
    EXAMINATION = 8


def derive_seeds(run: int, purpose: SeedPurpose, n: int, count: int) -> Array:
    """Derive the seeds of trajectories 0 … count−1 in iteration n; a longer list starts with the shorter one.

    Args:
        run: seed of the run.
        purpose: purpose of the trajectories.
        n: iteration.
        count: number of seeds.

    Returns:
        Seeds, uint64 [count].

    Example:
        >>> derive_seeds(0, SeedPurpose.ROLL_IN, 1, 3).shape
        (3,)
    """
    return np.random.SeedSequence(run, spawn_key=(int(purpose), n)).generate_state(count, np.uint64)


class RandomStream(IntEnum):
    """Purpose of random numbers within a trajectory; the streams are independent."""

    ACTIONS = 0
    QUERIES = 1
    SIMULATOR = 2
    ROLL_OUTS = 3


def make_generator(seed: int, stream: RandomStream = RandomStream.ACTIONS) -> np.random.Generator:
    """Return a trajectory's generator. It is Philox, since initial states use PCG64(seed) as in Gymnasium."""
    key = PhiloxKey(seed, int(stream))
    return np.random.Generator(np.random.Philox(key))  # type: ignore[arg-type]


class PhiloxKey(ISeedSequence):
    """Key of Philox. `Philox(key=seed)` has the same stream, but reads entropy of the system first."""

    def __init__(self, seed: int, stream: int = 0) -> None:
        self.seed = seed
        self.stream = stream

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> Array:
        return np.array([self.seed, self.stream], np.uint64)
