"""What can be made again from scratch: every figure, table and page of docs/results, by name.

One mechanism for all: a figure names the runs that it needs, if any, and writes its report from them.
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

# the modules that announce figures as FIGURES; they import this one
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
    """What was asked for."""

    quick: bool = False
    trials: int | None = None  # of each row; None: as usual
    crohme: Path | None = None  # real ink
    out: Path | None = None  # of the runs
    report: Path | None = None
    note: Callable[[str], None] = lambda sentence: None

    def format_command(self, figure: Figure) -> str:
        """What to type to get it again, without places on this machine."""
        data = "" if self.crohme is None else f" --crohme {self.crohme.name}"
        trials = "" if self.trials is None else f" --trials {self.trials}"
        return f"aggrevated reproduce {figure.name}{data}{' --quick' if self.quick else ''}{trials}"


class Figure(ABC):
    """What has a name and can be made again."""

    name: str
    task: Task  # of its rows
    trials: int = 0  # of each row, as usual; 0 where there are no runs
    runs_of: str = ""  # whose runs it uses, where they are not its own
    needs: ClassVar[tuple[str, ...]] = ()  # those options of a request that only some figures know, and it needs

    def list_rows(self, request: Request) -> Sequence[FigureRow]:
        """What is to be run; nothing by default."""
        return ()

    @abstractmethod
    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        """Write the report into the folder, and give what is printed."""

    def count_trials(self, request: Request) -> int:
        return (2 if request.quick else self.trials) if request.trials is None else request.trials

    def choose_folder(self, request: Request) -> Path:
        """Where its runs are."""
        return request.out or Path("runs") / f"reproduce-{self.runs_of or self.name}{'-quick' if request.quick else ''}"

    def iter_stages(self, request: Request) -> Iterator[list[Run]]:
        """What is to be run, one stage after the other: what a later one is may hang on how an earlier one ended."""
        if runs := [run for group in self.create_runs(request) for run in group]:
            yield runs

    def create_runs(self, request: Request) -> list[list[Run]]:
        """The runs of its rows; those that are in the folder already are taken up where they are."""
        groups = []
        trials = range(self.count_trials(request))
        for row in self.list_rows(request):
            config = make_row_config(self.task, row, request.quick)
            folder = self.choose_folder(request) / make_row_folder_name(row)
            groups.append([create_or_open(folder / f"trial-{i:02d}", config.with_settings(seed=i)) for i in trials])
        return groups

    def make_first_config(self) -> Config | None:
        """The settings of its first row; None where nothing is run."""
        rows = self.list_rows(Request())
        return make_row_config(self.task, rows[0], quick=False) if rows else None


@dataclass(frozen=True)
class LearningCurves(Figure):
    """The paper's figure of a task of control: all methods with the same budget, each tuned on seeds of its own."""

    name: str
    task: Task
    trials: int
    notes: Sequence[str] = ()  # what else its page says

    def list_rows(self, request: Request) -> Sequence[FigureRow]:
        return self.task.figure_rows

    def make_configs(self, quick: bool) -> list[Config]:
        """Those of its rows, before they are tuned."""
        protocol = self.task.protocol
        return [
            make_row_config(self.task, row, quick, protocol.budget if protocol else 0) for row in self.task.figure_rows
        ]

    def make_first_config(self) -> Config:
        return self.make_configs(quick=False)[0]

    def create_tunings(self, request: Request) -> list[Tuning]:
        """What is tried for each row; nothing in a quick one."""
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
        """The trials, with what was found to be best for each row."""
        groups = []
        rows = zip(self.task.figure_rows, self.make_configs(request.quick), self.create_tunings(request), strict=True)
        for row, config, tuning in rows:
            own = config.with_settings(**tuning.choose_settings())
            folder = self.choose_folder(request) / make_row_folder_name(row)
            seeds = range(self.count_row_trials(row, request))
            groups.append([create_or_open(folder / f"trial-{i:02d}", own.with_settings(seed=i)) for i in seeds])
        return groups

    def count_row_trials(self, row: FigureRow, request: Request) -> int:
        """Its own number, where it has one, unless another was asked for."""
        as_usual = request.trials is None and not request.quick
        return row.trials if row.trials and as_usual else self.count_trials(request)

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        named = [
            replace(group, label=format_row_label(format_label_with_start(group), row))
            for group, row in zip(groups, self.task.figure_rows, strict=True)
        ]
        tunings = zip(named, self.create_tunings(request), strict=True)
        tuned = [tuning.to_dict(group.label) for group, tuning in tunings if tuning.tries]
        command = request.format_command(self)
        short = fingerprint_short_run(self)
        return write_learning_curves_page(self.name, named, self.task, command, folder, tuned, short, self.notes)


def load_figures() -> dict[str, Figure]:
    """Those that are no task's: the modules beside this one announce theirs as FIGURES."""
    modules = [import_module(name) for name in FIGURE_MODULES]
    return {figure.name: figure for module in modules for figure in getattr(module, "FIGURES", ())}


def find_figure(name: str) -> Figure:
    """The figure of that name, or a `UsageError` that lists them all."""
    if name in list_task_names() and (task := find_task(name)).figure_rows:
        return LearningCurves(name, task, task.trials)
    drawn = [task.name for task in iter_tasks() if task.figure_rows]
    return load_figures()[check_known(name, "figure", [*drawn, *load_figures()])]


def format_label_with_start(group: TrialGroup) -> str:
    """Its label, with its start where it is not a random policy, be that usual for it or not."""
    start = group.runs[0].config.start.name
    return group.label if start == "random" or f"{start} start" in group.label else f"{group.label}, {start} start"


def format_row_label(label: str, row: FigureRow) -> str:
    """A row's name in a legend."""
    return f"{label}, {row.label_suffix}" if row.label_suffix and row.label_suffix not in label else label


def make_row_config(task: Task, row: FigureRow, quick: bool, budget: int = 0) -> Config:
    """The settings of a row; `quick`: with a fifth of the iterations, or a twentieth of the budget."""
    given = {"update": row.update, "policy": row.policy, "start": row.start, **row.settings}
    if budget:
        return resolve_config(task, row.method, **{**given, "budget": budget // 20 if quick else budget})
    config = resolve_config(task, row.method, **given)
    if not quick:
        return config
    return resolve_config(task, row.method, **{**given, "iterations": max(1, config.loop.iterations // 5)})


def make_row_folder_name(row: FigureRow) -> str:
    """The name of the folder of a row's runs."""
    varied = (name.replace("_", "-") for name in row.settings)
    return "-".join(filter(None, (row.method, row.update, row.policy, row.start, *varied)))


SHORT_RUN_SETTINGS = {  # as little of a trial as shows that its bits are the same
    **{"iterations": 2, "budget": 0, "validate_every": 1, "trajectories": 4},
    **{"validation_episodes": 4, "test_episodes": 4, "start_steps": 20, "demonstrations": 4},
}


def fingerprint_short_run(figure: Figure) -> JsonDict:
    """Two small iterations of its first row: whoever makes them again, on whatever machine, has the same weights."""
    config = figure.make_first_config()
    if config is None:
        return {}
    config = config.with_settings(
        **{name: value for name, value in SHORT_RUN_SETTINGS.items() if name in config.settings}
    )
    with TemporaryDirectory() as folder:
        result = Trainer(config).fit(Run.create(Path(folder) / "short", config))
    return {"settings": config.to_dict(), "weights_sha256": result.weights_sha256}
