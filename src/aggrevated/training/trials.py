"""Several runs in one folder, the same but for their seeds. How many they are is known before the first begins."""

from pathlib import Path

from aggrevated import storage
from aggrevated.config import Config
from aggrevated.config.builder import set_up
from aggrevated.config.resolver import from_facts
from aggrevated.core.hardware import one_thread
from aggrevated.errors import DataError
from aggrevated.training.run_folder import CONFIG, TRIALS, Run, begin_folder, refuse_if_used, same_in_all

SEVERAL = ("trial-*", "seed-*")  # what the folders of runs are called that belong together


def create_trials(folder: Path, config: Config, count: int) -> list[Run]:
    """New runs, in subfolders, of which trial i has seed + i; one alone has the folder for itself."""
    if count == 1:
        return [Run.create(folder, config)]
    refuse_if_used(folder)
    with one_thread():
        set_up(config)  # what cannot be set up leaves no folder behind
    begin_folder(folder, TRIALS, {"trials": count, "config": config.facts()})
    return trials_of(folder, config, count)


def trials_of(folder: Path, config: Config, count: int) -> list[Run]:
    """All trials; those that are not there yet are made."""
    return [trial(folder / name_of(i), config.replaced(seed=config.loop.seed + i)) for i in range(count)]


def trial(folder: Path, config: Config) -> Run:
    """One of them: it may have been made longer than it was asked to be at first."""
    if not (folder / CONFIG).is_file():
        return Run.create(folder, config)
    run = Run.open(folder, config.task)
    if same_in_all(run.config) != same_in_all(config):
        raise DataError(f"{folder} is not of the trials beside it; restore it, or remove it to run it again")
    return run


def name_of(trial: int) -> str:
    return f"trial-{trial:02d}"


def runs_in(folder: Path, trust: bool = False) -> list[Run]:
    """The run in a folder, or the trials, or the seeds of a trial of a sweep, in its subfolders."""
    if (folder / TRIALS).is_file():
        _, count = asked_in(folder, trust)
        return [begun(folder, folder / name_of(i), trust) for i in range(count)]
    several = sorted(path.parent for name in SEVERAL for path in folder.glob(f"{name}/{CONFIG}"))
    return [Run.open(path, trust=trust) for path in several or [folder]]


def runs_to_resume(folder: Path, trust: bool = False) -> list[Run]:
    """The same, where trials that never began are made."""
    if (folder / TRIALS).is_file():
        return trials_of(folder, *asked_in(folder, trust))
    return runs_in(folder, trust)


def asked_in(folder: Path, trust: bool) -> tuple[Config, int]:
    """(the config of the first trial, how many there are)."""
    path = folder / TRIALS
    facts = storage.unseal_json(path, "restore it, or start a new run with 'aggrevated train'")
    count, config = facts.get("trials"), facts.get("config")
    if type(count) is not int or not count >= 1 or not isinstance(config, dict):
        raise DataError(f"{path} does not say what the trials are; restore it, or start a new run")
    return from_facts(config, path, trust=trust), count


def begun(folder: Path, trial: Path, trust: bool) -> Run:
    """The trial, if it is there."""
    if not (trial / CONFIG).is_file():
        raise DataError(f"{trial} has not begun; finish it with 'aggrevated resume {folder}'")
    return Run.open(trial, trust=trust)
