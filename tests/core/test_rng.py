"""Seeds of purposes, iterations and trajectories, derived from the seed of a run."""

import numpy as np

from aggrevated.core.rng import SeedPurpose, derive_seeds, make_generator


def test_derive_seeds_returns_the_published_seeds():
    """These seeds must never change: every published number depends on them."""
    assert derive_seeds(0, SeedPurpose.ROLL_IN, 1, 3).tolist() == [
        14898058564793133489,
        7662202136907128298,
        14322146683572879442,
    ]


def test_derive_seeds_of_a_longer_list_begin_with_the_shorter():
    np.testing.assert_array_equal(
        derive_seeds(5, SeedPurpose.TEST, 2, 100)[:7], derive_seeds(5, SeedPurpose.TEST, 2, 7)
    )


def test_derive_seeds_are_distinct_over_runs_purposes_and_iterations():
    streams = [derive_seeds(run, purpose, n, 50) for run in range(4) for purpose in SeedPurpose for n in range(5)]
    seeds = np.concatenate(streams)
    assert seeds.dtype == np.uint64
    assert len(np.unique(seeds)) == len(seeds) == 4 * len(SeedPurpose) * 5 * 50


def test_make_generator_depends_on_its_seed_alone():
    first, repeated, other = (make_generator(seed).random(5) for seed in (2**64 - 1, 2**64 - 1, 2**64 - 2))
    np.testing.assert_array_equal(first, repeated)
    assert (first != other).all()


def test_make_generator_differs_from_numpy_default_generator_of_the_same_seed():
    """Gymnasium draws initial states from PCG64(seed); the same seed must not give the same numbers here."""
    assert (make_generator(3).random(4) != np.random.default_rng(3).random(4)).all()
