"""`aggrevated resume`: go on with a run that was stopped."""

from dataclasses import dataclass, field

from tyro.conf import Positional

from aggrevated.cli.options import EngineOptions, Integer, RunFolder, Trust

LIMIT_NAMES = ("iterations", "budget", "queries")


@dataclass(frozen=True)
class Resume:
    """Go on with a run from its last checkpoint. It ends with the same bits as if it had never stopped.

    A folder that 'aggrevated sweep' made goes on with its trials, to the same ones and to the same best.

    Try:
      aggrevated resume runs/cartpole-aggrevated-natural
      aggrevated resume runs/cartpole-aggrevated-natural --iterations 300 --json
      aggrevated resume runs/hopper-aggrevated-exponentiated --budget 100000
    """

    command = "resume"
    run_folder: Positional[RunFolder]
    """The folder that 'aggrevated train' made, of one run or of several trials; or that of a sweep."""
    iterations: Integer = None
    """Go on to this many iterations, more than were asked for at first."""
    budget: Integer = None
    """Go on until this many simulator steps are spent in all, more than before."""
    queries: Integer = None
    """Go on until the oracle was asked this often in all, more than before."""
    ignore_numerics: bool = False
    """Go on even where this machine or its packages compute other bits than those that began the run."""
    trust_code: Trust = False
    json: bool = False
    """Print the result as one JSON object."""
    where: EngineOptions = field(default_factory=EngineOptions)

    def run(self) -> None:
        """Resume, and print the result."""
        from aggrevated.cli.console import print_result
        from aggrevated.cli.run_jobs import print_resume_hint_on_interrupt, run_all
        from aggrevated.core.settings import to_flag
        from aggrevated.training.limits import extend_limits
        from aggrevated.training.run_folder import list_runs_to_resume

        if (self.run_folder / "sweep.json").is_file():
            self._resume_sweep()
            return
        more = {name: getattr(self, name) for name in LIMIT_NAMES}
        runs = [extend_limits(run, **more) for run in list_runs_to_resume(self.run_folder, self.trust_code)]
        asked = "".join(f" {to_flag(name)} {value}" for name, value in more.items() if value is not None)
        with self.where.build(len(runs)) as engine, print_resume_hint_on_interrupt(f"{self.run_folder}{asked}"):
            results = run_all(runs, engine, self.ignore_numerics, log=self.where.log)
        print_result(results, self.run_folder, self.json)

    def _resume_sweep(self) -> None:
        """Make the trials that are missing, and print the best."""
        from aggrevated.cli.commands.sweep import run_sweep_to_end
        from aggrevated.core.errors import UsageError
        from aggrevated.core.settings import to_flag
        from aggrevated.sweeps.sweep import Sweep

        for name in (name for name in LIMIT_NAMES if getattr(self, name) is not None):
            more = "more trials are 'aggrevated sweep' again, with more --trials"
            raise UsageError(f"{to_flag(name)} has no effect on {self.run_folder}, which is a sweep; {more}")
        run_sweep_to_end(
            Sweep.open(self.run_folder, self.ignore_numerics, self.trust_code),
            self.json,
            self.where,
            self.ignore_numerics,
        )
