"""Statistics over trials, on numbers worked out by hand."""

import numpy as np
import pytest

from aggrevated.statistics import (
    bootstrap_interval,
    interquartile_mean,
    ranks,
    standard_error,
    standard_error_of_share,
    variance_explained,
)


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


def test_ranks_of_equal_values_are_the_mean_of_their_places() -> None:
    np.testing.assert_array_equal(ranks(np.array([3.0, 1.0, 3.0, -np.inf])), [3.5, 2.0, 3.5, 1.0])


def test_the_variance_explained_by_hand() -> None:
    levels, values = np.array([0, 0, 1, 1]), np.array([0.0, 2.0, 4.0, 6.0])
    assert variance_explained(levels, values) == pytest.approx(1 - 4 / 20 * 3 / 2)  # within 4, total 20, n 4, k 2
    assert variance_explained(levels, np.array([1.0, 1.0, 2.0, 2.0])) == 1.0
    assert variance_explained(levels, np.zeros(4)) == 0.0
    assert variance_explained(np.zeros(4), values) == 0.0
    assert variance_explained(np.arange(4), values) == 0.0  # a level for each value explains nothing


def test_levels_drawn_by_chance_explain_nothing_in_the_mean() -> None:
    draw = np.random.default_rng(0)
    shares = [variance_explained(draw.integers(5, size=15), draw.normal(size=15)) for _ in range(300)]
    assert np.mean(shares) < 0.15 and np.median(shares) < 0.05  # η² would be 4/14 = 0.29 in the mean


def test_standard_errors_by_hand() -> None:
    assert standard_error(np.array([1.0, 3.0])) == pytest.approx(1.0)  # √2 / √2
    assert standard_error(np.array([1.0])) is None
    equal = np.array([4.0, 4.0])
    assert standard_error_of_share(np.array([1.0, 3.0]), equal) == pytest.approx(standard_error(np.array([0.25, 0.75])))
    assert standard_error_of_share(np.array([2.0, 3.0]), np.array([2.0, 3.0])) == 0.0


def test_the_error_of_a_share_is_how_far_it_lies_from_that_of_all() -> None:
    """Drawn again and again, shares of pages of unequal length are as far apart as it says."""
    generator = np.random.default_rng(0)
    wholes = generator.integers(1, 20, (4000, 60))
    parts = generator.binomial(wholes, generator.beta(6, 2, wholes.shape))
    shares = parts.sum(axis=1) / wholes.sum(axis=1)
    said = np.array([standard_error_of_share(*pair) for pair in zip(parts[:200], wholes[:200], strict=True)])
    assert said.mean() == pytest.approx(shares.std(), rel=0.05)
