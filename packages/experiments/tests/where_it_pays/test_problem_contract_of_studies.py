"""The contract of problems for the problems of the studies."""

import pytest

from aggrevated.core.registry import TASKS, find_entry_points
from aggrevated.tasks import Task, find_task
from helpers.problem_contract import ProblemContract

NAMES = [name for name, point in find_entry_points(TASKS).items() if point.value.startswith("aggrevated_experiments")]


@pytest.fixture(params=NAMES)
def task(request: pytest.FixtureRequest) -> Task:
    """Every task of this distribution."""
    return find_task(request.param)


def test_tasks_of_the_distribution_are_installed() -> None:
    assert NAMES


class TestStudyProblems(ProblemContract):
    """Contract of problems for every task of this distribution."""
