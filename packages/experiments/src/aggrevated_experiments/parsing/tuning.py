"""Tuning before Table 1: settings of its rows on other pages, scored on validation pages only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aggrevated.core.errors import DataError
from aggrevated.storage import JsonDict
from aggrevated.tasks import FigureRow, Task
from aggrevated.training.run_folder import Run, create_or_open
from aggrevated_experiments.figures import make_row_config, make_row_folder_name

SEEDS = (100, 101)  # seeds and data seeds that no trial has


@dataclass(frozen=True)
class RowTuning:
    """The tuning runs of one row: its own settings, and changes of them."""

    row: FigureRow
    changes: Sequence[Mapping[str, Any]]  # the first is empty
    runs: Sequence[Sequence[Run]]  # by change, the runs of all seeds

    @classmethod
    def create(cls, task: Task, row: FigureRow, changes: Sequence[Mapping[str, Any]], folder: Path) -> RowTuning:
        """Return the tuning with half of the iterations; runs that exist in the folder are opened."""
        runs = []
        for i, changed in enumerate(changes):
            settings = {**row.settings, **changed}
            shorter = replace(row, settings=settings | {"iterations": settings["iterations"] // 2})
            config = make_row_config(task, shorter, quick=False)
            change_folder = folder / f"{make_row_folder_name(replace(row, settings={}))}-{i}"
            runs.append(
                [create_or_open(change_folder / f"trial-{j}", config.with_settings(seed=j, data_seed=j)) for j in SEEDS]
            )
        return cls(row, changes, runs)

    def read_scores(self) -> list[list[float]]:
        """Return the best UAS on validation pages, by change and seed."""
        return [[read_best_return(run) for run in runs] for runs in self.runs]

    def choose_row(self) -> FigureRow:
        """Return the row with the best changes on average; the first of equal ones."""
        best = int(np.argmax([np.mean(scores) for scores in self.read_scores()]))
        return replace(self.row, settings={**self.row.settings, **self.changes[best]})

    def to_dict(self, label: str) -> JsonDict:
        """Return each tried change with its seeds and scores."""
        chosen = self.choose_row()
        tried = [
            {
                "settings": {**self.row.settings, **changed},
                "validation_uas": scores,
                "pages_after_the_start": count_pages(runs),
            }
            for changed, scores, runs in zip(self.changes, self.read_scores(), self.runs, strict=True)
        ]
        return {"label": label, "seeds": list(SEEDS), "tried": tried, "chosen": dict(chosen.settings)}


def read_best_return(run: Run) -> float:
    """Return the best return of a run.

    Raises:
        DataError: the run has not ended.
    """
    result = run.result()
    if result is None:
        raise DataError(f"{run.folder} has not ended; finish it with 'aggrevated resume {run.folder}'")
    return result.best_return


def count_pages(runs: Sequence[Run]) -> int:
    """Return the number of pages learned from."""
    loop = runs[0].config.loop
    return loop.iterations * loop.trajectories
