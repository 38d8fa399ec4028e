"""Conducting a sweep: its rounds one after the other, with progress on standard error, and a report at the end."""

from collections.abc import Sequence

from aggrevated.cli.console import print_note, print_table
from aggrevated.cli.options import EngineOptions
from aggrevated.cli.run_jobs import print_resume_hint_on_interrupt, run_on_engine
from aggrevated.core.errors import AggrevatedError
from aggrevated.reports.sweeps import write_report
from aggrevated.sweeps.search import ROUND
from aggrevated.sweeps.sweep import FailureCallback, Sweep
from aggrevated.training.run_folder import Run


def run_sweep_to_end(sweep: Sweep, as_json: bool, where: EngineOptions, ignore_numerics: bool = False) -> None:
    """Make the trials that are missing, write the report, and print it."""
    asked = sweep.asked
    print_note(f"sweep: {sweep.folder}, {asked.search}, up to {asked.trials} trials, {asked.seeds} runs each")

    go_on = print_resume_hint_on_interrupt(f"aggrevated resume {sweep.folder}")
    with go_on, where.build(asked.seeds * min(asked.trials, ROUND)) as engine:

        def run_them(runs: Sequence[Run], failed: FailureCallback) -> None:
            run_on_engine(engine, runs, ignore_numerics, failed, where.log)

        for after in sweep.rounds(run_them):
            for sentence in describe_failures(after, sweep):
                print_note(sentence)
            sweep = after
            print_note(describe_sweep_progress(sweep))
    if sweep.best is None:
        first = next(trial.failed for trial in sweep.trials)
        raise AggrevatedError(f"all {len(sweep.trials)} trials of {sweep.folder} failed; the first: {first}")
    print_table(write_report(sweep), as_json, {"sweep": str(sweep.folder), **sweep.to_dict()})


def describe_failures(sweep: Sweep, before: Sweep) -> list[str]:
    """What there is to say of trials that failed since then."""
    known = {trial.number for trial in before.trials if trial.failed}
    failed = (trial for trial in sweep.trials if trial.failed and trial.number not in known)
    return [f"trial {trial.number:03d} failed: {trial.failed}" for trial in failed]


def describe_sweep_progress(sweep: Sweep) -> str:
    """How far it is, in a line."""
    ended = f"{sum(trial.ended for trial in sweep.trials)}/{sweep.asked.trials} trials"
    best = sweep.best
    if best is None or best.score is None:
        return f"{ended}: all failed so far"
    digits = sweep.asked.found.problem.digits
    return (
        f"{ended}: best so far trial {best.number:03d}, {sweep.asked.found.problem.metric_name} {best.score:.{digits}f}"
    )
