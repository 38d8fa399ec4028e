"""The bounds against hand-computed values."""

import numpy as np

from aggrevated_experiments.theory.bounds import (
    compute_noisy_upper_bound,
    compute_special_lower_bound,
    compute_special_lower_noisy_bound,
    compute_special_upper_bound,
    compute_upper_bound,
)

N = np.array([1.0, 4.0, 100.0])


def test_special_upper_bound_is_constant_after_k_minus_1_episodes():
    np.testing.assert_allclose(compute_special_upper_bound(5, np.array([1, 3, 4, 5, 99]), 0.25), [0.25, 0.75, 1, 1, 1])


def test_special_lower_bound_matches_hand_computed_and_minimax_values():
    """L = 4, gap = 0.3: 1 − 4 gap² = 0.64; at n = 4 the root is √(ln 1/0.64), and from there it must not fall."""
    root = 0.5 * np.sqrt(np.array([1, 4]) / 4 * -np.log(0.64))
    expected = 0.3 * np.array([1, 4]) * (1 - 1 / 4 - root)
    np.testing.assert_allclose(
        compute_special_lower_bound(4, 0.3, np.array([1.0, 4.0, 4000.0])), [*expected, expected[-1]]
    )
    for leaves, episodes in ((512, 8192), (8192, 65536)):
        gap = 0.5 * np.sqrt(leaves / episodes)
        assert (
            0.1
            < compute_special_lower_bound(leaves, gap, np.array([float(episodes)]))[0] / np.sqrt(leaves * episodes)
            < 0.5
        )


def test_special_lower_noisy_bound_matches_hand_computed_values():
    """K = 3: two decisions, four leaves; δ = 0.05, ln 40; half of EG's bound for N holds from the first episode."""
    first = np.sqrt(2 * np.log(4) * 100) * np.array([0.505, 0.52, 1.0])
    expected = 2 * 0.5 * (first + 4 * np.sqrt(np.log(40) * N))
    np.testing.assert_allclose(compute_special_lower_noisy_bound(3, N, 0.5), expected)


def test_upper_bounds_match_hand_computed_values():
    exact = 3 * 2.0 * np.sqrt(2 * 8 * np.log(4) * 100) * np.array([0.505, 0.52, 1.0])
    np.testing.assert_allclose(compute_upper_bound(3, 2.0, 8, 4, N), exact)
    noisy = exact * np.sqrt(3 / 2.0) + 4 * 3 * 3 * np.sqrt(np.log(40) * N)  # √(H Q_max) for Q_max, and H for l
    np.testing.assert_allclose(compute_noisy_upper_bound(3, 2.0, 8, 4, N), noisy)
