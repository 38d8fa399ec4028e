"""Work limited by a time budget."""

import time

from aggrevated.doctor.time_budget import run_largest_affordable


def test_run_largest_affordable_runs_everything_when_fast() -> None:
    assert run_largest_affordable(lambda n: n, 1000, 5.0) == 1000


def test_run_largest_affordable_runs_little_when_slow() -> None:
    def work(n: int) -> int:
        time.sleep(0.01 * n)
        return n

    assert run_largest_affordable(work, 1000, 0.005) == 2
    assert run_largest_affordable(work, 1000, 0.05) == 8
    assert 8 <= run_largest_affordable(work, 1000, 0.6) < 240


def test_run_largest_affordable_never_exceeds_the_maximum() -> None:
    assert run_largest_affordable(lambda n: n, 3, 5.0) == 3
