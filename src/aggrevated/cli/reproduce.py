"""`aggrevated reproduce`: the paper's figures, from scratch."""

from dataclasses import dataclass, replace
from pathlib import Path

from tyro.conf import Positional

from aggrevated.cli.options import Folder, TaskName, Whole

PARSING = ("table1", "parsing-curves", "real-ink")


@dataclass(frozen=True)
class Reproduce:
    """Run the paper's protocol for a figure or table: every method, several trials each, then figure, table and page.

    Stopped and started again with the same --out, it goes on where it was.

    Try:
      aggrevated reproduce cartpole
      aggrevated reproduce acrobot --quick --json
      aggrevated reproduce table1
    """

    figure: Positional[TaskName]
    """cartpole, acrobot, acrobot-partial, hopper, walker, theory (all experiments of 'aggrevated theory'), table1,
    parsing-curves (with the runs of table1), or real-ink (with --crohme)."""
    quick: bool = False
    """A fifth of the iterations (theory: its small settings): to see that everything works, not for numbers."""
    trials: Whole = None
    """Trials per method; trial i has seed i. Default: 10 (hopper and walker: 5, parsing: 3), or 2 with --quick."""
    workers: Whole = None
    """How many runs side by side; default: one per core. It changes nothing in the result."""
    crohme: Folder = None
    """real-ink: CROHME's InkML files, in train/ and dev/."""
    out: Folder = None
    """Where the runs go; default: runs/reproduce-FIGURE."""
    report: Folder = None
    """Where FIGURE.json, .png, .svg and .md go; default: beside the runs."""
    json: bool = False
    """Print the table as a JSON list of rows."""

    def run(self) -> None:
        """Run what is missing, and report."""
        from aggrevated.errors import UsageError
        from aggrevated.experiments import control_tasks
        from aggrevated.runs.config import known, require

        known(self.figure, "figure", (*control_tasks(), "theory", *PARSING))
        require(self.trials is None or self.trials >= 1, "trials", self.trials, "at least 1")
        require(self.workers is None or self.workers >= 1, "workers", self.workers, "at least 1")
        if (self.crohme is not None) != (self.figure == "real-ink"):
            raise UsageError("--crohme is for 'aggrevated reproduce real-ink', which needs it, and for nothing else")
        if self.figure == "theory":
            self._theory()
        elif self.figure in PARSING:
            self._parsing()
        else:
            self._control()

    def _trials(self, usual: int) -> int:
        return (2 if self.quick else usual) if self.trials is None else self.trials

    def _folder(self, name: str) -> Path:
        return self.out or Path("runs") / f"reproduce-{name}{'-quick' if self.quick else ''}"

    def _command(self, trials: int) -> str:
        data = "" if self.crohme is None else f" --crohme {self.crohme.name}"
        return f"aggrevated reproduce {self.figure}{data}{' --quick' if self.quick else ''} --trials {trials}"

    def _control(self) -> None:
        from aggrevated.cli.jobs import run_all
        from aggrevated.cli.output import print_table
        from aggrevated.experiments import control_tasks
        from aggrevated.runs.report import Group, write_report
        from aggrevated.runs.reproduction import runs_of

        task = control_tasks()[self.figure]
        trials, folder = self._trials(task.trials), self._folder(task.name)
        groups = runs_of(task, task.figure, folder, trials, self.quick)
        run_all([run for runs in groups for run in runs], self.workers)
        table = write_report([Group.of(runs) for runs in groups], task, self._command(trials), self.report or folder)
        print_table(table, self.json, f"figure and page: {self.report or folder}/{task.name}.png and .md")

    def _parsing(self) -> None:
        from aggrevated.cli.jobs import run_all
        from aggrevated.cli.output import print_scores
        from aggrevated.errors import UsageError
        from aggrevated.experiments.algebra import CURVES, REAL_INK, TABLE1, TASK
        from aggrevated.runs.parses import evaluate_parser
        from aggrevated.runs.parsing_report import NOT_THE_SAME, ON_REAL_INK, write_curves, write_table
        from aggrevated.runs.report import Group
        from aggrevated.runs.reproduction import runs_of

        rows = {"table1": TABLE1, "parsing-curves": CURVES, "real-ink": REAL_INK}[self.figure]
        if self.crohme is not None:
            if not all((self.crohme / part).is_dir() for part in ("train", "dev")):
                raise UsageError(f"{self.crohme} has no train/ and dev/; give the folder that has both")
            real = {"crohme": str(self.crohme.resolve())}
            from_real = [replace(row, settings={**row.settings, **real}) for row in rows]
            rows = (*from_real, rows[0])  # and the first from generated ink only
        trials = self._trials(TASK.trials)
        folder = self._folder("table1" if self.figure == "parsing-curves" else self.figure)
        runs = runs_of(TASK, rows, folder, trials, self.quick)
        run_all([run for group in runs for run in group], self.workers)
        groups = [Group.of(group) for group in runs]
        path, command = (self.report or folder) / self.figure, self._command(trials)
        closing = f"figure: {path}.png and .svg"
        if self.figure == "parsing-curves":
            print_scores(write_curves(groups, command, path), self.json, closing)
            return
        if self.crohme is None:
            measured = [group.results for group in groups]
            title, notes = "Table 1 of the paper, on generated pages", NOT_THE_SAME
        else:
            measured = [[evaluate_parser(run, self.crohme) for run in group.runs] for group in groups]
            title, notes = "Real ink: CROHME's core expressions by other writers", ON_REAL_INK
        print_scores(write_table(groups, rows, measured, command, path, title, [notes]), self.json, closing)

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
