"""`aggrevated train`: learn a policy. Its options are those of the pieces that the task and the choices come to."""

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
HELP_FLAGS = {"-h", "--help"}
COMPONENT_HELP = {
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

    A task is one of those below, any environment of Gymnasium by its id, or module:attribute of what makes one; the
    latter two need an --expert. 'aggrevated train TASK --help' shows all settings of a task, with their defaults.

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
    """What to learn."""
    method: Annotated[str, arg(help=f"{', '.join(METHODS)}, or one that an installed package offers.")] = "aggrevated"
    trials: int = 1
    """How many independent runs, in subfolders of the run folder."""
    config: Folder = None
    """Instead of TASK: the config.json of another run, copied or edited, whose settings are the defaults here."""
    out: Folder = None
    """The run folder; default: a new one in runs/."""
    trust_code: Trust = False
    json: bool = False
    """Print the result as one JSON object."""
    engine_options: EngineOptions = field(default_factory=EngineOptions)

    selection: ClassVar[Any] = None  # the Selection of the task among the arguments
    file_config: ClassVar[Any] = None  # the Config of --config

    @classmethod
    def specialize(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """Return the command with the options of the task among the arguments, and the arguments that it takes."""
        from aggrevated.cli.options import find_option_value, normalize_flags, specialize_command

        file = find_option_value("config", arguments)
        task = find_task_argument(arguments)
        if file is not None:
            config = load_config(Path(file), arguments)
            attributes: dict[str, Any] = {"file_config": config}
        elif task is not None:
            selection = select_from_arguments(task, arguments)
            config = shown_config(selection, arguments)
            attributes = {"selection": selection}
        else:
            return add_task_list(cls), list(arguments)
        command = specialize_command(cls, make_option_groups([config], cls, arguments), **attributes)
        return command, normalize_flags(arguments, config.components.values())

    def run(self) -> None:
        """Train, and print the result."""
        from aggrevated.cli.console import print_note, print_result
        from aggrevated.cli.run_jobs import print_resume_hint_on_interrupt, run_all
        from aggrevated.config.summary import describe_config
        from aggrevated.core.settings import TRIALS
        from aggrevated.training.run_folder import choose_run_folder, create_trials
        from aggrevated.training.trainer import Trainer

        TRIALS.check("trials", self.trials)
        self.engine_options.check(self.trials)
        config = self.make_config()
        for line in describe_config(config):
            print_note(line)
        trainer = Trainer(config)
        trainer.build()  # what cannot be built leaves no folder
        folder = self.out or choose_run_folder(config)
        runs = create_trials(folder, config, self.trials)
        print_note(f"run: {folder}")
        with self.engine_options.build(self.trials) as engine, print_resume_hint_on_interrupt(folder):
            results = run_all(runs, engine, log=self.engine_options.log, trainer=trainer)
        print_result(results, folder, self.json)

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
    """The config in a file, sealed or not; a `UsageError` for what cannot be said besides."""
    from aggrevated.cli.options import find_option_value
    from aggrevated.config.resolver import config_from_dict
    from aggrevated.core.errors import UsageError
    from aggrevated.core.settings import to_flag
    from aggrevated.storage import read_json
    from aggrevated.storage.checksummed import CHECKSUM_KEY

    for name in ("method", *COMPONENT_HELP):
        if find_option_value(name, arguments) is not None:
            raise UsageError(f"{to_flag(name)} cannot be changed beside --config; change it in {file}, or leave it out")
    facts = read_json(file)
    facts.pop(CHECKSUM_KEY, None)
    if set(facts) == {"trials", "config"}:
        raise UsageError(f"{file} is of several trials; give the config.json of one of them")
    return config_from_dict(facts, file, trust_code=to_flag("trust_code") in arguments)


def select_from_arguments(task_name: str, arguments: Sequence[str]) -> "Selection":
    """Return the components of a task that the arguments choose."""
    from aggrevated.cli.options import find_option_value
    from aggrevated.config.resolver import select_components
    from aggrevated.tasks import find_task

    task = find_task(task_name, trust_code=True)
    choices = {name: value for name in COMPONENT_HELP if (value := find_option_value(name, arguments)) is not None}
    explicit = choices | read_selection_settings(task, arguments)
    return select_components(task, find_option_value("method", arguments) or "aggrevated", explicit)


def shown_config(selection: "Selection", arguments: Sequence[str]) -> "Config":
    """Return the components whose settings become options; for --help with all defaults filled in."""
    from aggrevated.config.resolver import fill_defaults

    return fill_defaults(selection.config, ()) if HELP_FLAGS & {*arguments} else selection.config


def fill_selection(command: Any, task: str, selection: "Selection | None") -> "Config":
    """Return the config of a command with its explicit options; a `UsageError` if they are of another task."""
    from aggrevated.cli.options import get_explicit_settings

    checked = check_task_first(command.command, task, selection)
    choices = {name: value for name in COMPONENT_HELP if (value := getattr(command.choice, name)) is not None}
    return checked.fill(choices | get_explicit_settings(command, checked.config.components))


def read_selection_settings(task: "Task", arguments: Sequence[str]) -> dict[str, Any]:
    """Those of the world's settings that decide which pieces suit it, as far as they are given."""
    from aggrevated.cli.options import find_option_value, list_option_words
    from aggrevated.core.settings import get_declared_settings, parse_value

    kinds = get_type_hints(type(task.problem))
    found = {}
    for name in (name for name in task.problem.selection_settings if find_option_value(name, arguments) is not None):
        assert name in get_declared_settings(type(task.problem))
        found[name] = parse_value(name, " ".join(list_option_words(name, arguments)), kinds[name])
    return found


def find_task_argument(arguments: Sequence[str]) -> str | None:
    """The task among the arguments: the first if it is no option, else whatever is called like one."""
    from aggrevated.core.registry import list_task_names

    first = [word for word in arguments[1:2] if not word.startswith("-")]  # there it is meant to be a task
    return next(iter(first or [word for word in arguments[1:] if word in list_task_names()]), None)


def check_task_first(command: str, task: str, selection: "Selection | None") -> "Selection":
    """Return the selection; a `UsageError` if it is of another word, the value of an option before the task."""
    from aggrevated.core.errors import UsageError
    from aggrevated.tasks import find_task

    if not task:
        raise UsageError(f"give a TASK: 'aggrevated {command} --help' lists them")
    if selection is None or selection.config.task.name != task:
        find_task(task)
        raise UsageError(f"give the task before its options: aggrevated {command} {task} ...")
    return selection


def add_task_list(command: type[T]) -> type[T]:
    """The command without a task, whose help lists them."""
    from aggrevated.core.registry import list_task_names

    listed = make_dataclass(command.__name__, [], bases=(command,), frozen=True)
    listed.__doc__ = f"{getdoc(command)}\n\nTasks: {', '.join(list_task_names())}."
    return listed


def make_option_groups(configs: Sequence["Config"], command: type[Any], arguments: Sequence[str]) -> dict[str, type]:
    """The options of all pieces of these configs by their places; a `UsageError` for one that none of them has."""
    from aggrevated.cli.options import iter_unknown_options, make_option_group
    from aggrevated.config.resolver import raise_unused_setting

    settings = {name for config in configs for name in config.settings}
    own = {*command.__dataclass_fields__, *EngineOptions.__dataclass_fields__, "help", "version"}
    for name in iter_unknown_options(arguments, {*settings, *COMPONENT_HELP, *own}):
        raise_unused_setting(configs[0], name)
    groups = {"choice": make_component_options(configs[0])}
    for place in configs[0].components:
        pieces = {config.components[place].name: config.components[place] for config in reversed(configs)}
        if any(piece.to_values() for piece in pieces.values()):
            groups[place] = make_option_group(place, *reversed(pieces.values()))
    return groups


def make_component_options(config: "Config") -> type:
    """The options that choose the pieces, each with the names that there are."""
    from aggrevated.config.resolver import OPTION_NAMES, list_component_names

    fields: list[Any] = []
    for place, name in OPTION_NAMES.items():
        words = f"{COMPONENT_HELP[name]}: {', '.join(list_component_names(config.task, place))}."
        described = arg(help=words, metavar="NAME", help_behavior_hint=f"(default: {getattr(config, place).name})")
        fields.append((name, Annotated[str | None, described], field(default=None)))
    made = make_dataclass("ChoiceOptions", fields, frozen=True)
    made.__doc__ = "The pieces of the run; the groups below have the settings of those that are chosen."
    return made
