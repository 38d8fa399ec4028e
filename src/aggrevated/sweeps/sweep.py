"""Sweeps in folders: the request is in sweep.json, and the trials are an Optuna study in study.jsonl.

Trials are run in rounds. A round follows only from the sampler's seed and the trials of the rounds before it. It is
written down before it is run, and its trials are passed to Optuna in the order of their numbers. So neither workers
nor a stop change the trials, and a longer sweep begins like a shorter one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.storages.journal import BaseJournalBackend
from optuna.trial import FrozenTrial, TrialState, create_trial

from aggrevated import __version__, storage
from aggrevated.core.errors import AggrevatedError, DataError, StorageError, UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.kernels.numerics import compute_numerics_fingerprint, describe_numerics_difference
from aggrevated.sweeps.request import Params, SweepRequest
from aggrevated.training.run_folder import Run, check_folder_unused, create_or_open, create_run_folder
from aggrevated.training.trainer import Trainer

RECORD = "sweep.json"
JOURNAL = "study.jsonl"
TRIALS_PER_ROUND = 8  # trials that the sampler proposes at once
MAX_ATTEMPTS = 200  # proposals per round, to find trials that are new
COMPARED_FIELDS = ("state", "value", "distributions", "user_attrs")  # of a trial that is read from study.jsonl
FailureCallback = Callable[[Run, AggrevatedError], None]  # called for each run that failed
RoundCallback = Callable[[optuna.Study, Sequence[FrozenTrial]], None]  # called with the new trials of each round
Runner = Callable[[Sequence[Run], FailureCallback], object]  # trains all runs until they end


@dataclass(frozen=True)
class Sweep:
    """A sweep: its folder and its request."""

    folder: Path
    request: SweepRequest

    @classmethod
    def open(cls, folder: Path, ignore_numerics: bool = False, trust_code: bool = False) -> Sweep:
        """Open the folder of a sweep.

        Raises:
            DataError: The folder does not hold a sweep of this version, or this machine computes other bits and
                `ignore_numerics` is False.
        """
        path = folder / RECORD
        record = storage.load_checksummed_json(path, "restore it, or start a new sweep with another --out")
        if record.get("version") != __version__ or not {"request", "numerics"} <= set(record):
            remedy = "start a new sweep with another --out"
            raise DataError(f"{path} is not of a sweep of version {__version__}; {remedy}")
        difference = describe_numerics_difference(record["numerics"], compute_numerics_fingerprint())
        if difference and not ignore_numerics:
            remedy = f"resume it there, or here with 'aggrevated resume {folder} --ignore-numerics'"
            message = f"was started with {difference}: trials run here would have other bits"
            raise DataError(f"{folder} {message}; {remedy}")
        return cls(folder, SweepRequest.from_dict(record["request"], path, trust_code))

    def to_dict(self) -> storage.JsonDict:
        """Return the content of sweep.json."""
        return {"version": __version__, "request": self.request.to_dict(), "numerics": compute_numerics_fingerprint()}

    def run(self, run_all: Runner, show: RoundCallback) -> optuna.Study:
        """Run the missing trials, show those of each round, and return the study."""
        with storage.exclusive_lock(self.folder):
            storage.remove_temporary_files(self.folder)
            study = self.open_study()
            storage.save_checksummed_json(self.folder / RECORD, self.to_dict())  # the number of trials may have grown
            for first in range(0, self.request.trials, TRIALS_PER_ROUND):
                done = len(study.trials)
                if done < first:
                    break  # the round before found no more trials
                name = f"round {first // TRIALS_PER_ROUND}"
                if name not in study.user_attrs:
                    study.set_user_attr(name, propose_round(self.request, study.trials[:first]))
                if missing := study.user_attrs[name][done - first : self.request.trials - first]:
                    study.add_trials(self._run_trials(done, missing, run_all))
                    show(study, study.trials[done:])
            return study

    def open_study(self) -> optuna.Study:
        """Open the folder's study, or create it; raise a `DataError` if it is not of this sweep."""
        path = self.folder / JOURNAL
        try:
            study = optuna.create_study(
                storage=optuna.storages.JournalStorage(JournalBackend(path)),
                study_name="sweep",
                direction="maximize",
                load_if_exists=True,
            )
            for trial in study.trials:
                expected = self._make_trial(trial.params, **trial.user_attrs)
                if any(getattr(expected, name) != getattr(trial, name) for name in COMPARED_FIELDS):
                    raise ValueError(f"trial {trial.number} does not match {RECORD}")
            for params in chain.from_iterable(study.user_attrs.values()):
                self._make_trial(params, failed="not run yet")
        except StorageError:
            raise
        except Exception as error:  # Optuna uses the lines without checking them
            reason = storage.truncate_message(f"{type(error).__name__}: {error}".partition(";")[0])
            remedy = f"remove it and run 'aggrevated resume {self.folder}', which restores it from the runs"
            raise DataError(f"{path} does not hold the trials of this sweep ({reason}); {remedy}") from error
        return study

    def _run_trials(self, first: int, proposed: Sequence[Params], run_all: Runner) -> list[FrozenTrial]:
        """Run the proposed trials, numbered from `first` on, and return them for Optuna."""
        folders = [self.folder / f"trial-{number:03d}" for number in range(first, first + len(proposed))]
        failed = dict[Path, str]()  # by the trial's folder: the error of its first run that failed

        def record_failure(run: Run, error: AggrevatedError) -> None:
            if isinstance(error, UsageError | StorageError):
                raise error  # not caused by the settings of the trial
            failed.setdefault(run.folder.parent, str(error))

        runs = dict[Path, list[Run]]()
        for folder, params in zip(folders, proposed, strict=True):
            try:
                config, _ = self.request.resolve(self.request.to_settings(params))
                Trainer(config).build()  # a trial that cannot be built leaves no folder
            except UsageError as error:  # settings that cannot be combined
                failed[folder] = str(error)
                continue
            seeds = range(config.loop.seed, config.loop.seed + self.request.seeds)
            runs[folder] = [create_or_open(folder / f"seed-{i}", config.with_settings(seed=i)) for i in seeds]
        unfinished = [run for group in runs.values() for run in group if run.result() is None]
        if unfinished:
            run_all(unfinished, record_failure)
        returns = [load_returns(runs.get(folder, ())) for folder in folders]
        outcomes = zip(proposed, returns, (failed.get(folder, "") for folder in folders), strict=True)
        return [self._make_trial(params, *scores, reason) for params, scores, reason in outcomes]

    def _make_trial(
        self, params: Params, best_returns: Any = (), test_returns: Any = (), failed: str = "", **_: Any
    ) -> FrozenTrial:
        """Return a finished trial; a failed one is PRUNED, which TPE ranks below all others."""
        state = TrialState.PRUNED if failed else TrialState.COMPLETE
        value = None
        outcome: storage.JsonDict = {"failed": failed}
        if not failed:
            if len(best_returns) != self.request.seeds:
                raise DataError(f"a trial in {self.folder} lacks the return of a seed; resume the sweep")
            value = float(np.mean(best_returns))
            deviation = float(np.std(best_returns, ddof=1)) if len(best_returns) > 1 else None
            outcome = {"spread": deviation, "test": float(np.mean(test_returns))}
            outcome |= {"best_returns": best_returns, "test_returns": test_returns}
        distributions = {name: self.request.distributions[name] for name in params}
        return create_trial(
            state=state, value=value, params=dict(params), distributions=distributions, user_attrs=outcome
        )


class JournalBackend(BaseJournalBackend):
    """Optuna's journal in a checksummed file of JSON lines.

    Optuna's own `JournalFileBackend` can read the file. It would not detect a changed number, would append to a line
    that was written in part, and would wait half a minute for the lock of a killed process. Here the folder is locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = storage.read_journal(path)
        self.checksum = storage.rewrite_journal(path, self.lines)  # drops a line that was written in part

    def read_logs(self, log_number_from: int) -> Iterable[storage.JsonDict]:
        """Return the lines from a number on."""
        return self.lines[log_number_from:]

    def append_logs(self, logs: Sequence[storage.JsonDict]) -> None:
        """Append lines to the journal."""
        with storage.ChecksummedJournal(self.path, self.checksum) as journal:
            for line in logs:
                journal.append(line)
            journal.sync()
        self.checksum = journal.checksum
        self.lines += logs


def propose_round(request: SweepRequest, finished: Sequence[FrozenTrial]) -> list[dict[str, Any]]:
    """Return the parameters of the round after these trials; fewer than a round if there are no more."""
    if request.search == "grid":
        return request.grid[len(finished) : len(finished) + TRIALS_PER_ROUND]
    seed = int(derive_seeds(request.sampler_seed, SeedPurpose.SEARCH, len(finished) // TRIALS_PER_ROUND, 1)[0]) % 2**32
    proposed = {frozenset(trial.params.items()): dict[str, Any]() for trial in finished}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna warns of features that are experimental in some versions
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=TRIALS_PER_ROUND, constant_liar=True)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.add_trials(finished)
        for _ in range(MAX_ATTEMPTS):
            params = request.select_effective_params(study.ask(request.distributions).params)
            proposed.setdefault(frozenset(params.items()), params)  # TPE avoids proposals that have no value yet
            if len(proposed) == len(finished) + TRIALS_PER_ROUND:
                break
    return list(proposed.values())[len(finished) :]


def load_returns(runs: Iterable[Run]) -> tuple[list[float], list[float]]:
    """Return the validation returns and the test returns of a trial's runs, one for each seed."""
    results = [result for run in runs if (result := run.result()) is not None]
    return [result.best_return for result in results], [result.more["test_return"] for result in results]


def sort_best_first(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that did not fail, the best first; equal ones in the order of their numbers."""
    scored = [trial for trial in trials if trial.value is not None]
    return sorted(scored, key=attrgetter("value"), reverse=True)


def create_or_open_sweep(folder: Path, request: SweepRequest) -> Sweep:
    """Open the sweep in a folder, or create it.

    Raises:
        UsageError: The folder holds a sweep with more trials or another request.
    """
    if not (folder / RECORD).is_file():
        check_folder_unused(folder)
        sweep = Sweep(folder, request)
        create_run_folder(folder, RECORD, sweep.to_dict())
        return sweep
    sweep = Sweep.open(folder)
    for name, saved in sweep.request.to_dict().items():
        requested = request.to_dict()[name]
        if name == "trials" and requested < saved:
            message = f"{folder} holds a sweep of {saved} trials, more than the {requested} requested now"
            raise UsageError(f"{message}; leave --trials out, or choose another --out")
        if name != "trials" and requested != saved:
            difference = f"{name.replace('_', ' ')} {format_part(saved)}, not {format_part(requested)}"
            raise UsageError(f"{folder} holds a sweep with {difference}; choose another --out")
    return replace(sweep, request=request)


def format_part(part: Any) -> str:
    """Return a part of a request in words."""
    if isinstance(part, dict):
        return ", ".join(f"{name} {value}" for name, value in part.items()) or "nothing"
    return " and ".join(part) if isinstance(part, list) else str(part)
