"""Specification of a method comparison: cases, methods, and how policies are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from aggrevated.config import Config
from aggrevated.config.resolver import resolve_config
from aggrevated.core.arrays import Array
from aggrevated.reports.comparison import TrialGroup, compute_relative_to_expert, describe_compared_quantity
from aggrevated.storage import JsonDict
from aggrevated.tasks import FigureRow, Task
from aggrevated.training.run_folder import Run, create_or_open, to_file_name
from aggrevated_experiments.figures import Figure, Request

Measure = Literal["final", "steps"]


@dataclass(frozen=True)
class Case:
    """One position on the axis, with its settings for all methods.

    Attributes:
        x: position on the axis.
        label: name in tables and of the folder of its runs, such as "L = 5"; unique within a study.
        settings: settings of this case.
        tick: text on the axis; empty for x.
        apart: draw no line to this case.
    """

    x: float
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    tick: str = ""
    apart: bool = False


@dataclass(frozen=True)
class StudySpec(Figure):
    """All methods in all cases, with the same seeds; other methods are compared with the first.

    Attributes:
        name: name of the study and of its files.
        title: title of page and figure.
        question: one sentence with a question mark.
        task: the task of all cases.
        varied: label of the axis.
        cases: the cases, in the order of the axis.
        methods: the methods, by their names in the legend.
        settings: settings of all methods and cases, such as the budget.
        trials: trials of each method in each case.
        measures: the panels of the figure.
        tells: the parts of the answer.
        within: tolerance, as ratio or gain, for having reached the expert.
        log_x: whether the axis is logarithmic.
        lines: lines of theory by measure and label.
        notes: further paragraphs of the page.
    """

    name: str
    title: str
    question: str
    task: Task
    varied: str
    cases: tuple[Case, ...]
    methods: Mapping[str, FigureRow]
    settings: Mapping[str, Any] = field(default_factory=dict)
    trials: int = 5
    measures: tuple[Measure, ...] = ("final", "steps")
    tells: tuple[Literal["reached", "difference"], ...] = ("reached",)
    within: float = 0.0
    log_x: bool = False
    lines: Mapping[Measure, Mapping[str, Callable[[Case], float]]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def list_rows(self, request: Request) -> Sequence[FigureRow]:
        """Return the rows of all cases, case by case."""
        return [row for _ in self.cases for row in self.methods.values()]

    def make_config(self, case: Case, row: FigureRow, quick: bool) -> Config:
        """Return the config of a row in a case; `quick` divides all limits by five."""
        settings = {"update": row.update, "policy": row.policy, "start": row.start}
        settings |= {**self.settings, **case.settings, **row.settings}
        config = resolve_config(self.task, row.method, **settings)
        if not quick:
            return config
        limits = {"iterations": config.loop.known_iterations} | config.loop.limits
        quick_limits = {name: max(1, limit // 5) for name, limit in limits.items() if limit}
        return resolve_config(self.task, row.method, **settings | quick_limits)

    def make_first_config(self) -> Config:
        return self.make_config(self.cases[0], next(iter(self.methods.values())), quick=False)

    def create_runs(self, request: Request) -> list[list[Run]]:
        """Return the runs of all methods in all cases, in folders named by their labels."""
        groups = []
        seeds = range(self.count_trials(request))
        for case in self.cases:
            for label, row in self.methods.items():
                folder = self.choose_folder(request) / to_label_folder_name(case.label) / to_label_folder_name(label)
                config = self.make_config(case, row, request.quick)
                groups.append([create_or_open(folder / f"trial-{i:02d}", config.with_settings(seed=i)) for i in seeds])
        return groups

    def compute_final_scores(self, group: TrialGroup) -> Array:
        """Return the test score of each trial's best policy relative to its expert, [trials]."""
        return compute_relative_to_expert(group)

    def get_measure_name(self, group: TrialGroup) -> str:
        """Return the kind of the final score: "ratio" or "gain"."""
        return describe_compared_quantity(group)

    def render_remarks(self, results: JsonDict) -> list[str]:
        """Return further paragraphs below the answer."""
        return []


def to_label_folder_name(label: str) -> str:
    """Return a label as the name of a folder."""
    return to_file_name(label).strip("-")
