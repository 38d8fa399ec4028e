"""Comparison of methods at equal budgets over a varied setting: figure, numbers and an answer in words.

A trial that never reached the expert counts as later than all that did, and is drawn in the figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aggrevated.reports import Table, get_package_versions, write_page
from aggrevated.reports.comparison import TrialGroup
from aggrevated.storage import JsonDict
from aggrevated_experiments.figures import Request, fingerprint_short_run
from aggrevated_experiments.method_comparison.numbers import summarize_method
from aggrevated_experiments.method_comparison.page import make_table, plot_study, render_page
from aggrevated_experiments.method_comparison.spec import StudySpec
from aggrevated_experiments.method_comparison.summary_text import describe_answer


@dataclass(frozen=True)
class MethodStudy(StudySpec):
    """A study that writes its numbers, figure and page."""

    def write(self, groups: Sequence[TrialGroup], request: Request, folder: Path) -> Table:
        """Write NAME.json, .png, .svg and .md, and return the table."""
        results = self.to_dict(groups, request)
        plot_study(self, results, folder / self.name)
        write_page(folder, self.name, results, render_page(self, results))
        return make_table(self, results, folder)

    def to_dict(self, groups: Sequence[TrialGroup], request: Request) -> JsonDict:
        """Return all numbers, and the answer that follows from them."""
        n_methods = len(self.methods)
        cases = []
        for number, case in enumerate(self.cases):
            case_groups = groups[number * n_methods : (number + 1) * n_methods]
            first = self.compute_final_scores(case_groups[0])
            rows = zip(self.methods.items(), case_groups, strict=True)
            methods = [summarize_method(self, label, row, group, first) for (label, row), group in rows]
            case_settings = {
                name: list(value) if isinstance(value, tuple) else value for name, value in case.settings.items()
            }
            cases.append({"x": case.x, "label": case.label, "settings": case_settings, "methods": methods})
        labels = [(case.label, label) for case in self.cases for label in self.methods]
        settings: JsonDict = {case.label: {} for case in self.cases}
        for (case_label, label), group in zip(labels, groups, strict=True):
            settings[case_label][label] = group.runs[0].config.to_dict()
        return {
            "command": request.format_command(self),
            "versions": get_package_versions(("aggrevated", "torch", "numpy", *self.task.packages)),
            "seeds": [run.config.loop.seed for run in groups[0].runs],
            "title": self.title,
            "question": self.question,
            "answer": describe_answer(self, cases),
            "measure": self.get_measure_name(groups[0]),
            "within": self.within,
            "varied": self.varied,
            "cases": cases,
            "settings": settings,
            "short": fingerprint_short_run(self),
        }
