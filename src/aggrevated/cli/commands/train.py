"""`aggrevated train`: train a policy. Its options are the settings of the components that the arguments choose."""

from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, get_type_hints

from tyro.conf import Positional, arg

from aggrevated.cli.options import EngineOptions, Folder, Trust
from aggrevated.methods import METHODS

if TYPE_CHECKING:
    from aggrevated.config import Config
    from aggrevated.config.resolver import Selection
    from aggrevated.tasks import Task

T = TypeVar("T")
MAIN_OPTIONS = (  # those that --help lists
    "task", "expert", "method", "update", "policy", "seed", "iterations", "budget", "trials", "workers", "out",
)  # fmt: skip
COMPONENT_HELP = {
    "policy": "Network of the policy",
    "update": "Update rule (line 7)",
    "oracle": "Oracle that computes the cost-to-go (line 6)",
    "reinforcement": "Reinforcement learning after the imitation (line 6)",
    "gradient": "Loss whose gradient is followed (line 6)",
    "start": "Start of the policy before iteration 1 (line 2)",
}


@dataclass(frozen=True)
class Train:
    """Train a policy for a task from its expert. The run folder holds the policy, metrics, checkpoints and a curve.

    TASK is the name of a task, the id of a Gymnasium environment, or module:attribute of a function that makes an
    environment. The latter two need --expert. 'aggrevated train TASK --help-all' lists all settings of a task.

    Try:
      aggrevated train LunarLander-v3 --expert ppo.zip
      aggrevated train my_package.envs:make --expert my_package.control:act --budget 50000
      aggrevated train cartpole
      aggrevated train acrobot --method dagger --seed 3 --trials 5 --json
      aggrevated train hopper --update regular --query-steps 20
      aggrevated train hopper --method loki --reinforcement critic
      aggrevated train algebra --policy lstm --seed 1
      aggrevated train hopper --trajectories 50 --engine processes --workers 8
      aggrevated train --config runs/cartpole-aggrevated-exponentiated/config.json --seed 7
    """

    command = "train"
    task: Annotated[Positional[str], arg(metavar="TASK", help_behavior_hint="")] = ""
    """Task to train."""
    method: Annotated[str, arg(help=f"Method: {', '.join(METHODS)}, or one of an installed package.")] = "aggrevated"
    trials: int = 1
    """Number of independent runs, in subfolders of the run folder; trial i has seed + i."""
    config: Folder = None
    """A config.json instead of TASK; its settings are the defaults."""
    out: Folder = None
    """Run folder; default: a new one in runs/."""
    trust_code: Trust = False
    json: bool = False
    """Print the result as one JSON object."""
    engine: EngineOptions = field(default_factory=EngineOptions)

    selection: ClassVar[Any] = None  # the Selection of the task among the arguments
    file_config: ClassVar[Any] = None  # the Config of --config

    @classmethod
    def specialize(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """Return the command with the options of the task among the arguments, and the arguments that it takes."""
        from aggrevated.cli.options import find_option_value, normalize_flags, specialize_command, specialize_help

        file = find_option_value("config", arguments)
        task = find_task_argument(arguments)
        if file is not None:
            config = load_config(Path(file), arguments)
            attributes: dict[str, Any] = {"file_config": config}
        elif task is not None:
            selection = select_from_arguments(task, arguments)
            config = make_option_defaults(selection, arguments)
            attributes = {"selection": selection}
        else:
            return specialize_help(add_task_list(cls), arguments, MAIN_OPTIONS)
        command = specialize_command(cls, make_option_groups([config], cls, arguments), **attributes)
        return specialize_help(command, normalize_flags(arguments, config.components.values()), MAIN_OPTIONS)

    def run(self) -> None:
        """Train the policy and print the result."""
        from aggrevated.cli.console import print_note, print_run_result
        from aggrevated.cli.run_jobs import print_resume_hint_on_interrupt, run_all
        from aggrevated.config.summary import describe_config
        from aggrevated.core.settings import TRIALS
        from aggrevated.training.run_folder import choose_run_folder, create_trials
        from aggrevated.training.trainer import Trainer

        TRIALS.check("trials", self.trials)
        self.engine.check(self.trials)
        config = self.make_config()
        for line in describe_config(config):
            print_note(line)
        trainer = Trainer(config)
        trainer.build()  # raises before the folder is created
        folder = self.out or choose_run_folder(config)
        runs = create_trials(folder, config, self.trials)
        print_note(f"run: {folder}")
        with self.engine.build(self.trials) as engine, print_resume_hint_on_interrupt(folder, config):
            results = run_all(runs, engine, log=self.engine.log, trainer=trainer)
        print_run_result(runs, results, folder, self.json)

    def make_config(self) -> "Config":
        """Return the config of the run, checked."""
        from aggrevated.cli.options import get_explicit_settings
        from aggrevated.core.errors import UsageError

        if self.file_config is None:
            return fill_selection(self, self.task, self.selection)
        if self.task:
            raise UsageError(f"{self.config} names the task already; leave {self.task} out")
        config: Config = self.file_config.with_settings(**get_explicit_settings(self, self.file_config.components))
        config.validate()
        return config


def load_config(file: Path, arguments: Sequence[str]) -> "Config":
    """Return the config of a file, checksummed or not; raise a `UsageError` if the arguments choose components, too."""
    from aggrevated.cli.options import find_option_value
    from aggrevated.config.resolver import config_from_dict
    from aggrevated.core.errors import UsageError
    from aggrevated.core.settings import to_flag
    from aggrevated.storage import read_json
    from aggrevated.storage.checksummed import CHECKSUM_KEY

    for name in ("method", *COMPONENT_HELP):
        if find_option_value(name, arguments) is not None:
            raise UsageError(f"{to_flag(name)} cannot be combined with --config: change it in {file}, or leave it out")
    content = read_json(file)
    content.pop(CHECKSUM_KEY, None)
    if set(content) == {"trials", "config"}:
        raise UsageError(f"{file} describes several trials: give the config.json of one trial")
    return config_from_dict(content, file, trust_code=to_flag("trust_code") in arguments)


def select_from_arguments(task_name: str, arguments: Sequence[str]) -> "Selection":
    """Return the components of a task that the arguments choose."""
    from aggrevated.cli.options import find_option_value
    from aggrevated.config.resolver import select_components
    from aggrevated.tasks import find_task

    task = find_task(task_name, trust_code=True)
    choices = {name: value for name in COMPONENT_HELP if (value := find_option_value(name, arguments)) is not None}
    explicit = choices | read_selection_settings(task, arguments)
    return select_components(task, find_option_value("method", arguments) or "aggrevated", explicit)


def make_option_defaults(selection: "Selection", arguments: Sequence[str]) -> "Config":
    """Return the config whose settings become the options, for --help with all defaults filled in."""
    from aggrevated.cli.options import HELP_FLAGS
    from aggrevated.config.resolver import fill_defaults

    return fill_defaults(selection.config, ()) if HELP_FLAGS & {*arguments} else selection.config


def fill_selection(command: Any, task: str, selection: "Selection | None") -> "Config":
    """Return the config of a command with its explicit options; a `UsageError` if they are of another task."""
    from aggrevated.cli.options import get_explicit_settings

    checked = check_task_first(command.command, task, selection)
    choices = {name: value for name in COMPONENT_HELP if (value := getattr(command.component, name)) is not None}
    return checked.fill(choices | get_explicit_settings(command, checked.config.components))


def read_selection_settings(task: "Task", arguments: Sequence[str]) -> dict[str, Any]:
    """Return the settings among the arguments that decide which components fit the problem."""
    from aggrevated.cli.options import find_option_value, list_option_words
    from aggrevated.core.settings import get_declared_settings, parse_value

    types = get_type_hints(type(task.problem))
    settings = {}
    for name in (name for name in task.problem.selection_settings if find_option_value(name, arguments) is not None):
        assert name in get_declared_settings(type(task.problem))
        settings[name] = parse_value(name, " ".join(list_option_words(name, arguments)), types[name])
    return settings


def find_task_argument(arguments: Sequence[str]) -> str | None:
    """Return the task among the arguments: the first word, or else the first word that is the name of a task."""
    from aggrevated.core.registry import list_task_names

    first = [argument for argument in arguments[1:2] if not argument.startswith("-")]
    return next(iter(first or [argument for argument in arguments[1:] if argument in list_task_names()]), None)


def check_task_first(command: str, task: str, selection: "Selection | None") -> "Selection":
    """Return the selection; a `UsageError` if it is of another word, the value of an option before the task."""
    from aggrevated.core.errors import UsageError
    from aggrevated.tasks import find_task

    if not task:
        raise UsageError(f"TASK is missing: 'aggrevated {command} --help' lists the tasks")
    if selection is None or selection.config.task.name != task:
        find_task(task)
        raise UsageError(f"give the task before its options: aggrevated {command} {task} ...")
    return selection


def add_task_list(command: type[T]) -> type[T]:
    """Return the command without a task; its help lists the tasks."""
    from aggrevated.core.registry import list_task_names

    listed = make_dataclass(command.__name__, [], bases=(command,), frozen=True)
    listed.__doc__ = f"{getdoc(command)}\n\nTasks: {', '.join(list_task_names())}."
    return listed


def make_option_groups(configs: Sequence["Config"], command: type[Any], arguments: Sequence[str]) -> dict[str, type]:
    """Return the options of all components by slot; raise a `UsageError` for an argument that none of them has."""
    from aggrevated.cli.options import iter_unknown_options, make_option_group
    from aggrevated.config.resolver import raise_unused_setting

    settings = {name for config in configs for name in config.settings}
    options = {*command.__dataclass_fields__, *EngineOptions.__dataclass_fields__, "help", "help_all", "version"}
    for name in iter_unknown_options(arguments, {*settings, *COMPONENT_HELP, *options}):
        raise_unused_setting(configs[0], name)
    groups = {"component": make_component_options(configs[0])}
    for slot in configs[0].components:
        components = {config.components[slot].name: config.components[slot] for config in reversed(configs)}
        if any(component.to_values() for component in components.values()):
            groups[slot] = make_option_group(slot, *reversed(components.values()))
    return groups


def make_component_options(config: "Config") -> type:
    """Return the options that choose the components."""
    from aggrevated.config.resolver import OPTION_NAMES, list_component_names

    fields: list[Any] = []
    for slot, name in OPTION_NAMES.items():
        help_text = f"{COMPONENT_HELP[name]}: {', '.join(list_component_names(config.task, slot))}."
        described = arg(help=help_text, metavar="NAME", help_behavior_hint=f"(default: {getattr(config, slot).name})")
        fields.append((name, Annotated[str | None, described], field(default=None)))
    options_class = make_dataclass("ChoiceOptions", fields, frozen=True)
    options_class.__doc__ = "Components of the run. The groups below hold their settings."
    return options_class
