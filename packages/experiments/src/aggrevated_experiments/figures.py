"""Reproducible figures, tables and pages of docs/results, by name.

A figure lists the runs that it needs, if any, and writes its report from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from aggrevated.config import Config
from aggrevated.config.resolver import resolve_config
from aggrevated.core.registry import list_task_names
from aggrevated.core.settings import check_known
from aggrevated.reports import Table
from aggrevated.reports.comparison import TrialGroup
from aggrevated.storage import JsonDict
from aggrevated.tasks import FigureRow, Task, find_task, iter_tasks
from aggrevated.training.run_folder import Run, create_or_open
from aggrevated.training.trainer import Trainer
from aggrevated_experiments.learning_curves_page import write_learning_curves_page
from aggrevated_experiments.row_tuning import Tuning

# modules that list their figures as FIGURES; they import this one
FIGURE_MODULES = (
    "aggrevated_experiments.expert_strength",
    "aggrevated_experiments.paper_settings",
    "aggrevated_experiments.parsing.table1",
    "aggrevated_experiments.theory.page",
    "aggrevated_experiments.where_it_pays.page",
    "aggrevated_experiments.where_it_pays.study_cliff",
    "aggrevated_experiments.where_it_pays.study_keys",
    "aggrevated_experiments.where_it_pays.study_lock",
    "aggrevated_experiments.where_it_pays.study_packing",
    "aggrevated_experiments.where_it_pays.study_tree",
)


@dataclass(frozen=True)
class Request:
    """Options of `aggrevated reproduce`.

    Attributes:
        quick: run a small part of the budget.
        trials: trials of each row; None for the figure's default.
        crohme: folder of real ink; None where the figure needs none.
        out: folder of the runs; None for the default.
        report: folder of the report; None for the folder of the runs.
        note: function that prints a sentence on progress.
    """

    quick: bool = False
    trials: int | None = None
    crohme: Path | None = None
    out: Path | None = None
    report: Path | None = None
    note: Callable[[str], None] = lambda sentence: None

    def format_command(self, figure: Figure) -> str:
        """Return the command that reproduces the figure, without paths of this machine."""
        data = "" if self.crohme is None else f" --crohme {self.crohme.name}"
        trials = "" if self.trials is None else f" --trials {self.trials}"
        return f"aggrevated reproduce {figure.name}{data}{' --quick' if self.quick else ''}{trials}"


class Figure(ABC):
    """A named figure, table or page that can be reproduced."""

    name: str
    task: Task  # task of its rows
    trials: int = 0  # default trials of each row; 0 for figures without runs
    runs_of: str = ""  # name of another figure whose runs it uses
    needs: ClassVar[tuple[str, ...]] = ()  # required options that most figures do not have

    def list_rows(self, request: Request) -> Sequence[FigureRow]:
        """Return the rows to run; none by default."""
        return ()

    @abstractmethod
    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        """Write the report into the folder, and return the table to print.

        Args:
            groups: the finished trials of each row.
            request: the options of the command.
            folder: folder of the report.
        """

    def count_trials(self, request: Request) -> int:
        """Return the number of trials of each row."""
        return (2 if request.quick else self.trials) if request.trials is None else request.trials

    def choose_folder(self, request: Request) -> Path:
        """Return the folder of the runs."""
        return request.out or Path("runs") / f"reproduce-{self.runs_of or self.name}{'-quick' if request.quick else ''}"

    def iter_stages(self, request: Request) -> Iterator[list[Run]]:
        """Yield the runs in stages; the runs of a stage may depend on the results of earlier stages."""
        if runs := [run for group in self.create_runs(request) for run in group]:
            yield runs

    def create_runs(self, request: Request) -> list[list[Run]]:
        """Return the runs of each row; runs that exist in the folder are opened."""
        groups = []
        trials = range(self.count_trials(request))
        for row in self.list_rows(request):
            config = make_row_config(self.task, row, request.quick)
            folder = self.choose_folder(request) / make_row_folder_name(row)
            groups.append([create_or_open(folder / f"trial-{i:02d}", config.with_settings(seed=i)) for i in trials])
        return groups

    def make_first_config(self) -> Config | None:
        """Return the config of the first row; None for figures without runs."""
        rows = self.list_rows(Request())
        return make_row_config(self.task, rows[0], quick=False) if rows else None


@dataclass(frozen=True)
class LearningCurves(Figure):
    """Learning curves of a control task: all methods with the same budget, each tuned on separate seeds."""

    name: str
    task: Task
    trials: int
    notes: Sequence[str] = ()  # further paragraphs of the page

    def list_rows(self, request: Request) -> Sequence[FigureRow]:
        return self.task.figure_rows

    def make_configs(self, quick: bool) -> list[Config]:
        """Return the configs of the rows before tuning."""
        protocol = self.task.protocol
        return [
            make_row_config(self.task, row, quick, protocol.budget if protocol else 0) for row in self.task.figure_rows
        ]

    def make_first_config(self) -> Config:
        return self.make_configs(quick=False)[0]

    def create_tunings(self, request: Request) -> list[Tuning]:
        """Return the tuning of each row; quick figures are not tuned."""
        protocol = self.task.protocol
        folder = self.choose_folder(request) / "tuning"
        if protocol is None or request.quick:
            return [Tuning("", {}) for _ in self.task.figure_rows]
        rows = zip(self.task.figure_rows, self.make_configs(request.quick), strict=True)
        return [Tuning.create(row, config, protocol, folder / make_row_folder_name(row)) for row, config in rows]

    def iter_stages(self, request: Request) -> Iterator[list[Run]]:
        if tried := [run for tuning in self.create_tunings(request) for run in tuning.runs]:
            yield tried
        yield from super().iter_stages(request)

    def create_runs(self, request: Request) -> list[list[Run]]:
        """Return the trials of each row with its tuned setting."""
        groups = []
        rows = zip(self.task.figure_rows, self.make_configs(request.quick), self.create_tunings(request), strict=True)
        for row, config, tuning in rows:
            tuned = config.with_settings(**tuning.choose_settings())
            folder = self.choose_folder(request) / make_row_folder_name(row)
            seeds = range(self.count_row_trials(row, request))
            groups.append([create_or_open(folder / f"trial-{i:02d}", tuned.with_settings(seed=i)) for i in seeds])
        return groups

    def count_row_trials(self, row: FigureRow, request: Request) -> int:
        """Return the row's own number of trials, unless the request sets another."""
        is_default = request.trials is None and not request.quick
        return row.trials if row.trials and is_default else self.count_trials(request)

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        labeled = [
            replace(group, label=format_row_label(format_label_with_start(group), row))
            for group, row in zip(groups, self.task.figure_rows, strict=True)
        ]
        tunings = zip(labeled, self.create_tunings(request), strict=True)
        tuned = [tuning.to_dict(group.label) for group, tuning in tunings if tuning.tries]
        command = request.format_command(self)
        short = fingerprint_short_run(self)
        return write_learning_curves_page(self.name, labeled, self.task, command, folder, tuned, short, self.notes)


def load_figures() -> dict[str, Figure]:
    """Return the figures that belong to no task, by name."""
    modules = [import_module(name) for name in FIGURE_MODULES]
    return {figure.name: figure for module in modules for figure in getattr(module, "FIGURES", ())}


def find_figure(name: str) -> Figure:
    """Return the figure of that name.

    Raises:
        UsageError: no figure has this name; the message lists all names.
    """
    if name in list_task_names() and (task := find_task(name)).figure_rows:
        return LearningCurves(name, task, task.trials)
    task_figures = [task.name for task in iter_tasks() if task.figure_rows]
    return load_figures()[check_known(name, "figure", [*task_figures, *load_figures()])]


def format_label_with_start(group: TrialGroup) -> str:
    """Return the group's label, with its start unless that is a random policy."""
    start = group.runs[0].config.start.name
    return group.label if start == "random" or f"{start} start" in group.label else f"{group.label}, {start} start"


def format_row_label(label: str, row: FigureRow) -> str:
    """Return the name of a row in a legend."""
    return f"{label}, {row.label_suffix}" if row.label_suffix and row.label_suffix not in label else label


def make_row_config(task: Task, row: FigureRow, quick: bool, budget: int = 0) -> Config:
    """Return the config of a row; `quick` takes a fifth of the iterations, or a twentieth of the budget."""
    settings = {"update": row.update, "policy": row.policy, "start": row.start, **row.settings}
    if budget:
        return resolve_config(task, row.method, **{**settings, "budget": budget // 20 if quick else budget})
    config = resolve_config(task, row.method, **settings)
    if not quick:
        return config
    return resolve_config(task, row.method, **{**settings, "iterations": max(1, config.loop.iterations // 5)})


def make_row_folder_name(row: FigureRow) -> str:
    """Return the name of the folder of a row's runs."""
    varied = (name.replace("_", "-") for name in row.settings)
    return "-".join(filter(None, (row.method, row.update, row.policy, row.start, *varied)))


SHORT_RUN_SETTINGS = {  # the smallest run that can show a difference of bits
    **{"iterations": 2, "budget": 0, "validate_every": 1, "trajectories": 4},
    **{"validation_episodes": 4, "test_episodes": 4, "start_steps": 20, "demonstrations": 4},
}


def fingerprint_short_run(figure: Figure) -> JsonDict:
    """Run two small iterations of the figure's first row, and return their settings and the weights' SHA-256.

    Machines with the same numerics fingerprint compute the same weights.
    """
    config = figure.make_first_config()
    if config is None:
        return {}
    config = config.with_settings(
        **{name: value for name, value in SHORT_RUN_SETTINGS.items() if name in config.settings}
    )
    with TemporaryDirectory() as folder:
        result = Trainer(config).fit(Run.create(Path(folder) / "short", config))
    return {"settings": config.to_dict(), "weights_sha256": result.weights_sha256}
