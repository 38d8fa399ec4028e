"""What is tried before Table 1 is made: settings of its rows on other pages, judged on validation pages only."""

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

SEEDS = (100, 101)  # and data seeds: of no trial


@dataclass(frozen=True)
class RowTuning:
    """What is tried for one row: its settings as they are, and with changes."""

    row: FigureRow
    changes: Sequence[Mapping[str, Any]]  # the first are none
    runs: Sequence[Sequence[Run]]  # for each of them those of all seeds

    @classmethod
    def create(cls, task: Task, row: FigureRow, changes: Sequence[Mapping[str, Any]], folder: Path) -> RowTuning:
        """The runs, with half of the iterations; those that are in the folder already are taken up where they are."""
        runs = []
        for i, changed in enumerate(changes):
            settings = {**row.settings, **changed}
            shorter = replace(row, settings=settings | {"iterations": settings["iterations"] // 2})
            config = make_row_config(task, shorter, quick=False)
            own = folder / f"{make_row_folder_name(replace(row, settings={}))}-{i}"
            runs.append([create_or_open(own / f"trial-{j}", config.with_settings(seed=j, data_seed=j)) for j in SEEDS])
        return cls(row, changes, runs)

    def read_scores(self) -> list[list[float]]:
        """The best UAS on validation pages, of every change with every seed."""
        return [[read_best_return(run) for run in runs] for runs in self.runs]

    def choose_row(self) -> FigureRow:
        """The row with the changes that did best on average; of equals the first."""
        best = int(np.argmax([np.mean(scores) for scores in self.read_scores()]))
        return replace(self.row, settings={**self.row.settings, **self.changes[best]})

    def to_dict(self, label: str) -> JsonDict:
        """All that was tried, on which seeds, and what came of it."""
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
    """Of a run that has ended."""
    result = run.result()
    if result is None:
        raise DataError(f"{run.folder} has not ended; finish it with 'aggrevated resume {run.folder}'")
    return result.best_return


def count_pages(runs: Sequence[Run]) -> int:
    """How many were learned from."""
    loop = runs[0].config.loop
    return loop.iterations * loop.trajectories
