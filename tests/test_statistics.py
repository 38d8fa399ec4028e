"""The interquartile mean and its interval, on numbers worked out by hand."""

import numpy as np

from aggrevated.statistics import bootstrap_interval, interquartile_mean


def test_the_interquartile_mean_is_of_the_middle_half() -> None:
    assert interquartile_mean(np.array([100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -100.0])) == 3.5
    assert interquartile_mean(np.array([7.0])) == 7.0
    columns = np.array([[0.0, 8.0], [1.0, 6.0], [2.0, 4.0], [50.0, 2.0]])
    np.testing.assert_array_equal(interquartile_mean(columns), [1.5, 5.0])


def test_the_interval_holds_the_mean_and_narrows_with_more_trials() -> None:
    values = np.random.default_rng(0).normal(5.0, 1.0, 400)
    low, high = bootstrap_interval(values)
    few_low, few_high = bootstrap_interval(values[:10])
    assert low < interquartile_mean(values) < high
    assert 0.1 < high - low < 0.35 < few_high - few_low  # 2 · 1.96 · about 1.1 / √400 = 0.22


def test_the_interval_of_equal_trials_is_a_point() -> None:
    assert bootstrap_interval(np.full(10, 3.0)) == (3.0, 3.0)
