"""Tasks are values, one file each: what a task is made of, its tuned settings, and the rows of the paper's figure.

A task is found by the name of its file here, by an entry point of the group `aggrevated.tasks` of another package, or
passed as the object that it is.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

from aggrevated.core.errors import UsageError
from aggrevated.core.registry import (
    TASKS,
    check_package_installed,
    find_entry_points,
    list_builtin_tasks,
    list_task_names,
    load_entry_point,
)
from aggrevated.core.settings import Settings, suggest_close_match
from aggrevated.problems import ProblemSettings
from aggrevated.problems.expert_training import ExpertRecipe

UNTUNED_UPDATES = ("exponentiated",)  # updates that are the same for all tasks


@dataclass(frozen=True)
class Preset:
    """Settings that were tuned for runs with these choices; for all runs where none is named."""

    settings: Mapping[str, Any]
    method: str | None = None
    policy: str | None = None
    update: str | None = None
    start: str | None = None

    def is_applicable(self, picked: Mapping[str, str]) -> bool:
        """Whether it is for what was picked so far; what is not picked yet fits nothing."""
        wanted = {"method": self.method, "policy": self.policy, "update": self.update, "start": self.start}
        return all(picked.get(choice) == name for choice, name in wanted.items() if name is not None)


@dataclass(frozen=True)
class FigureRow:
    """One method in a figure or table; with another policy than the task's where one is named."""

    method: str
    update: str
    policy: str | None = None
    start: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # further ones that are not the task's
    paper_value: float | None = None  # what the paper reports
    label_suffix: str = ""  # what the legend adds to its name
    tuned_by: str = ""  # the setting of which a page tries a third and three times as much
    trials: int = 0  # others than the figure's


@dataclass(frozen=True)
class ComparisonProtocol:
    """How the rows of a figure are compared: what each of them may spend, and what it is tuned on before."""

    budget: int  # simulator steps of start, roll-ins and oracle
    tuning_seeds: tuple[int, ...] = (100, 101)
    tuning_budget: int = 0  # 0: the same


@dataclass(frozen=True, kw_only=True)
class Task:
    """All that a run needs to know of a task. Every number in it can be set otherwise for a run.

    One precedence: what is set for a run, before what is tuned for the task (of the rows of `tuned` that fit, the later
    before the earlier), before what the method brings, before what the pieces declare.
    """

    name: str
    title: str
    problem: ProblemSettings
    policy: str = "mlp"  # the usual one
    oracle: str = "q-star"  # how its expert is usually asked for Q*
    components: tuple[type[Settings], ...] = ()  # pieces of its own; if policies are among them, it is for these only
    defaults: tuple[Preset, ...] = ()  # what belongs to it in every run, such as the paper's shape of the policy
    presets: tuple[Preset, ...] = ()  # what was tuned for the paper's figures
    figure_rows: tuple[FigureRow, ...] = ()  # of the paper's figure
    protocol: ComparisonProtocol | None = None  # of that
    trials: int = 10  # of each row
    packages: tuple[str, ...] = ()  # that it needs besides the usual ones
    expert_recipe: ExpertRecipe | None = None  # how its expert was made

    def get_tuned_settings(self, picked: Mapping[str, str]) -> dict[str, Any]:
        """The settings that it has for what was picked; updates that need no tuning get none."""
        rows = self.defaults if picked.get("update") in UNTUNED_UPDATES else (*self.defaults, *self.presets)
        return {name: value for row in rows if row.is_applicable(picked) for name, value in row.settings.items()}


PAPER_PRESETS = (  # as its experiments were run: step sizes tuned for each task, in its own unit of cost
    Preset({"target_kl": 0.0, "cost_scale": "raw", "solver": "closed-form"}, update="natural"),
    Preset({"target_kl": 0.0, "cost_scale": "raw"}, update="regular"),
)
# what is tuned of a natural step, and of a regular one
KL = "delta_kl"
RATE = "learning_rate"
CRITIC = {"oracle": "critic"}


def make_aggrevated_rows(trials: int = 0) -> tuple[FigureRow, ...]:
    """AggreVaTeD in its three forms, by the paper; the first of them has nothing that is tuned for a task."""
    return (
        FigureRow("aggrevated", "exponentiated", trials=trials),
        FigureRow("aggrevated", "natural", tuned_by=KL, trials=trials),
        FigureRow("aggrevated", "regular", tuned_by=RATE, trials=trials),
    )


INTERPOLATION_ROWS = (  # between imitation and reinforcement; every question of LOLS is a roll-out for each action
    FigureRow("loki", "natural", tuned_by=KL),
    FigureRow("lols", "natural", settings={"trajectories": 10, "query_steps": 3}, tuned_by=KL),
)
BASELINE_ROWS = (  # whoever asks for no roll-out; reinforcement learning with a critic
    FigureRow("dagger", "follow-the-leader", tuned_by=RATE),
    FigureRow("sl", "follow-the-leader", tuned_by=RATE),
    FigureRow("thor", "natural", tuned_by=KL),
    FigureRow("reinforce", "regular", settings=CRITIC, tuned_by=RATE, label_suffix="critic"),
    FigureRow("tnpg", "natural", settings=CRITIC, tuned_by=KL, label_suffix="critic"),
)


def add_row_settings(rows: Iterable[FigureRow], start: str | None = None, **settings: Any) -> tuple[FigureRow, ...]:
    """The rows from another start, and with further settings."""
    return tuple(replace(row, start=start, settings={**settings, **row.settings}) for row in rows)


FIT_PER_ITERATION_DEFAULTS = {
    "trajectories": 5,
    "iterations": 60,
}  # roll-ins, as AggreVaTeD has them by default; every iteration is a fit
DISCRETE_ACTION_ROWS = (  # for finite sets of actions
    FigureRow("aggrevate", "follow-the-leader", tuned_by=RATE),
    FigureRow(
        "dagger",
        "follow-the-leader",
        settings=FIT_PER_ITERATION_DEFAULTS,
        tuned_by=RATE,
        label_suffix="K = 5, 60 iterations",
    ),
)
# reinforcement learning as the paper has it: from scratch, without a critic
FROM_SCRATCH_ROWS = (FigureRow("reinforce", "regular", tuned_by=RATE), FigureRow("tnpg", "natural", tuned_by=KL))


def find_task(name: str, trust_code: bool = False) -> Task:
    """The task of that name: one that is installed, that of an environment of Gymnasium, or of `module:attribute`.

    What is not installed is imported only with `trust`. A `UsageError` lists all that there are by name.
    """
    if name in list_builtin_tasks():
        task = import_module(list_builtin_tasks()[name]).TASK
    elif name in find_entry_points(TASKS):
        task = load_entry_point(find_entry_points(TASKS)[name])
    else:
        return make_custom_task(name, trust_code)
    if not isinstance(task, Task) or task.name != name:
        raise UsageError(f"the task {name} of an installed package is none, or has another name; mend or remove it")
    return task


def make_custom_task(name: str, trust_code: bool) -> Task:
    """That of an environment of Gymnasium, by its id, or of what `module:attribute` is."""
    from aggrevated.problems.code_references import import_reference, is_reference
    from aggrevated.problems.custom import CustomProblem

    if is_reference(name):
        found = import_reference(name, trust_code) if trust_code else None
        if isinstance(found, Task):
            return replace(found, name=name)
    elif not is_gymnasium_id(name):
        check_package_installed(name, "task")
        others = "; or give a Gymnasium id, or module:attribute of what makes an environment"
        raise UsageError(
            f"unknown task {name!r}{suggest_close_match(name, find_similar_names(name))}: choose one of "
            f"{format_task_names()}{others}"
        )
    return Task(name=name, title=name, problem=CustomProblem(environment=name, trusted=trust_code), oracle="")


def is_code_trusted(name: str, world: ProblemSettings) -> bool:
    """Whether code that a task names may be: that of a world that came from there has been."""
    from aggrevated.problems.code_references import is_reference

    return bool(getattr(world, "trusted", is_reference(name)))


def as_task(given: Any, expert: Any = None) -> Task:
    """The task that is given: itself, by its name, or as what makes an environment, or a simulator; with that expert.

    What others can import by its name is known by that name, so that its runs can be gone on with everywhere.
    """
    from aggrevated.problems.code_references import make_reference
    from aggrevated.problems.custom import CustomProblem

    if isinstance(given, Task):
        task = given
    elif isinstance(given, str):
        task = find_task(given, trust_code=True)  # it was typed
    else:
        if not callable(given) and not callable(getattr(given, "step", None)):
            known = "a task's name, a Gymnasium id, a function that makes an environment, or a simulator"
            raise UsageError(f"{given!r} is nothing to learn in: give {known}")
        called = str(getattr(given, "__name__", None) or getattr(given, "name", type(given).__name__))
        name = make_reference(given) or (f"own-{called}" if is_known_task(called) else called)
        task = Task(name=name, title=name, problem=CustomProblem(environment=given, trusted=True), oracle="")
    world = task.problem
    if isinstance(world, CustomProblem) and expert is not None and (named := make_reference(expert)):
        return replace(task, problem=replace(world, expert=named))
    return replace_task_expert(task, expert)


def replace_task_expert(task: Task, expert: Any) -> Task:
    """The task with an expert that has no name; as it is where none is given."""
    from aggrevated.problems.control import ControlProblem
    from aggrevated.problems.custom import CustomProblem

    world = task.problem
    if expert is None:
        return task
    if isinstance(world, CustomProblem):
        return replace(task, problem=replace(world, expert="", given=expert))
    if isinstance(world, ControlProblem):
        return replace(task, problem=replace(world, expert="", make_expert=partial(adapt_expert, expert)))
    raise UsageError(f"{task.name} is not for an expert of your own: leave it out, or give a task of control")


def adapt_expert(expert: Any, simulator: Any) -> Any:
    """Whatever it is, as an expert in that simulator."""
    from aggrevated.experts.adapters import as_expert

    return as_expert(expert, simulator)


def is_known_task(name: str) -> bool:
    """Whether there is such a task, or may be one; nothing is imported that is not installed."""
    from aggrevated.problems.code_references import is_reference

    return name in list_task_names() or is_reference(name) or is_gymnasium_id(name)


def is_gymnasium_id(name: str) -> bool:
    """Whether Gymnasium knows an environment of that id; `module:id`, by which it imports one, is not asked for."""
    import gymnasium

    try:
        return bool(gymnasium.spec(name)) if ":" not in name else False
    except gymnasium.error.Error:
        return False


def find_similar_names(name: str) -> list[str]:
    """What may have been meant."""
    import gymnasium

    return [*list_task_names(), *gymnasium.registry]


def format_task_names() -> str:
    return ", ".join(list_task_names())


def iter_tasks() -> Iterator[Task]:
    """Every task that can be imported."""
    for name in list_task_names():
        with suppress(UsageError):
            yield find_task(name)
