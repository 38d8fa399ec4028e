"""Statistics over trials, compared with numbers computed by hand."""

import numpy as np
import pytest

from aggrevated.core.statistics import (
    bootstrap_interval,
    compute_interquartile_mean,
    compute_ranks,
    estimate,
    estimate_median_time,
    estimate_probability_of_improvement,
    estimate_standard_error,
    estimate_standard_error_of_ratio,
)


def test_interquartile_mean_averages_the_middle_half() -> None:
    assert compute_interquartile_mean(np.array([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -100.0])) == 3.5
    assert compute_interquartile_mean(np.array([7.0])) == 7.0
    columns = np.array([[0.0, 8.0], [1.0, 6.0], [2.0, 4.0], [50.0, 2.0]])
    np.testing.assert_array_equal(compute_interquartile_mean(columns), [1.5, 5.0])


def test_bootstrap_interval_contains_the_mean_and_narrows_with_more_trials() -> None:
    values = np.random.default_rng(0).normal(5.0, 1.0, 400)
    low, high = bootstrap_interval(values)
    few_low, few_high = bootstrap_interval(values[:10])
    assert low < compute_interquartile_mean(values) < high
    assert 0.1 < high - low < 0.35 < few_high - few_low  # 2 · 1.96 · about 1.1 / √400 = 0.22


def test_bootstrap_interval_of_equal_trials_is_a_point() -> None:
    assert bootstrap_interval(np.full(10, 3.0)) == (3.0, 3.0)


def test_ranks_of_equal_values_are_the_mean_of_their_places() -> None:
    np.testing.assert_array_equal(compute_ranks(np.array([3.0, 1.0, 3.0, -np.inf])), [3.5, 2.0, 3.5, 1.0])


def test_standard_errors_match_hand_computed_values() -> None:
    assert estimate_standard_error(np.array([1.0, 3.0])) == pytest.approx(1.0)  # √2 / √2
    assert estimate_standard_error(np.array([1.0])) is None
    equal = np.array([4.0, 4.0])
    assert estimate_standard_error_of_ratio(np.array([1.0, 3.0]), equal) == pytest.approx(
        estimate_standard_error(np.array([0.25, 0.75]))
    )
    assert estimate_standard_error_of_ratio(np.array([2.0, 3.0]), np.array([2.0, 3.0])) == 0.0


def test_standard_error_of_ratio_matches_the_spread_of_resampled_ratios() -> None:
    """The estimate equals the standard deviation of resampled ratios over pages of unequal lengths."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 20, (4000, 60))
    parts = generator.binomial(lengths, generator.beta(6, 2, lengths.shape))
    shares = parts.sum(axis=1) / lengths.sum(axis=1)
    estimates = np.array(
        [estimate_standard_error_of_ratio(*pair) for pair in zip(parts[:200], lengths[:200], strict=True)]
    )
    assert estimates.mean() == pytest.approx(shares.std(), rel=0.05)


def test_estimate_pairs_interquartile_mean_with_its_bootstrap_interval() -> None:
    values = np.array([1.0, 2.0, 3.0, 100.0])
    assert estimate(values) == (2.5, *bootstrap_interval(values))
    assert estimate(values).to_fields("ratio")["ratio"] == 2.5


def test_median_time_counts_events_that_never_happened_as_latest() -> None:
    assert estimate_median_time([30.0, 10.0, None]).value == 30.0
    assert estimate_median_time([10.0, 20.0, 30.0, 40.0]).value == 20.0  # a measured value
    never = estimate_median_time([10.0, None, None]).to_fields("steps")
    assert never == {"steps": None, "steps_low": 10.0, "steps_high": None}


def test_probability_of_improvement_counts_pairs_and_half_of_the_ties() -> None:
    found = estimate_probability_of_improvement(np.array([1.0, 2.0]), np.array([0.0, 2.0]))
    assert found.value == (1 + 0 + 1 + 0.5) / 4
    assert estimate_probability_of_improvement(np.arange(5.0) + 10, np.arange(5.0)) == (1.0, 1.0, 1.0)
    same = estimate_probability_of_improvement(np.arange(20.0), np.arange(20.0))
    assert same.value == 0.5 and same.low < 0.4 and same.high > 0.6
