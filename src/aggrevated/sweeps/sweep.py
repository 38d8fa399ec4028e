"""A sweep: trials in a folder, in rounds. Stopped at any moment, it goes on to the same trials and the same best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aggrevated import __version__, storage
from aggrevated.config.builder import build_algorithm_inputs
from aggrevated.core.errors import AggrevatedError, DataError, StorageError, UsageError
from aggrevated.core.hardware import single_thread
from aggrevated.kernels.numerics import describe_numerics_difference, numerics_fingerprint
from aggrevated.sweeps.importance import importance
from aggrevated.sweeps.request import SweepRequest
from aggrevated.sweeps.search import ROUND, import_optuna, propose_next_round
from aggrevated.sweeps.trials import Trial, sort_best_first
from aggrevated.training.records import Result
from aggrevated.training.run_folder import Run, check_folder_unused, create_or_open, create_run_folder

RECORD = "sweep.json"
FailureCallback = Callable[[Run, AggrevatedError], None]  # is told of a run that failed
Runner = Callable[[Sequence[Run], FailureCallback], object]  # runs them all to their ends


@dataclass(frozen=True)
class Sweep:
    """A sweep's folder, what it was asked to do, and its trials so far."""

    folder: Path
    asked: SweepRequest
    trials: tuple[Trial, ...] = ()

    @classmethod
    def open(cls, folder: Path, ignore_numerics: bool = False, trust_code: bool = False) -> Sweep:
        """A sweep that exists; one begun where sums round otherwise is refused, but for `anyway`."""
        path = folder / RECORD
        facts = storage.load_checksummed_json(path, "restore it, or begin anew with another --out")
        if facts.get("version") != __version__ or not {"asked", "trials", "arithmetic"} <= set(facts):
            raise DataError(f"{path} is not of a sweep of version {__version__}; begin anew with another --out")
        elsewhere = describe_numerics_difference(facts["arithmetic"], numerics_fingerprint())
        if elsewhere and not ignore_numerics:
            remedy = f"go on there, or here with 'aggrevated resume {folder} --ignore-numerics'"
            raise DataError(f"{folder} was begun with {elsewhere}: trials made here are not to the bit; {remedy}")
        try:
            trials = tuple(map(Trial.read, facts["trials"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path} holds a trial that is none ({error!r}); restore it, or begin anew") from error
        return cls(folder, SweepRequest.read(facts["asked"], path, trust_code), trials)

    @property
    def best(self) -> Trial | None:
        """The trial with the best return on validation, mean over seeds."""
        return next(iter(sort_best_first(self.trials)), None)

    @property
    def importances(self) -> dict[str, float | None]:
        """How much each setting explains of the differences between trials."""
        return {one.name: importance(one, self.trials) for one in self.asked.varied}

    def to_dict(self) -> storage.JsonDict:
        """For sweep.json: what was asked, and what came of it."""
        best = self.best
        return {
            "version": __version__,
            "asked": self.asked.to_dict(),
            "best": None if best is None else best.to_dict() | {"command": self.asked.command(best.settings)},
            "importance": self.importances,
            "trials": [trial.to_dict() for trial in self.trials],
            "arithmetic": numerics_fingerprint(),
        }

    def write(self) -> Sweep:
        """Write sweep.json."""
        storage.save_checksummed_json(self.folder / RECORD, self.to_dict())
        return self

    def rounds(self, run_them: Runner) -> Iterator[Sweep]:
        """The sweep after each of its rounds, those that are over already included."""
        with storage.exclusive_lock(self.folder):
            storage.remove_temporary_files(self.folder)
            sweep = replace(self, trials=Sweep.open(self.folder, ignore_numerics=True).trials).write()
            for first in range(0, self.asked.trials, ROUND):
                sweep = sweep.asked_for(first)
                if len(sweep.trials) <= first:
                    break  # there is nothing new to try
                sweep = sweep.with_outcomes(sweep.trials[first : first + ROUND], run_them)
                yield sweep

    def asked_for(self, first: int) -> Sweep:
        """With the trials of the round that begins there, written down before any of them is run."""
        wanted = self.trials_of_round(first)
        if len(self.trials) >= wanted or len(self.trials) < first:  # all there, or the round before found no more
            return self
        settings = propose_next_round(self.asked, self.trials[:first])[len(self.trials) - first : wanted - first]
        new = [Trial(number, one) for number, one in enumerate(settings, start=len(self.trials))]
        return replace(self, trials=(*self.trials, *new)).write() if new else self

    def trials_of_round(self, first: int) -> int:
        """How many trials there are after the round that begins there."""
        return min(first + ROUND, self.asked.trials)

    def with_outcomes(self, trials: Sequence[Trial], run_them: Runner) -> Sweep:
        """With these trials run, and written down."""
        waiting = [trial for trial in trials if not trial.ended]
        if not waiting:
            return self
        runs, failed = self.prepared(waiting)

        def fail(run: Run, error: AggrevatedError) -> None:
            if isinstance(error, UsageError | StorageError):
                raise error  # it is not the trial's fault
            failed[run.folder] = str(error)

        unfinished = [run for some in runs.values() for run in some if run.result() is None]
        if unfinished:
            run_them(unfinished, fail)
        known = {trial.number: score_trial(trial, runs.get(trial.number, []), failed, self.folder) for trial in waiting}
        return replace(self, trials=tuple(known.get(trial.number, trial) for trial in self.trials)).write()

    def prepared(self, trials: Sequence[Trial]) -> tuple[dict[int, list[Run]], dict[Path, str]]:
        """(the runs of each trial by its number, the sentences of those that cannot even begin by their folder)."""
        runs = dict[int, list[Run]]()
        failed = dict[Path, str]()
        for trial in trials:
            try:
                config, _ = self.asked.resolved(trial.settings)
                with single_thread():
                    build_algorithm_inputs(config)
            except StorageError:
                raise
            except AggrevatedError as error:
                failed[self.folder / trial.name] = str(error)
                continue
            seeds = range(config.loop.seed, config.loop.seed + self.asked.seeds)
            folder = self.folder / trial.name
            runs[trial.number] = [create_or_open(folder / f"seed-{i}", config.with_settings(seed=i)) for i in seeds]
        return runs, failed


def score_trial(trial: Trial, runs: Sequence[Run], failed: Mapping[Path, str], folder: Path) -> Trial:
    """The trial with its returns or, if one of its runs failed, with the sentence of the first that did."""
    for place in (folder / trial.name, *(run.folder for run in runs)):
        if place in failed:
            return replace(trial, failed=failed[place])
    results = [load_result(run) for run in runs]
    best = (result.best_return for result in results)
    test = (result.more["test_return"] for result in results)
    return replace(trial, best_returns=tuple(best), test_returns=tuple(test))


def load_result(run: Run) -> Result:
    """Its result."""
    result = run.result()
    if result is None:
        raise DataError(f"{run.folder} has not ended; finish it with 'aggrevated resume {run.folder}'")
    return result


def create_or_open_sweep(folder: Path, asked: SweepRequest) -> Sweep:
    """The sweep in the folder, if it was asked for the same or for fewer trials; a new one if there is none."""
    if asked.search == "tpe":
        import_optuna()  # where it is missing, no folder is left behind
    if not (folder / RECORD).is_file():
        check_folder_unused(folder)
        sweep = Sweep(folder, asked)
        create_run_folder(folder, RECORD, sweep.to_dict())
        return sweep
    sweep = Sweep.open(folder)
    then = sweep.asked.to_dict()
    now = asked.to_dict()
    for name in (name for name in then if name != "trials" and then[name] != now[name]):
        raise UsageError(
            f"{folder} holds a sweep with {describe_request_difference(name, then[name], now[name])}; choose another --out"
        )
    if asked.trials < sweep.asked.trials:
        few = f"{folder} holds a sweep of {sweep.asked.trials} trials, more than the {asked.trials} asked for now"
        raise UsageError(f"{few}; leave --trials out, or choose another --out")
    return replace(sweep, asked=asked)


def describe_request_difference(name: str, then: Any, now: Any) -> str:
    """What is not as it was, in words."""
    return f"{name.replace('_', ' ')} {format_request_part(then)}, not {format_request_part(now)}"


def format_request_part(value: Any) -> str:
    """A part of what was asked, for people."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items()) or "nothing"
    return " and ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
