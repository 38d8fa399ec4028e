"""What can be made again from scratch: every figure, table and page of docs/results, by name.

One mechanism for all: a figure names the runs that it needs, if any, and writes its report from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import ClassVar

from aggrevated.config import Config
from aggrevated.config.resolving import resolve
from aggrevated.reports import Table
from aggrevated.reports.control import write_report
from aggrevated.reports.groups import Group
from aggrevated.runs.run import Run, made_or_opened
from aggrevated.settings import known
from aggrevated.shelves import modules_in, task_names
from aggrevated.tasks import Row, Task, all_tasks, find_task


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    quick: bool = False
    trials: int | None = None  # of each row; None: as usual
    crohme: Path | None = None  # real ink
    out: Path | None = None  # of the runs
    report: Path | None = None
    note: Callable[[str], None] = lambda sentence: None

    def command(self, figure: Figure) -> str:
        """What to type to get it again, without places on this machine."""
        data = "" if self.crohme is None else f" --crohme {self.crohme.name}"
        trials = f" --trials {figure.trials_of(self)}" if figure.trials else ""
        return f"aggrevated reproduce {figure.name}{data}{' --quick' if self.quick else ''}{trials}"


class Figure(ABC):
    """What has a name and can be made again."""

    name: str
    task: Task  # of its rows
    trials: int = 0  # of each row, as usual; 0 where there are no runs
    runs_of: str = ""  # whose runs it uses, where they are not its own
    needs: ClassVar[tuple[str, ...]] = ()  # those options of a request that only some figures know, and it needs

    def rows(self, request: Request) -> Sequence[Row]:
        """What is to be run; nothing by default."""
        return ()

    @abstractmethod
    def write(self, groups: Sequence[Group], request: Request, folder: Path) -> Table:
        """Write the report into the folder, and give what is printed."""

    def trials_of(self, request: Request) -> int:
        return (2 if request.quick else self.trials) if request.trials is None else request.trials

    def folder(self, request: Request) -> Path:
        """Where its runs are."""
        return request.out or Path("runs") / f"reproduce-{self.runs_of or self.name}{'-quick' if request.quick else ''}"

    def runs(self, request: Request) -> list[list[Run]]:
        """The runs of its rows; those that are in the folder already are taken up where they are."""
        groups, trials = [], range(self.trials_of(request))
        for row in self.rows(request):
            config, folder = config_of(self.task, row, request.quick), self.folder(request) / folder_of(row)
            groups.append([made_or_opened(folder / f"trial-{i:02d}", config.replaced(seed=i)) for i in trials])
        return groups


@dataclass(frozen=True)
class LearningCurves(Figure):
    """The paper's figure of a task of control."""

    name: str
    task: Task
    trials: int

    def rows(self, request: Request) -> Sequence[Row]:
        return self.task.figure

    def write(self, groups: Sequence[Group], request: Request, folder: Path) -> Table:
        return write_report(groups, self.task, request.command(self), folder)


def figures() -> dict[str, Figure]:
    """Those that are no task's: the modules beside this one announce theirs as FIGURES."""
    modules = [import_module(name) for name in modules_in("aggrevated.reports")]
    return {figure.name: figure for module in modules for figure in getattr(module, "FIGURES", ())}


def find_figure(name: str) -> Figure:
    """The figure of that name, or a `UsageError` that lists them all."""
    if name in task_names() and (task := find_task(name)).figure:
        return LearningCurves(name, task, task.trials)
    drawn = [task.name for task in all_tasks() if task.figure]
    return figures()[known(name, "figure", [*drawn, *figures()])]


def config_of(task: Task, row: Row, quick: bool) -> Config:
    """The settings of a row; `quick`: with a fifth of the iterations."""
    given = {"update": row.update, "policy": row.policy, "start": row.start, **row.settings}
    config = resolve(task, row.method, **given)
    if not quick:
        return config
    return resolve(task, row.method, **{**given, "iterations": max(1, config.loop.iterations // 5)})


def folder_of(row: Row) -> str:
    """The name of the folder of a row's runs."""
    varied = (name.replace("_", "-") for name in row.settings)
    return "-".join(filter(None, (row.method, row.update, row.policy, row.start, *varied)))
