"""Tuning of a page before its comparison: per row one setting with three values, on separate seeds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aggrevated.config import Config
from aggrevated.reports.comparison import make_cost_curve, mean_best_return
from aggrevated.storage import JsonDict
from aggrevated.tasks import ComparisonProtocol, FigureRow
from aggrevated.training.run_folder import Run, create_or_open

TRIED_FACTORS = (1.0, 1 / 3, 3.0)  # times the task's setting; of equal results the first wins


@dataclass(frozen=True)
class Tuning:
    """The tuning runs of one row.

    Attributes:
        setting: the tuned setting; empty for none.
        tries: the runs of all tuning seeds, by the value of the setting.
    """

    setting: str
    tries: dict[float, list[Run]]

    @classmethod
    def create(cls, row: FigureRow, config: Config, protocol: ComparisonProtocol, folder: Path) -> Tuning:
        """Return the tuning of a row with its runs; empty for a row without a tuned setting."""
        if not row.tuned_by:
            return cls("", {})
        budget = protocol.tuning_budget or protocol.budget
        values = [float(f"{config.settings[row.tuned_by] * factor:.3g}") for factor in TRIED_FACTORS]
        tries = {}
        for value in values:
            tried_config = config.with_settings(**{row.tuned_by: value, "budget": budget})
            value_folder = folder / f"{value:g}"
            tries[value] = [
                create_or_open(value_folder / f"trial-{i:02d}", tried_config.with_settings(seed=i))
                for i in protocol.tuning_seeds
            ]
        return cls(row.tuned_by, tries)

    @property
    def runs(self) -> list[Run]:
        """All tuning runs."""
        return [run for runs in self.tries.values() for run in runs]

    def compute_areas(self) -> dict[float, list[float]]:
        """Return the best return so far, averaged over the budget, by value and seed."""
        return {value: [compute_area(run) for run in runs] for value, runs in self.tries.items()}

    def choose_settings(self) -> dict[str, float]:
        """Return the setting with the best average over seeds."""
        areas = self.compute_areas()
        return {self.setting: max(areas, key=lambda value: float(np.mean(areas[value])))} if areas else {}

    def to_dict(self, label: str) -> JsonDict:
        """Return each tried setting with its seeds and results."""
        chosen = self.choose_settings().get(self.setting)
        tried = [
            {"value": value, "seeds": [run.config.loop.seed for run in self.tries[value]], "areas": areas}
            for value, areas in self.compute_areas().items()
        ]
        budget = self.runs[0].config.loop.budget
        return {"label": label, "setting": self.setting, "budget": budget, "tried": tried, "chosen": chosen}


def compute_area(run: Run) -> float:
    """Return the best return so far, averaged over the budget, of a run that has ended."""
    result = run.result()
    assert result is not None
    return mean_best_return(make_cost_curve(run, result), result.budget, result.initial_return)
