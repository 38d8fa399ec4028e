"""Methods side by side over something that is varied, at equal budgets: a figure, its numbers and its answer in words.

A trial that never reached the expert is a number, too: it is counted as later than all that were measured, and shown.
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
        """NAME.json, .png, .svg and .md."""
        facts = self.to_dict(groups, request)
        plot_study(self, facts, folder / self.name)
        write_page(folder, self.name, facts, render_page(self, facts))
        return make_table(self, facts, folder)

    def to_dict(self, groups: Sequence[TrialGroup], request: Request) -> JsonDict:
        """All numbers, and the answer that follows from them."""
        many = len(self.methods)
        found = []
        for number, case in enumerate(self.cases):
            beside = groups[number * many : (number + 1) * many]
            first = self.compute_final_scores(beside[0])
            named = zip(self.methods.items(), beside, strict=True)
            methods = [summarize_method(self, label, row, group, first) for (label, row), group in named]
            plain = {name: list(value) if isinstance(value, tuple) else value for name, value in case.settings.items()}
            found.append({"x": case.x, "label": case.label, "settings": plain, "methods": methods})
        used = [(case.label, label) for case in self.cases for label in self.methods]
        settings: JsonDict = {case.label: {} for case in self.cases}
        for (case_label, label), group in zip(used, groups, strict=True):
            settings[case_label][label] = group.runs[0].config.to_dict()
        return {
            "command": request.format_command(self),
            "versions": get_package_versions(("aggrevated", "torch", "numpy", *self.task.packages)),
            "seeds": [run.config.loop.seed for run in groups[0].runs],
            "title": self.title,
            "question": self.question,
            "answer": describe_answer(self, found),
            "measure": self.get_measure_name(groups[0]),
            "within": self.within,
            "varied": self.varied,
            "cases": found,
            "settings": settings,
            "short": fingerprint_short_run(self),
        }
