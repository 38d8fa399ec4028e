"""`aggrevated compare`: several runs in one figure and one table."""

import os
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from aggrevated.cli.options import AnyPath, NewName


@dataclass(frozen=True)
class Compare:
    """Draw the learning curves of several runs in one figure and print one table. Trials of one folder become a band.

    Try:
      aggrevated compare runs/cartpole-aggrevated-natural runs/cartpole-reinforce-regular
      aggrevated compare runs/a runs/b runs/c --out comparison --json
    """

    command = "compare"
    run_folders: Positional[tuple[AnyPath, ...]]
    """Run folders, each of one run or of several trials, all of the same task."""
    out: NewName = Path("comparison")
    """Path of the figure, without its suffix; .png and .svg are written."""
    json: bool = False
    """Print the table as a JSON list of rows."""

    def run(self) -> None:
        """Draw the figure and print the table."""
        from aggrevated.cli.console import print_table
        from aggrevated.core.errors import UsageError
        from aggrevated.reports.comparison import TrialGroup, make_comparison_table, plot_groups
        from aggrevated.training.run_folder import list_runs

        if not self.run_folders:
            raise UsageError("compare needs at least one run folder: aggrevated compare RUN RUN ...")
        paths = [os.path.realpath(folder) for folder in self.run_folders]
        for folder, path in zip(self.run_folders, paths, strict=True):
            if paths.count(path) > 1:
                raise UsageError(f"{folder} is given twice; give it once")
        groups = [TrialGroup.from_runs(list_runs(folder), f"{folder.name}: ") for folder in self.run_folders]
        out = self.out.with_suffix("") if self.out.suffix in (".png", ".svg") else self.out
        plot_groups(groups, out)
        print_table(make_comparison_table(groups, f"figure: {out}.png and .svg"), self.json)
