"""`aggrevated sweep`: find good settings. Its options are those of `train`, to be fixed or to be varied."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from tyro.conf import Positional, UseAppendAction, arg

from aggrevated.cli.commands.train import (
    COMPONENT_HELP,
    check_task_first,
    find_task_argument,
    option_groups,
    read_selection_settings,
    with_task_list,
)
from aggrevated.cli.options import EngineOptions, Folder, Integer, Name, TaskName
from aggrevated.methods import METHODS

if TYPE_CHECKING:
    from aggrevated.config import Config
    from aggrevated.sweeps.request import SweepRequest
    from aggrevated.sweeps.search_space import Variation


@dataclass(frozen=True)
class Sweep:
    """Try many settings, with several seeds each, and say which are best on validation.

    What varies is a range, NAME=LOW..HIGH or NAME=LOW..HIGH:log, or choices, NAME=a,b,c; names are those of the options
    of 'aggrevated train TASK'. All that does not vary can be fixed by these options. What has no effect beside some
    choice is left out there. Stopped and started again with the same --out, it goes on where it was, and with more
    --trials it goes on further.

    Try:
      aggrevated sweep hopper --vary update=regular,exponentiated --vary learning-rate=1e-4..1e-1:log --seeds 3
      aggrevated sweep cartpole --update natural --vary delta-kl=1e-5..1e-2:log --vary damping=0.1..10:log --trials 32
      aggrevated sweep cartpole --vary temperature=0.02..0.2:log:4 --vary decay_after=0,8 --search grid --json
    """

    command = "sweep"
    task: Positional[TaskName]
    """What to learn."""
    vary: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME=VALUES", help_behavior_hint="")] = ()
    """What varies, once for each setting: NAME=LOW..HIGH[:log], NAME=a,b,c; in a grid NAME=LOW..HIGH[:log]:POINTS."""
    method: Annotated[str, arg(help=f"{', '.join(METHODS)}, or one that an installed package offers.")] = "aggrevated"
    search: Name = None
    """grid (all combinations) or tpe (Optuna's); default: grid if there are points, or few choices, else tpe."""
    trials: Integer = None
    """How many settings are tried; default: 64, or all of a grid."""
    seeds: int = 3
    """How many runs each trial has: those with --seed, --seed + 1 and so on."""
    sampler_seed: int = 0
    """Which trials tpe comes up with."""
    out: Folder = None
    """Where trials, table and figure go; default: runs/sweep-TASK."""
    json: bool = False
    """Print all trials as one JSON object."""
    where: EngineOptions = field(default_factory=EngineOptions)

    default_config: ClassVar[Any] = None  # Configs: the pieces that the choices come to, with their defaults

    @classmethod
    def specialize(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """(the command with the options of the task that the arguments name, the arguments as it takes them)."""
        task = find_task_argument(arguments)
        if task is None:
            return with_task_list(cls), list(arguments)
        from aggrevated.cli.options import normalize_flags, specialize_command

        configs = list_configs(task, arguments)
        pieces = [piece for config in configs for piece in config.components.values()]
        return specialize_command(cls, option_groups(configs, cls, arguments), configs), normalize_flags(
            arguments, pieces
        )

    def run(self) -> None:
        """Make the trials that are missing, and print the best."""
        from aggrevated.cli.run_sweep import run_sweep_to_end
        from aggrevated.sweeps.sweep import create_or_open_sweep
        from aggrevated.training.run_folder import to_file_name

        check_task_first(self.command, self.task, next(iter(self.default_config or ()), None))
        self.where.checked(runs=2)
        folder = self.out or Path("runs") / to_file_name(f"sweep-{self.task}")
        run_sweep_to_end(create_or_open_sweep(folder, self.asked(folder)), self.json, self.where)

    def asked(self, folder: Path) -> "SweepRequest":
        """What is asked for; what is left open is as in the sweep that is there, if it varies the same."""
        from aggrevated.sweeps.request import TRIALS, SweepRequest
        from aggrevated.sweeps.search import choose_search, list_grid
        from aggrevated.sweeps.search_space import parse_variations

        varied = parse_variations(self.vary, self.default_config[0].task, self.method)
        then = load_previous_request(folder, varied)
        search = self.search or (then.search if then else choose_search(varied, self.trials))
        trials = TRIALS if self.trials is None else self.trials
        now = SweepRequest(
            self.task, self.method, varied, self.fixed(), search, trials, self.seeds, self.sampler_seed, True
        )
        now.check()
        most = len(list_grid(now)) if search == "grid" else None
        if self.trials is None:
            return replace(now, trials=then.trials if then else most or TRIALS)
        return replace(now, trials=min(self.trials, most or self.trials))

    def fixed(self) -> dict[str, Any]:
        """The settings that were given."""
        from aggrevated.cli.options import explicit_settings
        from aggrevated.sweeps.search_space import with_absolute_path

        chosen = {name: getattr(self.choice, name) for name in COMPONENT_HELP}  # type: ignore[attr-defined]
        found = {name: value for name, value in chosen.items() if value is not None}
        for config in self.default_config:
            found |= explicit_settings(self, config.components)
        return {name: with_absolute_path(self.default_config[0].task, name, value) for name, value in found.items()}


def list_configs(task: str, arguments: Sequence[str]) -> list["Config"]:
    """The configs, all else at its defaults, of every combination of method and pieces that was asked for."""
    from aggrevated.cli.options import option_value, option_values
    from aggrevated.config.resolver import default_config, fill_config_defaults
    from aggrevated.core.errors import UsageError
    from aggrevated.tasks import find_task

    names = ("method", *COMPONENT_HELP)
    found = []
    faults = []
    picked = {name: [value] for name in names if (value := option_value(name, arguments)) is not None}
    varied = dict(word.split("=", 1) for word in option_values("vary", arguments) if "=" in word)
    picked |= {name: varied[name].split(",") for name in names if name in varied}
    known = find_task(task, trust_code=True)  # it was typed
    for some in product(*picked.values()):
        chosen = dict(zip(picked, some, strict=True))
        try:
            method = chosen.pop("method", "aggrevated")
            found.append(
                fill_config_defaults(
                    default_config(known, method, chosen | read_selection_settings(known, arguments)), ()
                )
            )
        except UsageError as error:
            faults.append(error)
    if not found:
        raise faults[0]
    return found


def load_previous_request(folder: Path, varied: Sequence["Variation"]) -> "SweepRequest | None":
    """What the sweep in the folder was asked for, if there is one, and if it varies the same."""
    from aggrevated.sweeps.sweep import RECORD, Sweep

    if not (folder / RECORD).is_file():
        return None
    asked = Sweep.open(folder).asked
    return asked if asked.varied == tuple(varied) else None
