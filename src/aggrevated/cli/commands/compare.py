"""`aggrevated compare`: several runs in one figure and one table."""

import os
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from aggrevated.cli.options import AnyPath, NewName


@dataclass(frozen=True)
class Compare:
    """Draw the learning curves of several runs in one figure, and print one table. Trials of one folder become a band.

    Try:
      aggrevated compare runs/cartpole-aggrevated-natural runs/cartpole-reinforce-regular
      aggrevated compare runs/a runs/b runs/c --out comparison --json
    """

    command = "compare"
    run_folders: Positional[tuple[AnyPath, ...]]
    """Folders that 'aggrevated train' made, each of one run or of several trials, all of one task."""
    out: NewName = Path("comparison")
    """The figure is written here, with the endings .png and .svg."""
    json: bool = False
    """Print the table as a JSON list of rows."""

    def run(self) -> None:
        """Compare, and print the table."""
        from aggrevated.cli.console import print_table
        from aggrevated.core.errors import UsageError
        from aggrevated.reports.comparison import TrialGroup, make_comparison_table, plot_groups
        from aggrevated.training.run_folder import list_runs

        if not self.run_folders:
            raise UsageError("compare needs at least one run folder: aggrevated compare RUN RUN ...")
        places = [os.path.realpath(folder) for folder in self.run_folders]
        for folder, place in zip(self.run_folders, places, strict=True):
            if places.count(place) > 1:
                raise UsageError(f"{folder} is named twice, and a run beside itself tells nothing; name it once")
        groups = [TrialGroup.from_runs(list_runs(folder), f"{folder.name}: ") for folder in self.run_folders]
        out = self.out.with_suffix("") if self.out.suffix in (".png", ".svg") else self.out
        plot_groups(groups, out)
        print_table(make_comparison_table(groups, f"figure: {out}.png and .svg"), self.json)
