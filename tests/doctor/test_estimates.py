"""Estimates with confidence intervals."""

import numpy as np

from aggrevated.doctor.findings import (
    bootstrap_estimate,
    center_by_group,
    compute_correlation,
    estimate_mean,
    rank_correlation,
)


def test_estimate_mean_interval_is_the_normal_approximation() -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, 400)
    found = estimate_mean(values)
    half = 2.576 * values.std() / 20
    assert found.value == values.mean()
    assert abs(found.high - (values.mean() + half)) < 0.25 * half
    assert abs(found.low - (values.mean() - half)) < 0.25 * half


def test_bootstrap_estimate_resamples_whole_groups() -> None:
    values = np.repeat(np.random.default_rng(0).normal(size=30), 20)  # all steps of an episode are equal
    by_episode = bootstrap_estimate(lambda rows: float(values[rows].mean()), np.repeat(np.arange(30), 20))
    by_step = bootstrap_estimate(lambda rows: float(values[rows].mean()), np.arange(600))
    assert by_episode.high - by_episode.low > 3 * (by_step.high - by_step.low)


def test_correlation_and_rank_correlation_match_known_values() -> None:
    x = np.arange(20.0)
    assert np.isclose(compute_correlation(x, 3 - 2 * x), -1)
    assert np.isclose(rank_correlation(x, np.exp(x)), 1)
    assert np.isnan(compute_correlation(x, np.ones(20)))


def test_bootstrap_estimate_of_nan_is_not_known() -> None:
    assert not bootstrap_estimate(lambda rows: np.nan, np.arange(5)).known


def test_center_by_group_subtracts_the_mean_of_each_group() -> None:
    assert center_by_group(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1])).tolist() == [-1, 1, 0]
