"""Schedules, number by number."""

import pytest

from aggrevated.schedules import NEVER, at, geometric, linear


def test_geometric_starts_at_n_1_and_goes_to_0():
    assert [geometric(0.5, 0.5)(n) for n in (1, 2, 3, 4)] == [0.5, 0.25, 0.125, 0.0625]
    assert [geometric(0.3, 1.0)(n) for n in (1, 2, 100)] == [0.3, 0.3, 0.3]
    assert geometric(1.0, 0.9)(1000) < 1e-40


def test_never_mixes():
    assert [NEVER(n) for n in (1, 2, 100)] == [0.0, 0.0, 0.0]


def test_linear_goes_in_a_line_and_stays_where_it_ends():
    assert [linear(1.0, 0.0, 4)(n) for n in (1, 2, 3, 4, 5, 6, 100)] == [1.0, 0.75, 0.5, 0.25, 0.0, 0.0, 0.0]
    assert [linear(0.5, 1.5, 2)(n) for n in (1, 2, 3, 4)] == [0.5, 1.0, 1.5, 1.5]
    assert [linear(0.4, 0.04, 3)(n) for n in (1, 2, 3, 4)] == pytest.approx([0.4, 0.28, 0.16, 0.04])


def test_a_number_is_a_schedule_that_never_changes():
    assert [at(0.3, n) for n in (1, 2, 100)] == [0.3, 0.3, 0.3]
    assert [at(geometric(0.5, 0.5), n) for n in (1, 2, 3)] == [0.5, 0.25, 0.125]
