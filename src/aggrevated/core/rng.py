"""Randomness belongs to trajectories: one seed per run, and from it one seed for each (purpose, iteration, trajectory).

Nothing random is kept between iterations, so a checkpoint holds no generator, and neither the size of a batch nor the
number of workers changes what a trajectory meets.
"""

from enum import IntEnum

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from aggrevated.core.arrays import Array


class SeedPurpose(IntEnum):
    """What a stream of seeds is for; streams of different purposes never meet."""

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
    """The seeds of trajectories 0 … count−1 in iteration n, uint64 [count]; a longer list begins with the shorter."""
    return np.random.SeedSequence(run, spawn_key=(int(purpose), n)).generate_state(count, np.uint64)


class RandomStream(IntEnum):
    """What a trajectory's own numbers are for; streams never meet."""

    ACTIONS = 0
    QUERIES = 1
    LUCK = 2
    ROLL_OUTS = 3


def make_generator(seed: int, stream: RandomStream = RandomStream.ACTIONS) -> np.random.Generator:
    """A trajectory's own generator: Philox, as initial states come from PCG64(seed) like Gymnasium's."""
    key = PhiloxKey(seed, int(stream))
    return np.random.Generator(np.random.Philox(key))  # type: ignore[arg-type]  # the stubs know only SeedSequence


class PhiloxKey(ISeedSequence):
    """Philox's key, just as it is: `Philox(key=seed)` gives the same stream, but asks the operating system first."""

    def __init__(self, seed: int, stream: int = 0) -> None:
        self.seed = seed
        self.stream = stream

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> Array:
        return np.array([self.seed, self.stream], np.uint64)
