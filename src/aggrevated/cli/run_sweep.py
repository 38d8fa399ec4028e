"""Conducting a sweep: its rounds one after the other, with progress on standard error, and a report at the end."""

from collections.abc import Sequence

from aggrevated.cli.engine_options import EngineOptions
from aggrevated.cli.output import note, print_table
from aggrevated.cli.run_jobs import going_on_with, run_by
from aggrevated.errors import AggrevatedError
from aggrevated.reports.sweeps import write_report
from aggrevated.sweeps.search import ROUND
from aggrevated.sweeps.sweep import Failed, Sweep
from aggrevated.training.run_folder import Run


def conduct(sweep: Sweep, as_json: bool, where: EngineOptions, anyway: bool = False) -> None:
    """Make the trials that are missing, write the report, and print it."""
    asked = sweep.asked
    note(f"sweep: {sweep.folder}, {asked.search}, up to {asked.trials} trials, {asked.seeds} runs each")

    go_on = going_on_with(f"aggrevated resume {sweep.folder}")
    with go_on, where.build(asked.seeds * min(asked.trials, ROUND)) as engine:

        def run_them(runs: Sequence[Run], failed: Failed) -> None:
            run_by(engine, runs, anyway, failed, where.log)

        for after in sweep.rounds(run_them):
            for sentence in failures(after, sweep):
                note(sentence)
            sweep = after
            note(so_far(sweep))
    if sweep.best is None:
        first = next(trial.failed for trial in sweep.trials)
        raise AggrevatedError(f"all {len(sweep.trials)} trials of {sweep.folder} failed; the first: {first}")
    print_table(write_report(sweep), as_json, {"sweep": str(sweep.folder), **sweep.facts()})


def failures(sweep: Sweep, before: Sweep) -> list[str]:
    """What there is to say of trials that failed since then."""
    known = {trial.number for trial in before.trials if trial.failed}
    failed = (trial for trial in sweep.trials if trial.failed and trial.number not in known)
    return [f"trial {trial.number:03d} failed: {trial.failed}" for trial in failed]


def so_far(sweep: Sweep) -> str:
    """How far it is, in a line."""
    ended = f"{sum(trial.ended for trial in sweep.trials)}/{sweep.asked.trials} trials"
    best = sweep.best
    if best is None or best.score is None:
        return f"{ended}: all failed so far"
    digits = sweep.asked.found.world.digits
    return f"{ended}: best so far trial {best.number:03d}, {sweep.asked.found.world.measured} {best.score:.{digits}f}"
