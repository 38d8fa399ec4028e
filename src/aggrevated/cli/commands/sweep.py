"""`aggrevated sweep`: find good settings. Its options are those of `train`, to be fixed or to be varied."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from tyro.conf import Positional, UseAppendAction, arg

from aggrevated.cli.commands.train import CHOICES, decisive, groups_of, named_task, refuse_if_later, with_tasks
from aggrevated.cli.engine_options import EngineOptions
from aggrevated.cli.option_types import Folder, Integer, Name, TaskName
from aggrevated.methods import METHODS

if TYPE_CHECKING:
    from aggrevated.config import Config
    from aggrevated.sweeps.request import Asked
    from aggrevated.sweeps.search_space import Varied


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
      aggrevated sweep cartpole --vary temperature=0.02..0.2:log:4 --vary cooling=0,8 --search grid --json
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

    usual: ClassVar[Any] = None  # Configs: the pieces that the choices come to, with their defaults

    @classmethod
    def fitted(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """(the command with the options of the task that the arguments name, the arguments as it takes them)."""
        task = named_task(arguments)
        if task is None:
            return with_tasks(cls), list(arguments)
        from aggrevated.cli.component_options import fitted, switches

        configs = configs_of(task, arguments)
        pieces = [piece for config in configs for piece in config.pieces.values()]
        return fitted(cls, groups_of(configs, cls, arguments), configs), switches(arguments, pieces)

    def run(self) -> None:
        """Make the trials that are missing, and print the best."""
        from aggrevated.cli.run_sweep import conduct
        from aggrevated.sweeps.sweep import begun_or_opened
        from aggrevated.training.run_folder import as_file_name

        refuse_if_later(self.command, self.task, next(iter(self.usual or ()), None))
        self.where.checked(runs=2)
        folder = self.out or Path("runs") / as_file_name(f"sweep-{self.task}")
        conduct(begun_or_opened(folder, self.asked(folder)), self.json, self.where)

    def asked(self, folder: Path) -> "Asked":
        """What is asked for; what is left open is as in the sweep that is there, if it varies the same."""
        from aggrevated.sweeps.request import TRIALS, Asked
        from aggrevated.sweeps.search import grid, usual_search
        from aggrevated.sweeps.search_space import parsed

        varied = parsed(self.vary, self.usual[0].task, self.method)
        then = asked_before(folder, varied)
        search = self.search or (then.search if then else usual_search(varied, self.trials))
        trials = TRIALS if self.trials is None else self.trials
        now = Asked(self.task, self.method, varied, self.fixed(), search, trials, self.seeds, self.sampler_seed, True)
        now.check()
        most = len(grid(now)) if search == "grid" else None
        if self.trials is None:
            return replace(now, trials=then.trials if then else most or TRIALS)
        return replace(now, trials=min(self.trials, most or self.trials))

    def fixed(self) -> dict[str, Any]:
        """The settings that were given."""
        from aggrevated.cli.component_options import given
        from aggrevated.sweeps.search_space import from_everywhere

        chosen = {name: getattr(self.choice, name) for name in CHOICES}  # type: ignore[attr-defined]
        found = {name: value for name, value in chosen.items() if value is not None}
        for config in self.usual:
            found |= given(self, config.pieces)
        return {name: from_everywhere(self.usual[0].task, name, value) for name, value in found.items()}


def configs_of(task: str, arguments: Sequence[str]) -> list["Config"]:
    """The configs, all else at its defaults, of every combination of method and pieces that was asked for."""
    from aggrevated.cli.component_options import value_of, values_of
    from aggrevated.config.resolver import completed, usual
    from aggrevated.errors import UsageError
    from aggrevated.tasks import find_task

    names, found, faults = ("method", *CHOICES), [], []
    picked = {name: [value] for name in names if (value := value_of(name, arguments)) is not None}
    varied = dict(word.split("=", 1) for word in values_of("vary", arguments) if "=" in word)
    picked |= {name: varied[name].split(",") for name in names if name in varied}
    known = find_task(task, trust=True)  # it was typed
    for some in product(*picked.values()):
        chosen = dict(zip(picked, some, strict=True))
        try:
            method = chosen.pop("method", "aggrevated")
            found.append(completed(usual(known, method, chosen | decisive(known, arguments)), ()))
        except UsageError as error:
            faults.append(error)
    if not found:
        raise faults[0]
    return found


def asked_before(folder: Path, varied: Sequence["Varied"]) -> "Asked | None":
    """What the sweep in the folder was asked for, if there is one, and if it varies the same."""
    from aggrevated.sweeps.sweep import RECORD, Sweep

    if not (folder / RECORD).is_file():
        return None
    asked = Sweep.open(folder).asked
    return asked if asked.varied == tuple(varied) else None
