"""Tasks: named problems with tuned settings and the rows of the paper's figures, one file each.

A task is found by the name of its file here, or by an entry point of the group `aggrevated.tasks` of another
package. It can also be passed as an object.
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

UNTUNED_UPDATES = ("exponentiated",)  # these have equal settings in all tasks


@dataclass(frozen=True)
class Preset:
    """Settings that were tuned for runs with certain components; for all runs where no component is named.

    Args:
        settings: values by name of the setting.
        method: name of the method that the preset is for; None: any.
        policy: name of the policy that it is for; None: any.
        update: name of the update that it is for; None: any.
        start: name of the start that it is for; None: any.

    Example:
        >>> Preset({"learning_rate": 0.03}, update="regular").is_applicable({"update": "natural"})
        False
    """

    settings: Mapping[str, Any]
    method: str | None = None
    policy: str | None = None
    update: str | None = None
    start: str | None = None

    def is_applicable(self, picked: Mapping[str, str]) -> bool:
        """Return whether the preset is for the selected components.

        Args:
            picked: names of the components selected so far, by slot. A slot that is not selected yet matches
                no name.

        Returns:
            True if each component that the preset names is selected.
        """
        required = {"method": self.method, "policy": self.policy, "update": self.update, "start": self.start}
        return all(picked.get(slot) == name for slot, name in required.items() if name is not None)


@dataclass(frozen=True)
class FigureRow:
    """One method in a figure or table of results.

    Args:
        method: name of the method.
        update: name of the update.
        policy: name of the policy; None: the task's.
        start: name of the start; None: the method's.
        settings: values by name of settings that differ from the task's.
        paper_value: value that the paper reports, if any.
        label_suffix: text that the legend adds to the method's name.
        tuned_by: name of the setting that is tuned, by trying a third and three times its value; "" for none.
        trials: number of trials; 0: the figure's.
    """

    method: str
    update: str
    policy: str | None = None
    start: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    paper_value: float | None = None
    label_suffix: str = ""
    tuned_by: str = ""
    trials: int = 0


@dataclass(frozen=True)
class ComparisonProtocol:
    """The budgets and seeds with which the rows of a figure are tuned and compared.

    Attributes:
        budget: simulator steps of start, roll-ins and oracle for each trial.
        tuning_seeds: seeds of the runs that tune a row.
        tuning_budget: simulator steps for each of these runs; 0: `budget`.
    """

    budget: int
    tuning_seeds: tuple[int, ...] = (100, 101)
    tuning_budget: int = 0


@dataclass(frozen=True, kw_only=True)
class Task:
    """A named problem with its default components and presets. A run can override every value.

    The order of precedence: settings of the run, presets of the task (later ones before earlier ones),
    settings of the method, defaults of the components.

    Args:
        name: name on the command line and in run folders.
        title: title of figures.
        problem: settings of the problem.
        policy: name of the default policy.
        oracle: name of the default oracle.
        components: settings classes of the task's own components. If policies are among them, only these can
            be used.
        defaults: presets for every run, such as the paper's policy size.
        presets: presets that were tuned for the paper's figures.
        figure_rows: rows of the paper's figure.
        protocol: budgets and seeds of the figure; None where the task has no figure.
        trials: number of trials of each row.
        packages: names of further packages that the task needs.
        expert_recipe: settings that trained the builtin expert; None where there is none.
    """

    name: str
    title: str
    problem: ProblemSettings
    policy: str = "mlp"
    oracle: str = "q-star"
    components: tuple[type[Settings], ...] = ()
    defaults: tuple[Preset, ...] = ()
    presets: tuple[Preset, ...] = ()
    figure_rows: tuple[FigureRow, ...] = ()
    protocol: ComparisonProtocol | None = None
    trials: int = 10
    packages: tuple[str, ...] = ()
    expert_recipe: ExpertRecipe | None = None

    def get_tuned_settings(self, picked: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings that the task's presets have for the selected components.

        Args:
            picked: names of the components selected so far, by slot.

        Returns:
            Values by name of the setting. Updates that need no tuning get only `defaults`.
        """
        presets = self.defaults if picked.get("update") in UNTUNED_UPDATES else (*self.defaults, *self.presets)
        return {name: value for one in presets if one.is_applicable(picked) for name, value in one.settings.items()}


PAPER_PRESETS = (  # as in the paper's experiments: step sizes tuned for each task, in its unit of cost
    Preset({"target_kl": 0.0, "cost_scale": "raw", "solver": "closed-form"}, update="natural"),
    Preset({"target_kl": 0.0, "cost_scale": "raw"}, update="regular"),
)
# settings that are tuned, of the natural and of the regular update
KL = "delta_kl"
RATE = "learning_rate"
CRITIC = {"oracle": "critic"}


def make_aggrevated_rows(trials: int = 0) -> tuple[FigureRow, ...]:
    """Return the rows of AggreVaTeD with its three updates, of which the first needs no tuning."""
    return (
        FigureRow("aggrevated", "exponentiated", trials=trials),
        FigureRow("aggrevated", "natural", tuned_by=KL, trials=trials),
        FigureRow("aggrevated", "regular", tuned_by=RATE, trials=trials),
    )


INTERPOLATION_ROWS = (  # between imitation and reinforcement; each query of LOLS is one rollout per action
    FigureRow("loki", "natural", tuned_by=KL),
    FigureRow("lols", "natural", settings={"trajectories": 10, "query_steps": 3}, tuned_by=KL),
)
BASELINE_ROWS = (  # methods without rollouts of the oracle, and reinforcement learning with a critic
    FigureRow("dagger", "follow-the-leader", tuned_by=RATE),
    FigureRow("sl", "follow-the-leader", tuned_by=RATE),
    FigureRow("thor", "natural", tuned_by=KL),
    FigureRow("reinforce", "regular", settings=CRITIC, tuned_by=RATE, label_suffix="critic"),
    FigureRow("tnpg", "natural", settings=CRITIC, tuned_by=KL, label_suffix="critic"),
)


def add_row_settings(rows: Iterable[FigureRow], start: str | None = None, **settings: Any) -> tuple[FigureRow, ...]:
    """Return the rows with another start and further settings."""
    return tuple(replace(row, start=start, settings={**settings, **row.settings}) for row in rows)


FIT_PER_ITERATION_DEFAULTS = {
    "trajectories": 5,
    "iterations": 60,
}
DISCRETE_ACTION_ROWS = (  # for discrete actions
    FigureRow("aggrevate", "follow-the-leader", tuned_by=RATE),
    FigureRow(
        "dagger",
        "follow-the-leader",
        settings=FIT_PER_ITERATION_DEFAULTS,
        tuned_by=RATE,
        label_suffix="K = 5, 60 iterations",
    ),
)
# reinforcement learning as in the paper: from a random policy, without a critic
FROM_SCRATCH_ROWS = (FigureRow("reinforce", "regular", tuned_by=RATE), FigureRow("tnpg", "natural", tuned_by=KL))


def find_task(name: str, trust_code: bool = False) -> Task:
    """Return the task of a name: an installed task, or one for a Gymnasium environment or `module:attribute`.

    Args:
        name: the name of a task, a Gymnasium id, or `module:attribute` of a task, environment or simulator.
        trust_code: whether `module:attribute` may be imported.

    Returns:
        The task.

    Raises:
        UsageError: the name is unknown; the message lists all names.

    Example:
        >>> find_task("cartpole").problem.horizon
        500
    """
    if name in list_builtin_tasks():
        task = import_module(list_builtin_tasks()[name]).TASK
    elif name in find_entry_points(TASKS):
        task = load_entry_point(find_entry_points(TASKS)[name])
    else:
        return make_custom_task(name, trust_code)
    if not isinstance(task, Task) or task.name != name:
        raise UsageError(
            f"the entry point {name} of an installed package is not a Task of that name; fix or uninstall it"
        )
    return task


def make_custom_task(name: str, trust_code: bool) -> Task:
    """Return the task of a Gymnasium id or of `module:attribute`."""
    from aggrevated.problems.code_references import import_reference, is_reference
    from aggrevated.problems.custom import CustomProblem

    if is_reference(name):
        imported = import_reference(name, trust_code) if trust_code else None
        if isinstance(imported, Task):
            return replace(imported, name=name)
    elif not is_gymnasium_id(name):
        check_package_installed(name, "task")
        alternatives = "; or pass a Gymnasium id, or module:attribute of a function that makes an environment"
        raise UsageError(
            f"unknown task {name!r}{suggest_close_match(name, find_similar_names(name))}: choose one of "
            f"{format_task_names()}{alternatives}"
        )
    return Task(name=name, title=name, problem=CustomProblem(environment=name, trusted=trust_code), oracle="")


def is_code_trusted(name: str, problem: ProblemSettings) -> bool:
    """Return whether code that a task names may be imported, since its problem was made from it already."""
    from aggrevated.problems.code_references import is_reference

    return bool(getattr(problem, "trusted", is_reference(name)))


def as_task(source: Any, expert: Any = None) -> Task:
    """Return the task of an object, with an expert.

    An object that can be imported as `module:attribute` is stored by that name, so that its runs can be
    resumed in another process.

    Args:
        source: a task, a task's name, a Gymnasium id, a function that makes an environment, or a simulator.
        expert: the expert; None: the task's.

    Raises:
        UsageError: `source` is none of these, or the task does not accept another expert.
    """
    from aggrevated.problems.code_references import make_reference
    from aggrevated.problems.custom import CustomProblem

    if isinstance(source, Task):
        task = source
    elif isinstance(source, str):
        task = find_task(source, trust_code=True)  # you typed it
    else:
        if not callable(source) and not callable(getattr(source, "step", None)):
            accepted = "a task's name, a Gymnasium id, a function that makes an environment, or a simulator"
            raise UsageError(f"{source!r} is not a task: pass {accepted}")
        label = str(getattr(source, "__name__", None) or getattr(source, "name", type(source).__name__))
        name = make_reference(source) or (f"own-{label}" if is_known_task(label) else label)
        task = Task(name=name, title=name, problem=CustomProblem(environment=source, trusted=True), oracle="")
    problem = task.problem
    if isinstance(problem, CustomProblem) and expert is not None and (reference := make_reference(expert)):
        return replace(task, problem=replace(problem, expert=reference))
    return replace_task_expert(task, expert)


def replace_task_expert(task: Task, expert: Any) -> Task:
    """Return the task with an expert that is a Python object; unchanged if `expert` is None."""
    from aggrevated.problems.control import ControlProblem
    from aggrevated.problems.custom import CustomProblem

    problem = task.problem
    if expert is None:
        return task
    if isinstance(problem, CustomProblem):
        return replace(task, problem=replace(problem, expert="", given=expert))
    if isinstance(problem, ControlProblem):
        return replace(task, problem=replace(problem, expert="", make_expert=partial(adapt_expert, expert)))
    raise UsageError(f"{task.name} does not accept your expert: leave it out, or pass a control task")


def adapt_expert(expert: Any, simulator: Any) -> Any:
    """Return an object as an expert in a simulator."""
    from aggrevated.experts.adapters import as_expert

    return as_expert(expert, simulator)


def is_known_task(name: str) -> bool:
    """Return whether a name may be that of a task, without importing code that is not installed."""
    from aggrevated.problems.code_references import is_reference

    return name in list_task_names() or is_reference(name) or is_gymnasium_id(name)


def is_gymnasium_id(name: str) -> bool:
    """Return whether Gymnasium has registered this id; False for `module:id`, which imports a module."""
    import gymnasium

    try:
        return bool(gymnasium.spec(name)) if ":" not in name else False
    except gymnasium.error.Error:
        return False


def find_similar_names(name: str) -> list[str]:
    """Return all names of tasks and Gymnasium ids, for suggestions."""
    import gymnasium

    return [*list_task_names(), *gymnasium.registry]


def format_task_names() -> str:
    return ", ".join(list_task_names())


def iter_tasks() -> Iterator[Task]:
    """Yield every installed task that can be imported.

    Yields:
        The tasks, builtin ones and those of other packages.

    Example:
        >>> "cartpole" in [task.name for task in iter_tasks()]
        True
    """
    for name in list_task_names():
        with suppress(UsageError):
            yield find_task(name)
