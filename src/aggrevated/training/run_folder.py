"""Run folders, and folders with the runs of several trials."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from torch import Tensor

from aggrevated import storage
from aggrevated.config import Config
from aggrevated.config.builder import build_policy
from aggrevated.config.resolver import config_from_dict
from aggrevated.core.errors import DataError, UsageError
from aggrevated.policies import Policy
from aggrevated.problems import Problem
from aggrevated.tasks import Task, as_task, find_task, is_known_task, replace_task_expert
from aggrevated.training.checkpoint import check_same_run, read_newest_metadata
from aggrevated.training.model_card import make_policy_metadata
from aggrevated.training.records import Metrics, Result

CONFIG = "config.json"
METRICS = "metrics.jsonl"
RESULT = "result.json"
CHECKPOINTS = "checkpoints"
BEST_POLICY_FILE = "policy.safetensors"  # the best policy so far
TRIALS = "trials.json"  # in a folder with the runs of several trials


@dataclass(frozen=True)
class Run:
    """A run: a folder and its config.

    Args:
        folder: The run folder.
        config: The config, with limits that may be higher than those in config.json.
        saved_config: The content of config.json.

    Example:
        >>> from aggrevated import Run, resolve_config
        >>> run = Run.create("runs/new", resolve_config("cartpole", iterations=5))
        >>> Run.open("runs/new").config.loop.iterations
        5
    """

    folder: Path
    config: Config = field(repr=False)
    saved_config: storage.JsonDict = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def create(cls, folder: Path | str, config: Config) -> Run:
        """Create the folder of a new run.

        Args:
            folder: A folder that does not exist, or is empty.
            config: The config of the run. It is not built here; see `Trainer.build`.

        Returns:
            The run.

        Raises:
            UsageError: The folder is not empty.
        """
        folder = Path(folder)
        check_folder_unused(folder)
        create_run_folder(folder, CONFIG, config.to_dict())
        return cls(folder, config, config.to_dict())

    @classmethod
    def open(
        cls,
        folder: Path | str,
        task: Task | None = None,
        trust_code: bool = False,
        *,
        env: Any = None,
        expert: Any = None,
    ) -> Run:
        """Open the folder of a run.

        Args:
            folder: The run folder.
            task: The task, if it cannot be found by its name.
            trust_code: Allow the import of Python code that the folder names.
            env: The environment that was passed to `train`, if it was an object rather than a name.
            expert: The expert that was passed to `train`, if it was an object rather than a name.

        Returns:
            The run.

        Raises:
            DataError: The folder is not a run, its config.json is damaged, or environment or expert are not those of
                the run.
            UsageError: An expert was passed, but the run has an expert by name.
        """
        folder = Path(folder)
        path = folder / CONFIG
        if not path.is_file():
            raise DataError(f"{folder} is not a run: it has no config.json; pass a folder that 'aggrevated train' made")
        remedy = f"undo that, or start a new run with 'aggrevated train --config {path}'"
        values = storage.load_checksummed_json(path, remedy)
        name = values.get("task")
        if task is None and env is None and not (isinstance(name, str) and is_known_task(name)):
            missing = f"{path} is of the task {name!r}, which no installed package offers"
            calls = "aggrevated.resume(folder, env=..., expert=...), Run.open(folder, env=..., expert=...)"
            raise DataError(
                f"{missing}; install the package or, in Python, pass the task, Run.open(folder, task), or environment "
                f"and expert: {calls}"
            )
        if env is None and expert is None:
            return cls(folder, config_from_dict(values, path, task, trust_code), values)
        rebuilt = rebuild_task(values, path, task, trust_code, env, expert)
        run = cls(folder, config_from_dict(values, path, rebuilt, trust_code), values)
        run._check_same_problem()
        return run

    def _check_same_problem(self) -> None:
        """Raise a `DataError` if environment or expert are not those of the checkpoints."""
        metadata = read_newest_metadata(self.folder / CHECKPOINTS)
        if metadata is not None:
            problem = self.config.built_problem
            identity = run_identity(self.config, problem)
            expert_fingerprint = storage.digest_tensors(dict(problem.expert_fingerprint))
            check_same_run(self.folder / CHECKPOINTS, metadata, identity, expert_fingerprint)

    @property
    def label(self) -> str:
        """Label of the run in a legend: the method, the update, and the components that are not the task's default."""
        config = self.config
        task = self.config.task
        policy = "" if config.policy.name == task.policy == "mlp" else f", {config.policy.name}"
        selected = {"method": config.method, "policy": config.policy.name, "update": config.update.name}
        default_start = task.get_tuned_settings(selected).get("start", config.method_spec.start)
        start = "" if config.start.name == default_start else f", {config.start.name} start"
        default_oracles = (task.oracle, *config.method_spec.oracles[:1])
        oracle = "" if config.oracle.name in default_oracles or not task.oracle else f", {config.oracle.name}"
        rl_part = (
            ""
            if config.reinforcement.name == config.method_spec.reinforcement
            else f", then {config.reinforcement.name}"
        )
        return f"{config.method_spec.title}, {config.update.name}{policy}{start}{oracle}{rl_part}{config.problem.label}"

    def metrics(self) -> list[Metrics]:
        """Return the metrics of all iterations so far; a last line that was written in part is left out."""
        path = self.folder / METRICS
        return [Metrics.read(line, path) for line in storage.read_journal(path)]

    def result(self) -> Result | None:
        """Return the result of the run; None if it has not ended by the limits of its config."""
        path = self.folder / RESULT
        if not path.is_file():
            return None
        remedy = f"remove it and run 'aggrevated resume {self.folder}', which writes it again"
        result = Result.read(storage.load_checksummed_json(path, remedy), path)
        loop = self.config.loop
        reached = result.iterations == loop.iterations
        same_limits = (result.budget, result.queries) == (loop.budget, loop.queries)
        return result if reached or (same_limits and result.ended_by in loop.limits) else None

    def load_partial_result(self) -> Result:
        """Return the result of the run at the time when policy.safetensors was written."""
        return Result.read(self.load_best_policy_weights()[1], self.folder / BEST_POLICY_FILE)

    @property
    def policy(self) -> Policy:
        """Policy with the best validation return so far."""
        weights, _ = self.load_best_policy_weights()
        policy = build_policy(self.config)
        try:
            policy.load_state_dict(weights)
        except RuntimeError as error:
            raise self._make_config_mismatch_error() from error
        policy.metadata = partial(make_policy_metadata, self)
        return policy

    def load_best_policy_weights(self) -> tuple[dict[str, Tensor], storage.JsonDict]:
        """Return the weights of the best policy, and the result at the time when they were written.

        Raises:
            DataError: No policy was saved yet, or its file is damaged or of another config.
        """
        path = self.folder / BEST_POLICY_FILE
        if not path.is_file():
            raise DataError(f"{self.folder} has no policy yet; finish it with 'aggrevated resume {self.folder}'")
        weights, metadata = storage.load_checksummed(path)
        same_config = metadata.get("config") == resume_invariant_settings(self.config)
        if not same_config or not isinstance(metadata.get("so_far"), dict):
            raise self._make_config_mismatch_error()
        return weights, metadata["so_far"]

    def _make_config_mismatch_error(self) -> DataError:
        return DataError(f"{self.folder}/config.json does not match {BEST_POLICY_FILE}; restore config.json")


def rebuild_task(
    values: storage.JsonDict, path: Path, task: Task | None, trust_code: bool, env: Any, expert: Any
) -> Task:
    """Return the task of a run, under its name, with the environment and the expert that `train` was given."""
    problem = values.get("problem")
    if expert is not None and isinstance(problem, dict) and problem.get("expert"):
        raise UsageError(f"{path} names its expert, {problem['expert']}; leave expert out, or start a new run")
    base = task or (find_task(str(values.get("task")), trust_code) if env is None else as_task(env))
    return replace_task_expert(replace(base, name=str(values.get("task"))), expert)


def run_identity(config: Config, problem: Problem) -> str:
    """Return a digest of all that determines the bits of a run, except for its limits."""
    return storage.digest_tensors(dict(problem.fingerprint), resume_invariant_settings(config))


def resume_invariant_settings(config: Config) -> storage.JsonDict:
    """Return the config with constant limits: what does not change when a run is extended."""
    return config.with_settings(iterations=1, checkpoint_every=1, budget=0, queries=0).to_dict()


def create_or_open(folder: Path, config: Config) -> Run:
    """Open the run in a folder, or create it.

    Raises:
        UsageError: The run in the folder has another config.
    """
    if not (folder / CONFIG).is_file():
        return Run.create(folder, config)
    run = Run.open(folder, config.task)
    if run.config != config:
        raise UsageError(f"{folder} holds a run with other settings; choose another --out or remove it")
    return run


def create_run_folder(folder: Path, name: str, values: storage.JsonDict) -> None:
    """Create a folder and write its first file, checksummed.

    If several processes create the same folder, one succeeds. A failure leaves no file.

    Raises:
        UsageError: The file exists already.
    """
    is_new = not folder.exists()
    try:
        if not storage.save_new_checksummed_json(folder / name, values):
            raise make_folder_exists_error(folder)
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


def check_folder_unused(folder: Path) -> None:
    """Raise a `UsageError` if a path exists and is not a folder that is empty except for temporary files."""
    with storage.reraise_storage_errors(folder):
        if folder.exists() and (not folder.is_dir() or not all(map(storage.is_temporary_file, folder.iterdir()))):
            raise make_folder_exists_error(folder)


def make_folder_exists_error(folder: Path) -> UsageError:
    """Return the error that a folder exists already, with its remedy."""
    is_run = (folder / CONFIG).exists() or (folder / TRIALS).exists() or any(folder.glob(f"trial-*/{CONFIG}"))
    resume = f"resume it with 'aggrevated resume {folder}' or " if is_run else ""
    return UsageError(f"{folder} exists already: {resume}choose another --out")


def to_file_name(name: str) -> str:
    """Return the name with a hyphen for every run of characters that a file name should not have."""
    return re.sub(r"[^\w.-]+", "-", name)


def choose_run_folder(config: Config) -> Path:
    """Return runs/TASK-METHOD-UPDATE or, if it exists, the first of the names with -2, -3, … that does not."""
    folder = Path("runs") / to_file_name(f"{config.task.name}-{config.method}-{config.update.name}")
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(path for path in chain([folder], numbered) if not path.exists())


GROUP_PATTERNS = ("trial-*", "seed-*")  # folders of runs that belong together


def create_trials(folder: Path, config: Config, count: int) -> list[Run]:
    """Create runs of which trial i has seed + i: in subfolders, or in the folder itself if there is only one."""
    if count == 1:
        return [Run.create(folder, config)]
    check_folder_unused(folder)
    create_run_folder(folder, TRIALS, {"trials": count, "config": config.to_dict()})
    return create_or_open_trials(folder, config, count)


def create_or_open_trials(folder: Path, config: Config, count: int) -> list[Run]:
    """Return the runs of all trials, and create those that do not exist."""
    return [
        create_or_open_trial(folder / format_trial_folder_name(i), config.with_settings(seed=config.loop.seed + i))
        for i in range(count)
    ]


def create_or_open_trial(folder: Path, config: Config) -> Run:
    """Return the run of a trial, and create it if it does not exist; its limits may have been extended."""
    if not (folder / CONFIG).is_file():
        return Run.create(folder, config)
    run = Run.open(folder, config.task)
    if resume_invariant_settings(run.config) != resume_invariant_settings(config):
        raise DataError(f"{folder} does not match {TRIALS}; restore it, or remove it to run the trial again")
    return run


def format_trial_folder_name(trial: int) -> str:
    return f"trial-{trial:02d}"


def list_runs(folder: Path, trust_code: bool = False) -> list[Run]:
    """Open the run in a folder, or the runs of its trials or seeds in the subfolders.

    Args:
        folder: The folder of a run, of several trials, or of one trial of a sweep.
        trust_code: Allow the import of Python code that a run names.

    Returns:
        The runs, in the order of trials or folder names.

    Raises:
        DataError: A folder is not a run, a file is damaged, or a trial has not started.
    """
    if (folder / TRIALS).is_file():
        _, count = read_trials_file(folder, trust_code)
        return [open_trial(folder, folder / format_trial_folder_name(i), trust_code) for i in range(count)]
    folders = sorted(path.parent for pattern in GROUP_PATTERNS for path in folder.glob(f"{pattern}/{CONFIG}"))
    return [Run.open(path, trust_code=trust_code) for path in folders or [folder]]


def list_runs_to_resume(folder: Path, trust_code: bool = False) -> list[Run]:
    """Return the runs of `list_runs`, and create trials that have not started."""
    if (folder / TRIALS).is_file():
        return create_or_open_trials(folder, *read_trials_file(folder, trust_code))
    return list_runs(folder, trust_code)


def read_trials_file(folder: Path, trust_code: bool) -> tuple[Config, int]:
    """Return the config of the first trial, and the number of trials."""
    path = folder / TRIALS
    values = storage.load_checksummed_json(path, "restore it, or start a new run with 'aggrevated train'")
    count = values.get("trials")
    config = values.get("config")
    if type(count) is not int or not count >= 1 or not isinstance(config, dict):
        raise DataError(f"{path} does not describe trials; restore it, or start a new run")
    return config_from_dict(config, path, trust_code=trust_code), count


def open_trial(folder: Path, trial: Path, trust_code: bool) -> Run:
    """Open the run of a trial; raise a `DataError` if it does not exist."""
    if not (trial / CONFIG).is_file():
        raise DataError(f"{trial} has not started; finish it with 'aggrevated resume {folder}'")
    return Run.open(trial, trust_code=trust_code)
