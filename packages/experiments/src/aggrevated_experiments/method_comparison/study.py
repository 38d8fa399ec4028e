"""Methods side by side over something that is varied, at equal budgets: a figure, its numbers and its answer in words.

A trial that never reached the expert is a number, too: it is counted as later than all that were measured, and shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from aggrevated.config import Config
from aggrevated.config.resolver import resolve_config
from aggrevated.core.arrays import Array
from aggrevated.reports import Table, package_versions, write_page
from aggrevated.reports.comparison import TrialGroup, compared_quantity, relative_to_expert
from aggrevated.storage import JsonDict
from aggrevated.tasks import FigureRow, Task
from aggrevated.training.run_folder import Run, create_or_open, to_file_name
from aggrevated_experiments.figures import Figure, Request, fingerprint_short_run
from aggrevated_experiments.method_comparison.numbers import of_method
from aggrevated_experiments.method_comparison.page import Measure, draw, page, table
from aggrevated_experiments.method_comparison.summary_text import answer


@dataclass(frozen=True)
class Case:
    """One place on the axis: what is set there for all methods."""

    x: float
    label: str  # "L = 5"; also the name of the folder of its runs, so that no two cases may share one
    settings: Mapping[str, Any] = field(default_factory=dict)
    tick: str = ""  # what the axis says there; if nothing, x
    apart: bool = False  # not one in the row of the others: no line leads there


@dataclass(frozen=True)
class MethodStudy(Figure):
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

    def rows(self, request: Request) -> Sequence[FigureRow]:
        """Those of all cases, one case after the other."""
        return [row for _ in self.cases for row in self.methods.values()]

    def config(self, case: Case, row: FigureRow, quick: bool) -> Config:
        """The settings of a row in a case; `quick`: with a fifth of what it may spend."""
        given = {"update": row.update, "policy": row.policy, "start": row.start}
        given |= {**self.settings, **case.settings, **row.settings}
        config = resolve_config(self.task, row.method, **given)
        if not quick:
            return config
        least = {"iterations": config.loop.known_iterations} | config.loop.limits
        fewer = {name: max(1, most // 5) for name, most in least.items() if most}
        return resolve_config(self.task, row.method, **given | fewer)

    def first(self) -> Config:
        return self.config(self.cases[0], next(iter(self.methods.values())), quick=False)

    def runs(self, request: Request) -> list[list[Run]]:
        """Those of all methods in all cases, in folders by their labels."""
        groups = []
        seeds = range(self.trials_of(request))
        for case in self.cases:
            for label, row in self.methods.items():
                folder = self.folder(request) / in_a_path(case.label) / in_a_path(label)
                config = self.config(case, row, request.quick)
                groups.append([create_or_open(folder / f"trial-{i:02d}", config.with_settings(seed=i)) for i in seeds])
        return groups

    def final(self, group: TrialGroup) -> Array:
        """[trials]: how good the chosen policies are beside their expert, on fresh episodes."""
        return relative_to_expert(group)

    def measured(self, group: TrialGroup) -> str:
        """What `final` is: a ratio, or a gain."""
        return compared_quantity(group)

    def remarks(self, facts: JsonDict) -> list[str]:
        """What its page says besides, below the answer."""
        return []

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        """NAME.json, .png, .svg and .md."""
        facts = self.to_dict(groups, request)
        draw(self, facts, folder / self.name)
        write_page(folder, self.name, facts, page(self, facts))
        return table(self, facts, folder)

    def to_dict(self, groups: Sequence[TrialGroup], request: Request) -> JsonDict:
        """All numbers, and the answer that follows from them."""
        many = len(self.methods)
        found = []
        for number, case in enumerate(self.cases):
            beside = groups[number * many : (number + 1) * many]
            first = self.final(beside[0])
            named = zip(self.methods.items(), beside, strict=True)
            methods = [of_method(self, label, row, group, first) for (label, row), group in named]
            plain = {name: list(value) if isinstance(value, tuple) else value for name, value in case.settings.items()}
            found.append({"x": case.x, "label": case.label, "settings": plain, "methods": methods})
        used = [(case.label, label) for case in self.cases for label in self.methods]
        settings: JsonDict = {case.label: {} for case in self.cases}
        for (case_label, label), group in zip(used, groups, strict=True):
            settings[case_label][label] = group.runs[0].config.to_dict()
        return {
            "command": request.command(self),
            "versions": package_versions(("aggrevated", "torch", "numpy", *self.task.packages)),
            "seeds": [run.config.loop.seed for run in groups[0].runs],
            "title": self.title,
            "question": self.question,
            "answer": answer(self, found),
            "measure": self.measured(groups[0]),
            "within": self.within,
            "varied": self.varied,
            "cases": found,
            "settings": settings,
            "short": fingerprint_short_run(self),
        }


def in_a_path(label: str) -> str:
    """A label as the name of a folder."""
    return to_file_name(label).strip("-")
