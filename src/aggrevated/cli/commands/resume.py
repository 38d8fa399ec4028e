"""`aggrevated resume`: go on with a run that was stopped."""

from dataclasses import dataclass, field, replace

from tyro.conf import Positional

from aggrevated.cli.engines import EngineOptions
from aggrevated.cli.options import Integer, RunFolder, Trust


@dataclass(frozen=True)
class Resume:
    """Go on with a run from its last checkpoint. It ends with the same bits as if it had never stopped.

    A folder that 'aggrevated sweep' made goes on with its trials, to the same ones and to the same best.

    Try:
      aggrevated resume runs/cartpole-aggrevated-natural
      aggrevated resume runs/cartpole-aggrevated-natural --iterations 300 --json
    """

    command = "resume"
    run_folder: Positional[RunFolder]
    """The folder that 'aggrevated train' made, of one run or of several trials; or that of a sweep."""
    iterations: Integer = None
    """Go on to this many iterations, more than were asked for at first."""
    anyway: bool = False
    """Go on even where this machine or its packages compute other bits than those that began the run."""
    trust: Trust = False
    json: bool = False
    """Print the result as one JSON object."""
    where: EngineOptions = field(default_factory=EngineOptions)

    def run(self) -> None:
        """Resume, and print the result."""
        from aggrevated.cli.jobs import going_on_with, run_all
        from aggrevated.cli.output import print_result
        from aggrevated.errors import UsageError
        from aggrevated.runs.trials import runs_to_resume
        from aggrevated.settings import require

        if (self.run_folder / "sweep.json").is_file():
            self._go_on_with_sweep()
            return
        runs = runs_to_resume(self.run_folder, self.trust)
        if self.iterations is not None:
            least = max(run.config.loop.iterations for run in runs)
            require(self.iterations >= least, "iterations", self.iterations, f"at least the {least} of the run")
            for run in runs:
                annealed = run.config.update.values().get("annealed", 0)
                if 0 < annealed < self.iterations:
                    raise UsageError(
                        f"the step size of {run.folder} has fallen to 0 after {annealed} iterations, and "
                        f"more change nothing; start a new run with --iterations {self.iterations}"
                    )
            runs = [replace(run, config=run.config.replaced(iterations=self.iterations)) for run in runs]
            for run in runs:
                run.config.check()
        longer = "" if self.iterations is None else f" --iterations {self.iterations}"
        with going_on_with(f"aggrevated resume {self.run_folder}{longer}"):
            results = run_all(runs, self.where, self.anyway)
        print_result(results, self.run_folder, self.json)

    def _go_on_with_sweep(self) -> None:
        """Make the trials that are missing, and print the best."""
        from aggrevated.cli.sweeping import conduct
        from aggrevated.errors import UsageError
        from aggrevated.sweeps.sweep import Sweep

        if self.iterations is not None:
            more = "more trials are 'aggrevated sweep' again, with more --trials"
            raise UsageError(f"--iterations has no effect on {self.run_folder}, which is a sweep; {more}")
        conduct(Sweep.open(self.run_folder, self.anyway, self.trust), self.json, self.where, self.anyway)
