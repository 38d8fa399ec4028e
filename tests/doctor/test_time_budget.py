"""As much as there is time for."""

import time

from aggrevated.doctor.time_budget import run_largest_affordable


def test_all_of_it_where_it_is_fast() -> None:
    assert run_largest_affordable(lambda n: n, 1000, 5.0) == 1000


def test_little_where_it_is_slow() -> None:
    def work(n: int) -> int:
        time.sleep(0.01 * n)
        return n

    assert run_largest_affordable(work, 1000, 0.005) == 2
    assert run_largest_affordable(work, 1000, 0.05) == 8
    assert 8 <= run_largest_affordable(work, 1000, 0.6) < 240


def test_never_more_than_there_is() -> None:
    assert run_largest_affordable(lambda n: n, 3, 5.0) == 3
