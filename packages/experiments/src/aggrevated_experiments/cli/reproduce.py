"""The command `aggrevated reproduce`: the paper's figures from scratch."""

from collections.abc import Container
from dataclasses import asdict, dataclass, field

from tyro.conf import Positional

from aggrevated.cli.options import EngineOptions, Folder, Integer, TaskName


@dataclass(frozen=True)
class Reproduce:
    """Run the paper's protocol for a figure or table: trials of each method, then figure, table and page.

    To continue after a stop, run the same command with the same --out.

    Try:
      aggrevated reproduce cartpole
      aggrevated reproduce acrobot --quick --json
      aggrevated reproduce table1
    """

    command = "reproduce"
    figure: Positional[TaskName]
    """A task with a figure in the paper (cartpole, acrobot, acrobot-partial, hopper, walker), theory
    (all experiments of it), table1, parsing-curves (from the runs of table1), real-ink (with --crohme),
    paper-hopper or paper-acrobot-partial (as the paper was run), pays-lock, pays-tree, pays-cliff, pays-keys,
    pays-packing or expert-strength (where it pays)."""
    quick: bool = False
    """A quick check with a small part of the budget and without tuning (theory: its small settings)."""
    trials: Integer = None
    """Trials per method; trial i has seed i. Default: 5 (cartpole, acrobot: AggreVaTeD 20), or 2 with --quick."""
    crohme: Folder = None
    """Folder of CROHME's InkML files, with train/ and dev/; for real-ink only."""
    out: Folder = None
    """Folder of the runs; default: runs/reproduce-FIGURE."""
    report: Folder = None
    """Folder of FIGURE.json, .png, .svg and .md; default: the folder of the runs."""
    json: bool = False
    """Print the table as a JSON list of rows."""
    where: EngineOptions = field(default_factory=EngineOptions)

    def run(self) -> None:
        """Run the missing trials, and write the report."""
        from aggrevated.cli.console import print_note, print_table
        from aggrevated.cli.run_jobs import run_all
        from aggrevated.core.settings import TRIALS
        from aggrevated.reports.comparison import TrialGroup
        from aggrevated_experiments.figures import Request, find_figure

        TRIALS.check("trials", 1 if self.trials is None else self.trials)
        figure = find_figure(self.figure)
        self._check_options_have_effect(figure.needs, bool(figure.trials))
        self.where.check(runs=2)
        request = Request(self.quick, self.trials, self.crohme, self.out, self.report, print_note)
        folder = figure.choose_folder(request)
        for stage in figure.iter_stages(request):
            with self.where.build(len(stage)) as engine:
                run_all(stage, engine, log=self.where.log)
        groups = [TrialGroup.from_runs(runs) for runs in figure.create_runs(request)]
        table = figure.write(groups, request, self.report or folder)
        print_table(table, self.json)

    def _check_options_have_effect(self, needs: Container[str], has_runs: bool) -> None:
        """Raise for an option that the figure needs but lacks, or that has no effect on it.

        Raises:
            UsageError: --crohme is missing or without effect, or an option is for figures with runs only.
        """
        from aggrevated.core.errors import UsageError
        from aggrevated.core.settings import to_flag

        if (self.crohme is not None) != ("crohme" in needs):
            raise UsageError(
                "--crohme is required by 'aggrevated reproduce real-ink' and has no effect on other figures"
            )
        options = {"trials": self.trials, **asdict(self.where)}
        for name, value in options.items():
            if value not in (None, ()) and not has_runs:
                raise UsageError(f"{to_flag(name)} has no effect on {self.figure}, which has no runs; leave it out")
