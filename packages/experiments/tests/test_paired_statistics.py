"""Differences of trials with common seeds, against hand-computed values."""

import numpy as np
import pytest

from aggrevated_experiments.paired_statistics import estimate_paired_difference


def test_paired_difference_interval_is_student_t() -> None:
    found = estimate_paired_difference(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    half = 4.302653 / 3**0.5  # the 97.5 % quantile with two degrees of freedom; the deviation is 1
    assert found == pytest.approx((2.0, 2.0 - half, 2.0 + half), rel=1e-6)
    assert estimate_paired_difference(np.array([3.0]), np.array([1.0])) == (
        2.0,
        2.0,
        2.0,
    )  # one trial has no error estimate


def test_paired_difference_ignores_variation_common_to_both() -> None:
    seeds = np.random.default_rng(0).normal(0.0, 10.0, 20)
    found = estimate_paired_difference(seeds + 1.0 + 0.01 * np.arange(20), seeds)
    assert found.value == pytest.approx(1.095) and 1.0 < found.low < found.high < 1.2
