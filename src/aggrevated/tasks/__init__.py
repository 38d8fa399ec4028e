"""Tasks are values, one file each: what a task is made of, its tuned settings, and the rows of the paper's figure.

A task is found by the name of its file here, by an entry point of the group `aggrevated.tasks` of another package, or
passed as the object that it is.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from aggrevated.errors import UsageError
from aggrevated.expert_training import Recipe
from aggrevated.settings import Settings, known
from aggrevated.shelves import TASKS, load, offered, shipped_tasks, task_names
from aggrevated.worlds import WorldSettings

UNTUNED = ("exponentiated",)  # updates that are the same for all tasks


@dataclass(frozen=True)
class Tuned:
    """Settings that were tuned for runs with these choices; for all runs where none is named."""

    settings: Mapping[str, Any]
    method: str | None = None
    policy: str | None = None
    update: str | None = None
    start: str | None = None

    def fits(self, picked: Mapping[str, str]) -> bool:
        """Whether it is for what was picked so far; what is not picked yet fits nothing."""
        wanted = {"method": self.method, "policy": self.policy, "update": self.update, "start": self.start}
        return all(picked.get(choice) == name for choice, name in wanted.items() if name is not None)


@dataclass(frozen=True)
class Row:
    """One method in a figure or table; with another policy than the task's where one is named."""

    method: str
    update: str
    policy: str | None = None
    start: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # further ones that are not the task's
    paper: float | None = None  # what the paper reports


@dataclass(frozen=True, kw_only=True)
class Task:
    """All that a run needs to know of a task. Every number in it can be set otherwise for a run.

    One precedence: what is set for a run, before what is tuned for the task (of the rows of `tuned` that fit, the later
    before the earlier), before what the method brings, before what the pieces declare.
    """

    name: str
    title: str
    world: WorldSettings
    policy: str = "mlp"  # the usual one
    oracle: str = "q-network"  # how its expert is usually asked for Q*
    brings: tuple[type[Settings], ...] = ()  # pieces of its own; if policies are among them, it is for these only
    usual: tuple[Tuned, ...] = ()  # what belongs to it in every run, such as the paper's shape of the policy
    tuned: tuple[Tuned, ...] = ()  # what was tuned for the paper's figures
    figure: tuple[Row, ...] = ()  # of the paper's figure
    trials: int = 10  # of each row
    packages: tuple[str, ...] = ()  # that it needs besides the usual ones
    recipe: Recipe | None = None  # how its expert was made

    def tuned_for(self, picked: Mapping[str, str]) -> dict[str, Any]:
        """The settings that it has for what was picked; updates that need no tuning get none."""
        rows = self.usual if picked.get("update") in UNTUNED else (*self.usual, *self.tuned)
        return {name: value for row in rows if row.fits(picked) for name, value in row.settings.items()}


PAPERS_STEPS = (  # as its experiments were run: step sizes tuned for each task, in its own unit of cost
    Tuned({"target_kl": 0.0, "unit": "cost", "solver": "closed-form"}, update="natural"),
    Tuned({"target_kl": 0.0, "unit": "cost"}, update="regular"),
)
IMITATION = (Row("aggrevated", "natural"), Row("aggrevated", "regular"))
PAPER = (*IMITATION, Row("reinforce", "regular"), Row("tnpg", "natural"))  # the rows of all its figures of control
# Hopper and Walker: reinforcement learning also from the same supervised start
CONTINUOUS = (*PAPER, Row("reinforce", "regular", start="supervised"), Row("tnpg", "natural", start="supervised"))


def find_task(name: str) -> Task:
    """The task of that name, or a `UsageError` that lists them all."""
    if name in shipped_tasks():
        task = import_module(shipped_tasks()[name]).TASK
    else:
        task = load(offered(TASKS)[known(name, "task", task_names())])
    if not isinstance(task, Task) or task.name != name:
        raise UsageError(f"the task {name} of an installed package is none, or has another name; mend or remove it")
    return task


def all_tasks() -> Iterator[Task]:
    """Every task that can be imported."""
    for name in task_names():
        with suppress(UsageError):
            yield find_task(name)
