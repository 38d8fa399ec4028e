"""The contract of problems, for builtin tasks and for two tasks of other packages."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from aggrevated.core.registry import list_builtin_tasks
from aggrevated.tasks import Task, find_task
from helpers.problem_contract import ProblemContract

sys.path.insert(0, str(Path(__file__).parents[1] / "doubles"))
DOUBLES: dict[str, Task] = {name: import_module(f"{name}_package").TASK for name in ("corridor", "tagger")}
sys.path.pop(0)


@pytest.fixture(params=[*list_builtin_tasks(), *DOUBLES])
def task(request: pytest.FixtureRequest) -> Task:
    """Return each builtin task and each task of the doubles."""
    return DOUBLES.get(request.param) or find_task(request.param)


class TestProblems(ProblemContract):
    """The contract, for every builtin task and the doubles."""
