"""`aggrevated train`: learn a policy. Its options are those of the pieces that the task and the choices come to."""

from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

from tyro.conf import Positional, arg

from aggrevated.cli.engines import EngineOptions
from aggrevated.cli.options import Folder, TaskName
from aggrevated.methods import METHODS

if TYPE_CHECKING:
    from aggrevated.config import Config

T = TypeVar("T")
CHOICES = {
    "policy": "The kind of policy",
    "update": "How it is stepped (line 7)",
    "oracle": "How the expert is asked for Q* (line 6)",
    "reinforcement": "What follows the imitation (line 6)",
    "gradient": "Of which loss (line 6)",
    "start": "What comes before iteration 1 (line 2)",
}


@dataclass(frozen=True)
class Train:
    """Learn a policy for a task from its expert, and leave a run folder with the policy, metrics and a curve.

    Every task has settings of its own: 'aggrevated train TASK --help' shows them, with their defaults.

    Try:
      aggrevated train cartpole
      aggrevated train acrobot --method dagger --seed 3 --trials 5 --json
      aggrevated train hopper --update regular --queried-steps 20
      aggrevated train hopper --method loki --reinforcement critic
      aggrevated train algebra --policy lstm --seed 1
      aggrevated train hopper --trajectories 50 --engine processes --workers 8
    """

    command = "train"
    task: Positional[TaskName]
    """What to learn."""
    method: Annotated[str, arg(help=f"{', '.join(METHODS)}, or one that an installed package offers.")] = "aggrevated"
    trials: int = 1
    """How many independent runs, in subfolders of the run folder."""
    out: Folder = None
    """The run folder; default: a new one in runs/."""
    json: bool = False
    """Print the result as one JSON object."""
    where: EngineOptions = field(default_factory=EngineOptions)

    usual: ClassVar[Any] = None  # a Config: the pieces that the choices come to, with their defaults

    @classmethod
    def fitted(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """(the command with the options of the task that the arguments name, the arguments as it takes them)."""
        task = named_task(arguments)
        return with_options(cls, task, arguments) if task else (with_tasks(cls), list(arguments))

    def run(self) -> None:
        """Train, and print the result."""
        from aggrevated.cli.jobs import run_all
        from aggrevated.cli.output import note, print_result
        from aggrevated.cli.pieces import given
        from aggrevated.config.resolving import resolve
        from aggrevated.runs.run import Run, refuse_if_used, unused_folder
        from aggrevated.settings import TRIALS

        refuse_if_later(self.command, self.task, self.usual)
        TRIALS.require("trials", self.trials)
        self.where.checked(self.trials)
        chosen = {name: getattr(self.choice, name) for name in CHOICES}  # type: ignore[attr-defined]
        config = resolve(self.usual.task, self.method, **chosen, **given(self, self.usual.pieces))
        if config.world.notice:
            note(config.world.notice)
        folder = self.out or unused_folder(config)
        if self.trials == 1:
            runs = [Run.create(folder, config)]
        else:
            refuse_if_used(folder)
            seeds = range(config.loop.seed, config.loop.seed + self.trials)
            runs = [Run.create(folder / f"trial-{i:02d}", config.replaced(seed=seed)) for i, seed in enumerate(seeds)]
        note(f"run: {folder}")
        print_result(run_all(runs, self.where), folder, self.json)


def named_task(arguments: Sequence[str]) -> str | None:
    """The task among the arguments: the first if it is no option, else whatever is called like one."""
    from aggrevated.shelves import task_names

    first = [word for word in arguments[1:2] if not word.startswith("-")]  # there it is meant to be a task
    return next(iter(first or [word for word in arguments[1:] if word in task_names()]), None)


def refuse_if_later(command: str, task: str, usual: "Config | None") -> None:
    """A `UsageError` if the options are those of another task, whose name is the value of an option before this one."""
    from aggrevated.errors import UsageError
    from aggrevated.tasks import find_task

    if find_task(task).name != (usual.task.name if usual else None):
        raise UsageError(f"give the task before its options: aggrevated {command} {task} ...")


def with_tasks(command: type[T]) -> type[T]:
    """The command without a task, whose help lists them."""
    from aggrevated.shelves import task_names

    listed = make_dataclass(command.__name__, [], bases=(command,), frozen=True)
    listed.__doc__ = f"{getdoc(command)}\n\nTasks: {', '.join(task_names())}."
    return listed


def with_options(command: type[T], task: str, arguments: Sequence[str]) -> tuple[type[T], list[str]]:
    """The command for one task: a group of options for each piece, after one for the choices."""
    from aggrevated.cli.pieces import fitted, switches, value_of
    from aggrevated.config.resolving import completed, usual
    from aggrevated.tasks import find_task

    choices = {name: value for name in CHOICES if (value := value_of(name, arguments)) is not None}
    config = completed(usual(find_task(task), value_of("method", arguments) or "aggrevated", choices), ())
    return fitted(command, groups_of([config], command, arguments), config), switches(arguments, config.pieces.values())


def groups_of(configs: Sequence["Config"], command: type[Any], arguments: Sequence[str]) -> dict[str, type]:
    """The options of all pieces of these configs by their places; a `UsageError` for one that none of them has."""
    from aggrevated.cli.pieces import group, unknown
    from aggrevated.config.resolving import refuse

    settings = {name for config in configs for name in config.settings}
    own = {*command.__dataclass_fields__, *EngineOptions.__dataclass_fields__, "help", "version"}
    for name in unknown(arguments, {*settings, *CHOICES, *own}):
        refuse(configs[0], name)
    groups = {"choice": choices_of(configs[0])}
    for place in configs[0].pieces:
        pieces = {config.pieces[place].name: config.pieces[place] for config in reversed(configs)}
        if any(piece.values() for piece in pieces.values()):
            groups[place] = group(place, *reversed(pieces.values()))
    return groups


def choices_of(config: "Config") -> type:
    """The options that choose the pieces, each with the names that there are."""
    from aggrevated.config.pieces import OPTIONS, names_of

    fields: list[Any] = []
    for place, name in OPTIONS.items():
        words = f"{CHOICES[name]}: {', '.join(names_of(config.task, place))}."
        described = arg(help=words, metavar="NAME", help_behavior_hint=f"(default: {getattr(config, place).name})")
        fields.append((name, Annotated[str | None, described], field(default=None)))
    made = make_dataclass("ChoiceOptions", fields, frozen=True)
    made.__doc__ = "The pieces of the run; the groups below have the settings of those that are chosen."
    return made
