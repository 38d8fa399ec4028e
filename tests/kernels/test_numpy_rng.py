"""NumPy's generators in compiled loops, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggrevated.core.rng import RandomStream, make_generator
from aggrevated.kernels.numpy_rng import fill_uniforms, sample_uniform, seed_pcg64

SEEDS = st.integers(0, 2**64 - 1)


@given(SEEDS, st.sampled_from(RandomStream), st.integers(0, 40), st.integers(1, 40))
def test_fill_uniforms_matches_numpy_philox_from_any_position(seed, stream, first, count):
    generator = make_generator(seed, stream)
    expected = np.concatenate([generator.random(first, np.float32), generator.random((count, 3), np.float32).ravel()])[
        first:
    ]
    drawn = np.empty(3 * count, np.float32)
    fill_uniforms(np.uint64(seed), np.uint64(stream), first, drawn, np.empty(4, np.uint64))
    np.testing.assert_array_equal(drawn, expected)


@given(SEEDS)
def test_next_uniform_matches_numpy_pcg64(seed):
    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).uniform(-0.1, 0.3, 6)
    state = np.empty(4, np.uint64)
    seed_pcg64(np.uint64(seed), state)
    assert [sample_uniform(state, -0.1, 0.3) for _ in range(6)] == expected.tolist()


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**64 - 1])
def test_seed_pcg64_matches_numpy_for_seeds_of_one_and_two_words(seed):
    test_next_uniform_matches_numpy_pcg64.hypothesis.inner_test(seed)
