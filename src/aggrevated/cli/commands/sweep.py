"""`aggrevated sweep`: find good settings. Its options are those of `train`, fixed or varied."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from tyro.conf import Positional, UseAppendAction, arg

from aggrevated.cli.commands.train import (
    COMPONENT_HELP,
    add_task_list,
    check_task_first,
    find_task_argument,
    make_option_defaults,
    make_option_groups,
    select_from_arguments,
)
from aggrevated.cli.options import EngineOptions, Folder, Integer, Name, TaskName
from aggrevated.methods import METHODS

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

    from aggrevated.config.resolver import Selection
    from aggrevated.sweeps.request import SweepRequest
    from aggrevated.sweeps.sweep import Sweep
    from aggrevated.training.run_folder import Run

MAIN_OPTIONS = (  # those that --help lists
    "task", "vary", "expert", "method", "search", "trials", "seeds", "iterations", "budget", "workers", "out",
)  # fmt: skip


@dataclass(frozen=True)
class SweepCommand:
    """Try many settings, with several seeds each, and report which are best on validation.

    A setting varies over a range, NAME=LOW..HIGH or NAME=LOW..HIGH:log, or over choices, NAME=a,b,c. The names are
    those of the options of 'aggrevated train TASK', which also fix the settings that do not vary. A setting that has
    no effect with some choice is left out there. Repeat the command with its --out to resume a sweep,
    and with more --trials to extend it. Sweeps need Optuna: pip install 'aggrevated[optuna]'.

    Try:
      aggrevated sweep hopper --vary update=regular,exponentiated --vary learning-rate=1e-4..1e-1:log
      aggrevated sweep cartpole --update natural --vary delta-kl=1e-5..1e-2:log --vary damping=0.1..10:log
      aggrevated sweep cartpole --vary temperature=0.02..0.2:log:4 --vary decay_after=0,8 --search grid --json
    """

    command = "sweep"
    task: Positional[TaskName]
    """Task to train."""
    vary: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="NAME=VALUES", help_behavior_hint="")] = ()
    """Setting to vary: NAME=LOW..HIGH[:log] or NAME=a,b,c; in a grid NAME=LOW..HIGH[:log]:POINTS. May be repeated."""
    method: Annotated[str, arg(help=f"{', '.join(METHODS)}, or one that an installed package offers.")] = "aggrevated"
    search: Name = None
    """grid (all combinations) or tpe (Optuna's sampler); default: grid for points or few choices, else tpe."""
    trials: Integer = None
    """Number of trials; default: 64, or all of a grid."""
    seeds: int = 3
    """Number of runs per trial, with the seeds --seed, --seed + 1, …"""
    sampler_seed: int = 0
    """Seed of the sampler tpe."""
    out: Folder = None
    """Folder of the sweep; default: runs/sweep-TASK."""
    json: bool = False
    """Print all trials as one JSON object."""
    engine: EngineOptions = field(default_factory=EngineOptions)

    selections: ClassVar[Any] = ()  # the Selections of the task among the arguments, for all choices that vary

    @classmethod
    def specialize(cls, arguments: Sequence[str]) -> tuple[type[Self], list[str]]:
        """Return the command with the options of the task among the arguments, and the arguments that it takes."""
        task = find_task_argument(arguments)
        if task is None:
            return add_task_list(cls), list(arguments)
        from aggrevated.cli.options import normalize_flags, specialize_command, specialize_help

        selections = list_selections(task, arguments)
        configs = [make_option_defaults(selection, arguments) for selection in selections]
        components = [component for config in configs for component in config.components.values()]
        command = specialize_command(cls, make_option_groups(configs, cls, arguments), selections=selections)
        return specialize_help(command, normalize_flags(arguments, components), MAIN_OPTIONS)

    def run(self) -> None:
        """Make the missing trials and print the best."""
        from aggrevated.sweeps.sweep import create_or_open_sweep
        from aggrevated.training.run_folder import to_file_name

        check_task_first(self.command, self.task, next(iter(self.selections), None))
        self.engine.check(runs=2)
        folder = self.out or Path("runs") / to_file_name(f"sweep-{self.task}")
        run_sweep_to_end(create_or_open_sweep(folder, self.build_request(folder)), self.json, self.engine)

    def build_request(self, folder: Path) -> "SweepRequest":
        """Return the request; options that are not set come from the sweep in the folder, if it varies the same."""
        from aggrevated.sweeps.request import TRIALS, SweepRequest, choose_search
        from aggrevated.sweeps.search_space import parse_variations
        from aggrevated.sweeps.sweep import RECORD, Sweep

        varied = parse_variations(self.vary, self.selections[0].config.task, self.method)
        previous = Sweep.open(folder).request if (folder / RECORD).is_file() else None
        previous = previous if previous and previous.varied == varied else None
        search = self.search or (previous.search if previous else choose_search(varied, self.trials))
        sizes = (TRIALS if self.trials is None else self.trials, self.seeds, self.sampler_seed)
        request = SweepRequest(
            self.task, self.method, varied, self.get_fixed_settings(), search, *sizes, trust_code=True
        )
        request.check()
        combinations = len(request.grid) if search == "grid" else None
        trials = self.trials or (previous.trials if previous else combinations or TRIALS)
        return replace(request, trials=min(trials, combinations or trials))

    def get_fixed_settings(self) -> dict[str, Any]:
        """Return the explicit settings."""
        from aggrevated.cli.options import get_explicit_settings
        from aggrevated.sweeps.search_space import resolve_setting_path

        choices = {name: getattr(self.component, name) for name in COMPONENT_HELP}  # type: ignore[attr-defined]
        settings = {name: value for name, value in choices.items() if value is not None}
        for selection in self.selections:
            settings |= get_explicit_settings(self, selection.config.components)
        task = self.selections[0].config.task
        return {name: resolve_setting_path(task, name, value) for name, value in settings.items()}


def list_selections(task: str, arguments: Sequence[str]) -> list["Selection"]:
    """Return the components of all combinations of the methods and components that vary."""
    from aggrevated.cli.options import list_option_values
    from aggrevated.core.errors import UsageError
    from aggrevated.core.settings import to_flag

    selections = []
    errors = []
    varied = dict(argument.split("=", 1) for argument in list_option_values("vary", arguments) if "=" in argument)
    names = [name for name in ("method", *COMPONENT_HELP) if name in varied]
    for options in product(*([f"{to_flag(name)}={value}" for value in varied[name].split(",")] for name in names)):
        try:
            selections.append(select_from_arguments(task, [*arguments, *options]))
        except UsageError as error:
            errors.append(error)
    if not selections:
        raise errors[0]
    return selections


def run_sweep_to_end(
    sweep: "Sweep",
    json: bool,
    engine_options: EngineOptions,
    ignore_numerics: bool = False,
) -> None:
    """Make the missing trials, write the report and print it."""
    from aggrevated.cli.console import print_note, print_table
    from aggrevated.cli.run_jobs import print_resume_hint_on_interrupt, run_all
    from aggrevated.core.errors import AggrevatedError
    from aggrevated.reports.sweeps import describe_sweep, write_report
    from aggrevated.sweeps.sweep import TRIALS_PER_ROUND, FailureCallback, sort_best_first

    request = sweep.request
    problem = request.task_spec.problem
    print_note(f"sweep: {sweep.folder}, {request.search}, up to {request.trials} trials, {request.seeds} runs each")
    runs_at_once = request.seeds * min(request.trials, TRIALS_PER_ROUND)
    with engine_options.build(runs_at_once) as engine, print_resume_hint_on_interrupt(sweep.folder):

        def run_trials(runs: Sequence["Run"], failed: FailureCallback) -> None:
            run_all(runs, engine, ignore_numerics, failed, engine_options.log)

        def print_progress(study: "Study", new: Sequence["FrozenTrial"]) -> None:
            for trial in (trial for trial in new if trial.value is None):
                print_note(f"trial {trial.number:03d} failed: {trial.user_attrs['failed']}")
            status = "all failed so far"
            for best in sort_best_first(study.trials)[:1]:
                value = f"{problem.metric_name} {best.value:.{problem.digits}f}"
                status = f"best so far trial {best.number:03d}, {value}"
            print_note(f"{len(study.trials)}/{request.trials} trials: {status}")

        study = sweep.run(run_trials, print_progress)
    summary = describe_sweep(sweep, study)
    if summary["best"] is None:
        trials = summary["trials"]
        first = trials[0]["failed"]
        raise AggrevatedError(f"all {len(trials)} trials of {sweep.folder} failed; the first: {first}")
    print_table(write_report(sweep, study, summary), json, summary)
