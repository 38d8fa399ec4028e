"""A sweep in its folder: what was asked is in sweep.json, and its trials are an Optuna study in study.jsonl.

Trials are made in rounds. A round follows from the sampler's seed and the trials of the rounds before it, and
from nothing else. It is written down before it is run, and its trials are told in the order of their numbers.
So neither workers nor a stop change which trials there are, and a longer sweep begins as a shorter one.
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
TRIALS_PER_ROUND = 8  # trials that are asked for at once
MAX_ATTEMPTS = 200  # of a round, to find trials that were not made already
COMPARED_FIELDS = ("state", "value", "distributions", "user_attrs")  # of a trial that is read
FailureCallback = Callable[[Run, AggrevatedError], None]  # is told of a run that failed
RoundCallback = Callable[[optuna.Study, Sequence[FrozenTrial]], None]  # is told of the new trials of a round
Runner = Callable[[Sequence[Run], FailureCallback], object]  # runs them all to their ends


@dataclass(frozen=True)
class Sweep:
    """A sweep's folder and what it was asked to do."""

    folder: Path
    asked: SweepRequest

    @classmethod
    def open(cls, folder: Path, ignore_numerics: bool = False, trust_code: bool = False) -> Sweep:
        """Return a sweep that exists; one begun where sums round otherwise is refused, unless ignored."""
        path = folder / RECORD
        facts = storage.load_checksummed_json(path, "restore it, or begin anew with another --out")
        if facts.get("version") != __version__ or not {"asked", "numerics"} <= set(facts):
            remedy = "begin anew with another --out"
            raise DataError(f"{path} is not of a sweep of version {__version__}; {remedy}")
        elsewhere = describe_numerics_difference(facts["numerics"], compute_numerics_fingerprint())
        if elsewhere and not ignore_numerics:
            remedy = f"go on there, or here with 'aggrevated resume {folder} --ignore-numerics'"
            what = f"was begun with {elsewhere}: trials made here are not to the bit"
            raise DataError(f"{folder} {what}; {remedy}")
        return cls(folder, SweepRequest.from_dict(facts["asked"], path, trust_code))

    def to_dict(self) -> storage.JsonDict:
        """Return it for sweep.json."""
        return {"version": __version__, "asked": self.asked.to_dict(), "numerics": compute_numerics_fingerprint()}

    def run(self, run_all: Runner, show: RoundCallback) -> optuna.Study:
        """Make the trials that are missing, and return the study."""
        with storage.exclusive_lock(self.folder):
            storage.remove_temporary_files(self.folder)
            study = self.open_study()
            storage.save_checksummed_json(self.folder / RECORD, self.to_dict())  # there may be more trials
            for first in range(0, self.asked.trials, TRIALS_PER_ROUND):
                known = len(study.trials)
                if known < first:
                    break  # the round before found no more
                name = f"round {first // TRIALS_PER_ROUND}"
                if name not in study.user_attrs:
                    study.set_user_attr(name, propose_round(self.asked, study.trials[:first]))
                if missing := study.user_attrs[name][known - first : self.asked.trials - first]:
                    study.add_trials(self._run_trials(known, missing, run_all))
                    show(study, study.trials[known:])
            return study

    def open_study(self) -> optuna.Study:
        """Return the folder's study, a new one if there is none; a `DataError` if it is not of this sweep."""
        path = self.folder / JOURNAL
        try:
            study = optuna.create_study(
                storage=optuna.storages.JournalStorage(JournalBackend(path)),
                study_name="sweep",
                direction="maximize",
                load_if_exists=True,
            )
            for trial in study.trials:
                again = self._make_trial(trial.params, **trial.user_attrs)
                if any(getattr(again, name) != getattr(trial, name) for name in COMPARED_FIELDS):
                    raise ValueError(f"trial {trial.number} is not of what was asked")
            for params in chain.from_iterable(study.user_attrs.values()):
                self._make_trial(params, failed="not run yet")
        except StorageError:
            raise
        except Exception as error:  # Optuna checks nothing before it uses it
            why = storage.truncate_message(f"{type(error).__name__}: {error}".partition(";")[0])
            remedy = f"remove it, and 'aggrevated resume {self.folder}' makes it again from its runs"
            raise DataError(f"{path} does not hold the trials of this sweep ({why}); {remedy}") from error
        return study

    def _run_trials(self, first: int, proposed: Sequence[Params], run_all: Runner) -> list[FrozenTrial]:
        """Run these trials, of which the first has that number, and return them as Optuna takes them."""
        folders = [self.folder / f"trial-{number:03d}" for number in range(first, first + len(proposed))]
        failed = dict[Path, str]()  # the sentence of the first run of a trial that failed

        def record_failure(run: Run, error: AggrevatedError) -> None:
            if isinstance(error, UsageError | StorageError):
                raise error  # it is not the trial's fault
            failed.setdefault(run.folder.parent, str(error))

        runs = dict[Path, list[Run]]()
        for folder, params in zip(folders, proposed, strict=True):
            try:
                config, _ = self.asked.resolve(self.asked.to_settings(params))
                Trainer(config).build()  # a trial that cannot be built leaves no folder
            except UsageError as error:  # of settings that cannot be together
                failed[folder] = str(error)
                continue
            seeds = range(config.loop.seed, config.loop.seed + self.asked.seeds)
            runs[folder] = [create_or_open(folder / f"seed-{i}", config.with_settings(seed=i)) for i in seeds]
        unfinished = [run for some in runs.values() for run in some if run.result() is None]
        if unfinished:
            run_all(unfinished, record_failure)
        returns = [load_returns(runs.get(folder, ())) for folder in folders]
        outcomes = zip(proposed, returns, (failed.get(folder, "") for folder in folders), strict=True)
        return [self._make_trial(params, *some, why) for params, some, why in outcomes]

    def _make_trial(
        self, params: Params, best_returns: Any = (), test_returns: Any = (), failed: str = "", **_: Any
    ) -> FrozenTrial:
        """Return a finished trial. One that failed is PRUNED: TPE takes it for worse than all others."""
        state = TrialState.PRUNED if failed else TrialState.COMPLETE
        value = None
        outcome: storage.JsonDict = {"failed": failed}
        if not failed:
            if len(best_returns) != self.asked.seeds:
                raise DataError(f"a trial in {self.folder} has no return for some seed")
            value = float(np.mean(best_returns))
            spread = float(np.std(best_returns, ddof=1)) if len(best_returns) > 1 else None
            outcome = {"spread": spread, "test": float(np.mean(test_returns))}
            outcome |= {"best_returns": best_returns, "test_returns": test_returns}
        known = {name: self.asked.distributions[name] for name in params}
        own = dict(params)
        return create_trial(state=state, value=value, params=own, distributions=known, user_attrs=outcome)


class JournalBackend(BaseJournalBackend):
    """Optuna's journal in a file of JSON lines, each with a checksum of itself and all before it.

    Optuna's own `JournalFileBackend` can read it. That one takes a changed number for true, appends to a line
    that a kill tore, and waits half a minute for the lock of a killed process; here the folder is locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = storage.read_journal(path)
        self.checksum = storage.rewrite_journal(path, self.lines)  # without what a kill tore

    def read_logs(self, log_number_from: int) -> Iterable[storage.JsonDict]:
        """Return the lines from that number on."""
        return self.lines[log_number_from:]

    def append_logs(self, logs: Sequence[storage.JsonDict]) -> None:
        """Write more lines."""
        with storage.ChecksummedJournal(self.path, self.checksum) as journal:
            for line in logs:
                journal.append(line)
            journal.sync()
        self.checksum = journal.checksum
        self.lines += logs


def propose_round(asked: SweepRequest, before: Sequence[FrozenTrial]) -> list[dict[str, Any]]:
    """Return the parameters of the round after these trials; fewer than a round if there are no more."""
    if asked.search == "grid":
        return asked.grid[len(before) : len(before) + TRIALS_PER_ROUND]
    seed = int(derive_seeds(asked.sampler_seed, SeedPurpose.SEARCH, len(before) // TRIALS_PER_ROUND, 1)[0]) % 2**32
    found = {frozenset(trial.params.items()): dict[str, Any]() for trial in before}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is experimental in one version of Optuna is usual in the next
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=TRIALS_PER_ROUND, constant_liar=True)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.add_trials(before)
        for _ in range(MAX_ATTEMPTS):
            params = asked.select_effective_params(study.ask(asked.distributions).params)
            found.setdefault(frozenset(params.items()), params)  # TPE avoids what is asked for and not told
            if len(found) == len(before) + TRIALS_PER_ROUND:
                break
    return list(found.values())[len(before) :]


def load_returns(runs: Iterable[Run]) -> tuple[list[float], list[float]]:
    """Return what the runs of a trial came to, on validation and on the test, one for each seed."""
    results = [result for run in runs if (result := run.result()) is not None]
    return [one.best_return for one in results], [one.more["test_return"] for one in results]


def sort_best_first(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that did not fail; of equal ones the earlier first."""
    scored = [trial for trial in trials if trial.value is not None]
    return sorted(scored, key=attrgetter("value"), reverse=True)


def create_or_open_sweep(folder: Path, asked: SweepRequest) -> Sweep:
    """Return the folder's sweep if it was asked for the same or fewer trials; a new one if there is none."""
    if not (folder / RECORD).is_file():
        check_folder_unused(folder)
        sweep = Sweep(folder, asked)
        create_run_folder(folder, RECORD, sweep.to_dict())
        return sweep
    sweep = Sweep.open(folder)
    for name, then in sweep.asked.to_dict().items():
        now = asked.to_dict()[name]
        if name == "trials" and now < then:
            few = f"{folder} holds a sweep of {then} trials, more than the {now} asked for now"
            raise UsageError(f"{few}; leave --trials out, or choose another --out")
        if name != "trials" and now != then:
            other = f"{name.replace('_', ' ')} {format_part(then)}, not {format_part(now)}"
            raise UsageError(f"{folder} holds a sweep with {other}; choose another --out")
    return replace(sweep, asked=asked)


def format_part(part: Any) -> str:
    """Return a part of what was asked, for people."""
    if isinstance(part, dict):
        return ", ".join(f"{name} {one}" for name, one in part.items()) or "nothing"
    return " and ".join(part) if isinstance(part, list) else str(part)
