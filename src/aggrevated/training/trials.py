"""Several runs in one folder, the same but for their seeds. How many they are is known before the first begins."""

from pathlib import Path

from aggrevated import storage
from aggrevated.config import Config
from aggrevated.config.builder import build_algorithm_inputs
from aggrevated.config.resolver import config_from_dict
from aggrevated.core.hardware import single_thread
from aggrevated.errors import DataError
from aggrevated.training.run_folder import (
    CONFIG,
    TRIALS,
    Run,
    check_folder_unused,
    create_run_folder,
    resume_invariant_settings,
)

GROUP_PATTERNS = ("trial-*", "seed-*")  # what the folders of runs are called that belong together


def create_trials(folder: Path, config: Config, count: int) -> list[Run]:
    """New runs, in subfolders, of which trial i has seed + i; one alone has the folder for itself."""
    if count == 1:
        return [Run.create(folder, config)]
    check_folder_unused(folder)
    with single_thread():
        build_algorithm_inputs(config)  # what cannot be set up leaves no folder behind
    create_run_folder(folder, TRIALS, {"trials": count, "config": config.to_dict()})
    return create_or_open_trials(folder, config, count)


def create_or_open_trials(folder: Path, config: Config, count: int) -> list[Run]:
    """All trials; those that are not there yet are made."""
    return [
        create_or_open_trial(folder / trial_folder_name(i), config.with_settings(seed=config.loop.seed + i))
        for i in range(count)
    ]


def create_or_open_trial(folder: Path, config: Config) -> Run:
    """One of them: it may have been made longer than it was asked to be at first."""
    if not (folder / CONFIG).is_file():
        return Run.create(folder, config)
    run = Run.open(folder, config.task)
    if resume_invariant_settings(run.config) != resume_invariant_settings(config):
        raise DataError(f"{folder} is not of the trials beside it; restore it, or remove it to run it again")
    return run


def trial_folder_name(trial: int) -> str:
    return f"trial-{trial:02d}"


def list_runs(folder: Path, trust_code: bool = False) -> list[Run]:
    """The run in a folder, or the trials, or the seeds of a trial of a sweep, in its subfolders."""
    if (folder / TRIALS).is_file():
        _, count = read_trials_file(folder, trust_code)
        return [open_trial(folder, folder / trial_folder_name(i), trust_code) for i in range(count)]
    several = sorted(path.parent for name in GROUP_PATTERNS for path in folder.glob(f"{name}/{CONFIG}"))
    return [Run.open(path, trust_code=trust_code) for path in several or [folder]]


def list_runs_to_resume(folder: Path, trust_code: bool = False) -> list[Run]:
    """The same, where trials that never began are made."""
    if (folder / TRIALS).is_file():
        return create_or_open_trials(folder, *read_trials_file(folder, trust_code))
    return list_runs(folder, trust_code)


def read_trials_file(folder: Path, trust_code: bool) -> tuple[Config, int]:
    """(the config of the first trial, how many there are)."""
    path = folder / TRIALS
    facts = storage.load_checksummed_json(path, "restore it, or start a new run with 'aggrevated train'")
    count, config = facts.get("trials"), facts.get("config")
    if type(count) is not int or not count >= 1 or not isinstance(config, dict):
        raise DataError(f"{path} does not say what the trials are; restore it, or start a new run")
    return config_from_dict(config, path, trust_code=trust_code), count


def open_trial(folder: Path, trial: Path, trust_code: bool) -> Run:
    """The trial, if it is there."""
    if not (trial / CONFIG).is_file():
        raise DataError(f"{trial} has not begun; finish it with 'aggrevated resume {folder}'")
    return Run.open(trial, trust_code=trust_code)
