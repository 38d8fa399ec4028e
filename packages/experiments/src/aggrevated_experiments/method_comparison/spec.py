"""What a study of methods side by side is asked to do: cases, methods, and how policies are compared."""

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
    """One place on the axis: what is set there for all methods."""

    x: float
    label: str  # "L = 5"; also the name of the folder of its runs, so that no two cases may share one
    settings: Mapping[str, Any] = field(default_factory=dict)
    tick: str = ""  # what the axis says there; if nothing, x
    apart: bool = False  # not one in the row of the others: no line leads there


@dataclass(frozen=True)
class StudySpec(Figure):
    """All methods in all cases, five trials each. Cases and methods are named, and the first method is compared to."""

    name: str
    title: str
    question: str  # one sentence, with a question mark
    task: Task
    varied: str  # of the axis
    cases: tuple[Case, ...]
    methods: Mapping[str, FigureRow]  # by what the legend calls them
    settings: Mapping[str, Any] = field(default_factory=dict)  # common to all, such as the budget
    trials: int = 5
    measures: tuple[Measure, ...] = ("final", "steps")
    tells: tuple[Literal["reached", "difference"], ...] = ("reached",)  # what the answer is made of
    within: float = 0.0  # of the expert, in ratios or in gains: what counts as having reached it
    log_x: bool = False
    lines: Mapping[Measure, Mapping[str, Callable[[Case], float]]] = field(default_factory=dict)  # of theory
    notes: tuple[str, ...] = ()  # further paragraphs of its page

    def list_rows(self, request: Request) -> Sequence[FigureRow]:
        """Those of all cases, one case after the other."""
        return [row for _ in self.cases for row in self.methods.values()]

    def make_config(self, case: Case, row: FigureRow, quick: bool) -> Config:
        """The settings of a row in a case; `quick`: with a fifth of what it may spend."""
        given = {"update": row.update, "policy": row.policy, "start": row.start}
        given |= {**self.settings, **case.settings, **row.settings}
        config = resolve_config(self.task, row.method, **given)
        if not quick:
            return config
        least = {"iterations": config.loop.known_iterations} | config.loop.limits
        fewer = {name: max(1, most // 5) for name, most in least.items() if most}
        return resolve_config(self.task, row.method, **given | fewer)

    def make_first_config(self) -> Config:
        return self.make_config(self.cases[0], next(iter(self.methods.values())), quick=False)

    def create_runs(self, request: Request) -> list[list[Run]]:
        """Those of all methods in all cases, in folders by their labels."""
        groups = []
        seeds = range(self.count_trials(request))
        for case in self.cases:
            for label, row in self.methods.items():
                folder = self.choose_folder(request) / to_label_folder_name(case.label) / to_label_folder_name(label)
                config = self.make_config(case, row, request.quick)
                groups.append([create_or_open(folder / f"trial-{i:02d}", config.with_settings(seed=i)) for i in seeds])
        return groups

    def compute_final_scores(self, group: TrialGroup) -> Array:
        """[trials]: how good the chosen policies are beside their expert, on fresh episodes."""
        return compute_relative_to_expert(group)

    def get_measure_name(self, group: TrialGroup) -> str:
        """What `final` is: a ratio, or a gain."""
        return describe_compared_quantity(group)

    def render_remarks(self, facts: JsonDict) -> list[str]:
        """What its page says besides, below the answer."""
        return []


def to_label_folder_name(label: str) -> str:
    """A label as the name of a folder."""
    return to_file_name(label).strip("-")
