"""`aggrevated resume`: continue a run that was stopped."""

from dataclasses import dataclass, field

from tyro.conf import Positional

from aggrevated.cli.options import EngineOptions, Integer, RunFolder, Trust

LIMIT_NAMES = ("iterations", "budget", "queries")


@dataclass(frozen=True)
class Resume:
    """Resume a run from its last checkpoint. It ends with the same bits as if it had not been stopped.

    A sweep is resumed, too: it makes the same trials as if it had not been stopped.

    Try:
      aggrevated resume runs/cartpole-aggrevated-natural
      aggrevated resume runs/cartpole-aggrevated-natural --iterations 300 --json
      aggrevated resume runs/hopper-aggrevated-exponentiated --budget 100000
    """

    command = "resume"
    run_folder: Positional[RunFolder]
    """Folder of a run, of several trials, or of a sweep."""
    iterations: Integer = None
    """New number of iterations, in all; more than before."""
    budget: Integer = None
    """New limit on simulator steps, in all; more than before."""
    queries: Integer = None
    """New limit on oracle queries, in all; more than before."""
    ignore_numerics: bool = False
    """Resume even if this machine or its packages compute other bits than those that began the run."""
    trust_code: Trust = False
    json: bool = False
    """Print the result as one JSON object."""
    engine: EngineOptions = field(default_factory=EngineOptions)

    def run(self) -> None:
        """Resume the runs and print their results."""
        from aggrevated.cli.console import print_run_result
        from aggrevated.cli.run_jobs import print_resume_hint_on_interrupt, run_all
        from aggrevated.core.settings import to_flag
        from aggrevated.training.limits import extend_limits
        from aggrevated.training.run_folder import list_runs_to_resume

        if (self.run_folder / "sweep.json").is_file():
            self._resume_sweep()
            return
        more = {name: getattr(self, name) for name in LIMIT_NAMES}
        runs = [extend_limits(run, **more) for run in list_runs_to_resume(self.run_folder, self.trust_code)]
        options = "".join(f" {to_flag(name)} {value}" for name, value in more.items() if value is not None)
        options += " --trust-code" if self.trust_code else ""
        with (
            self.engine.build(len(runs)) as engine,
            print_resume_hint_on_interrupt(f"{self.run_folder}{options}"),
        ):
            results = run_all(runs, engine, self.ignore_numerics, log=self.engine.log)
        print_run_result(runs, results, self.run_folder, self.json)

    def _resume_sweep(self) -> None:
        """Make the missing trials and print the best."""
        from aggrevated.cli.commands.sweep import run_sweep_to_end
        from aggrevated.core.errors import UsageError
        from aggrevated.core.settings import to_flag
        from aggrevated.sweeps.sweep import Sweep

        for name in (name for name in LIMIT_NAMES if getattr(self, name) is not None):
            more = "for more trials, repeat 'aggrevated sweep' with more --trials"
            raise UsageError(f"{to_flag(name)} has no effect on {self.run_folder}, which is a sweep; {more}")
        run_sweep_to_end(
            Sweep.open(self.run_folder, self.ignore_numerics, self.trust_code),
            self.json,
            self.engine,
            self.ignore_numerics,
        )
