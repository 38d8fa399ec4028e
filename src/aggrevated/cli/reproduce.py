"""`aggrevated reproduce`: the paper's figures, from scratch."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from aggrevated.cli.options import Folder, TaskName, Whole


@dataclass(frozen=True)
class Reproduce:
    """Run the paper's protocol for a figure: every method, several trials each, then figure, table and page.

    Stopped and started again with the same --out, it goes on where it was.

    Try:
      aggrevated reproduce cartpole
      aggrevated reproduce acrobot --quick --json
    """

    figure: Positional[TaskName]
    """cartpole, acrobot, acrobot-partial, hopper, walker or theory (all experiments of 'aggrevated theory')."""
    quick: bool = False
    """A fifth of the iterations (theory: its small settings): to see that everything works, not for numbers."""
    trials: Whole = None
    """Trials per method; trial i has seed i. Default: 10 (hopper and walker: 5), or 2 with --quick."""
    workers: Whole = None
    """How many runs side by side; default: one per core. It changes nothing in the result."""
    out: Folder = None
    """Where the runs go; default: runs/reproduce-FIGURE."""
    report: Folder = None
    """Where FIGURE.json, .png, .svg and .md go; default: beside the runs."""
    json: bool = False
    """Print the table as a JSON list of rows."""

    def run(self) -> None:
        """Run what is missing, and report."""
        from aggrevated.cli.jobs import run_all
        from aggrevated.cli.output import print_table
        from aggrevated.experiments import control_tasks
        from aggrevated.runs.config import known, require
        from aggrevated.runs.report import Group, write_report
        from aggrevated.runs.reproduction import runs_of

        if self.figure == "theory":
            self._theory()
            return
        task = control_tasks()[known(self.figure, "figure", (*control_tasks(), "theory"))]
        trials = (2 if self.quick else task.trials) if self.trials is None else self.trials
        require(trials >= 1, "trials", trials, "at least 1")
        require(self.workers is None or self.workers >= 1, "workers", self.workers, "at least 1")
        folder = self.out or Path("runs") / f"reproduce-{task.name}{'-quick' if self.quick else ''}"
        groups = runs_of(task, folder, trials=trials, quick=self.quick)
        run_all([run for runs in groups for run in runs], self.workers)
        command = f"aggrevated reproduce {task.name}{' --quick' if self.quick else ''} --trials {trials}"
        table = write_report([Group.of(runs) for runs in groups], task, command, self.report or folder)
        print_table(table, self.json, f"figure and page: {self.report or folder}/{task.name}.png and .md")

    def _theory(self) -> None:
        from aggrevated.cli.output import note, print_list
        from aggrevated.errors import UsageError
        from aggrevated.runs.theory import reproduce_theory

        if self.out and self.report:
            raise UsageError("theory has no runs, only its report; give --report or --out, not both")
        for name in ("trials", "workers"):
            if getattr(self, name) is not None:
                raise UsageError(f"--{name} has no effect on theory; use 'aggrevated theory' for settings of your own")
        folder = self.report or self.out or Path("runs") / f"reproduce-theory{'-quick' if self.quick else ''}"
        facts = reproduce_theory(folder, self.quick, note)
        print_list(facts, self.json, f"figures and page: {folder}/theory.md")
