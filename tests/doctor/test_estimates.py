"""Numbers with their intervals."""

import numpy as np

from aggrevated.doctor.findings import (
    bootstrap_estimate,
    center_by_group,
    correlation,
    estimate_mean,
    rank_correlation,
)


def test_the_interval_of_a_mean_is_that_of_the_normal_approximation() -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, 400)
    found = estimate_mean(values)
    half = 2.576 * values.std() / 20
    assert found.value == values.mean()
    assert abs(found.high - (values.mean() + half)) < 0.25 * half
    assert abs(found.low - (values.mean() - half)) < 0.25 * half


def test_groups_are_drawn_as_wholes() -> None:
    values = np.repeat(np.random.default_rng(0).normal(size=30), 20)  # the steps of an episode are all alike
    together = bootstrap_estimate(lambda rows: float(values[rows].mean()), np.repeat(np.arange(30), 20))
    apart = bootstrap_estimate(lambda rows: float(values[rows].mean()), np.arange(600))
    assert together.high - together.low > 3 * (apart.high - apart.low)


def test_correlations_of_known_sign() -> None:
    x = np.arange(20.0)
    assert np.isclose(correlation(x, 3 - 2 * x), -1)
    assert np.isclose(rank_correlation(x, np.exp(x)), 1)
    assert np.isnan(correlation(x, np.ones(20)))


def test_what_is_not_known_is_said() -> None:
    assert not bootstrap_estimate(lambda rows: np.nan, np.arange(5)).known


def test_centred_by_group() -> None:
    assert center_by_group(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1])).tolist() == [-1, 1, 0]
