"""The folder of a run, and the folders of several trials."""

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
    """A run's folder and what it was asked to do."""

    folder: Path
    config: Config
    saved_config: storage.JsonDict = field(default_factory=dict, compare=False, repr=False)  # what config.json holds

    @classmethod
    def create(cls, folder: Path | str, config: Config) -> Run:
        """Create the folder of a new run.

        Args:
            folder: A folder that does not exist, or is empty.
            config: What the run is to do. Whether it can be built is not checked here; see `Trainer.build`.

        Raises:
            UsageError: The folder holds something already.
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
        """A run that exists; one of a task that has no name to be found by needs the task itself.

        Python code that it names is imported, when it is needed, only with `trust`. Environment and expert that were
        given to `train` as objects are given again as `env` and `expert`; others than those are a `DataError`.
        """
        folder = Path(folder)
        path = folder / CONFIG
        if not path.is_file():
            raise DataError(f"{folder} is not a run: it has no config.json; give a folder that 'aggrevated train' made")
        remedy = f"undo that, or start a new run with 'aggrevated train --config {path}'"
        facts = storage.load_checksummed_json(path, remedy)
        if task is None and env is None and not (isinstance(facts.get("task"), str) and is_known_task(facts["task"])):
            missing = f"{path} is of the task {facts.get('task')!r}, which no installed package offers"
            again = "aggrevated.resume(folder, env=..., expert=...), Run.open(folder, env=..., expert=...)"
            raise DataError(
                f"{missing}; install it or, in Python, give the task: Run.open(folder, task), or the environment and "
                f"expert that it was made of: {again}"
            )
        if env is None and expert is None:
            return cls(folder, config_from_dict(facts, path, task, trust_code), facts)
        rebuilt = rebuild_task(facts, path, task, trust_code, env, expert)
        run = cls(folder, config_from_dict(facts, path, rebuilt, trust_code), facts)
        run._refuse_another()
        return run

    def _refuse_another(self) -> None:
        """A `DataError` if environment or expert are not those of its checkpoints."""
        facts = read_newest_metadata(self.folder / CHECKPOINTS)
        if facts is not None:
            world = self.config.built_problem
            own = run_identity(self.config, world)
            habits = storage.digest_tensors(dict(world.expert_fingerprint))
            check_same_run(self.folder / CHECKPOINTS, facts, own, habits)

    @property
    def label(self) -> str:
        """What a legend calls it; the policy is named wherever there could be another one in the figure."""
        config = self.config
        task = self.config.task
        policy = "" if config.policy.name == task.policy == "mlp" else f", {config.policy.name}"
        picked = {"method": config.method, "policy": config.policy.name, "update": config.update.name}
        usual = task.get_tuned_settings(picked).get("start", config.method_spec.start)
        start = "" if config.start.name == usual else f", {config.start.name} start"
        usual_oracles = (task.oracle, *config.method_spec.oracles[:1])
        oracle = "" if config.oracle.name in usual_oracles or not task.oracle else f", {config.oracle.name}"
        then = (
            ""
            if config.reinforcement.name == config.method_spec.reinforcement
            else f", then {config.reinforcement.name}"
        )
        return f"{config.method_spec.title}, {config.update.name}{policy}{start}{oracle}{then}{config.problem.label}"

    def metrics(self) -> list[Metrics]:
        """The lines of metrics.jsonl, up to the last that is whole."""
        path = self.folder / METRICS
        return [Metrics.read(line, path) for line in storage.read_journal(path)]

    def result(self) -> Result | None:
        """result.json, if the run has ended: one by an end that is not the one asked for now does not count."""
        path = self.folder / RESULT
        if not path.is_file():
            return None
        remedy = f"remove it, and 'aggrevated resume {self.folder}' makes it again"
        result = Result.read(storage.load_checksummed_json(path, remedy), path)
        loop = self.config.loop
        reached = result.iterations == loop.iterations
        same = (result.budget, result.queries) == (loop.budget, loop.queries)
        return result if reached or (same and result.ended_by in loop.limits) else None

    def load_partial_result(self) -> Result:
        """What was known when policy.safetensors was written."""
        return Result.read(self.load_best_policy_weights()[1], self.folder / BEST_POLICY_FILE)

    @property
    def policy(self) -> Policy:
        """The chosen policy: the best on validation so far."""
        weights, _ = self.load_best_policy_weights()
        policy = build_policy(self.config)
        try:
            policy.load_state_dict(weights)
        except RuntimeError as error:
            raise self._make_config_mismatch_error() from error
        policy.metadata = partial(make_policy_metadata, self)
        return policy

    def load_best_policy_weights(self) -> tuple[dict[str, Tensor], storage.JsonDict]:
        """(weights of the chosen policy, what was known when it was written)."""
        path = self.folder / BEST_POLICY_FILE
        if not path.is_file():
            raise DataError(f"{self.folder} has no policy yet; finish it with 'aggrevated resume {self.folder}'")
        weights, facts = storage.load_checksummed(path)
        if facts.get("config") != resume_invariant_settings(self.config) or not isinstance(facts.get("so_far"), dict):
            raise self._make_config_mismatch_error()
        return weights, facts["so_far"]

    def _make_config_mismatch_error(self) -> DataError:
        return DataError(f"{self.folder}/config.json does not fit the policy beside it; restore it")


def rebuild_task(
    facts: storage.JsonDict, path: Path, task: Task | None, trust_code: bool, env: Any, expert: Any
) -> Task:
    """The task of a run with the environment and the expert that it was made of, by the name that it had."""
    world = facts.get("problem")
    if expert is not None and isinstance(world, dict) and world.get("expert"):
        raise UsageError(f"{path} names its expert, {world['expert']}; leave expert out, or start a new run")
    found = task or (find_task(str(facts.get("task")), trust_code) if env is None else as_task(env))
    return replace_task_expert(replace(found, name=str(facts.get("task"))), expert)


def run_identity(config: Config, world: Problem) -> str:
    """A digest of all that shapes the bits, the expert's weights too; with more iterations it is still the same run."""
    return storage.digest_tensors(dict(world.fingerprint), resume_invariant_settings(config))


def resume_invariant_settings(config: Config) -> storage.JsonDict:
    """The settings that do not change where a run is made longer."""
    return config.with_settings(iterations=1, checkpoint_every=1, budget=0, queries=0).to_dict()


def create_or_open(folder: Path, config: Config) -> Run:
    """The run in the folder, if it was asked for the same; a new one if there is none."""
    if not (folder / CONFIG).is_file():
        return Run.create(folder, config)
    run = Run.open(folder, config.task)
    if run.config != config:
        raise UsageError(f"{folder} holds a run with other settings; choose another --out or remove it")
    return run


def create_run_folder(folder: Path, name: str, facts: storage.JsonDict) -> None:
    """Write its first file, sealed: of several who begin a folder at once one does, and the others get a `UsageError`.

    Killed or failing in the middle, it leaves a folder that holds nothing yet.
    """
    made = not folder.exists()
    try:
        if not storage.save_new_checksummed_json(folder / name, facts):
            raise make_folder_exists_error(folder)
    except BaseException:
        if made:
            with suppress(OSError):
                folder.rmdir()
        raise


def check_folder_unused(folder: Path) -> None:
    """A `UsageError` if there is something at that place already, but for what a kill left of a file."""
    with storage.reraise_storage_errors(folder):
        if folder.exists() and (not folder.is_dir() or not all(map(storage.is_temporary_file, folder.iterdir()))):
            raise make_folder_exists_error(folder)


def make_folder_exists_error(folder: Path) -> UsageError:
    """With what can be done about it."""
    a_run = (folder / CONFIG).exists() or (folder / TRIALS).exists() or any(folder.glob(f"trial-*/{CONFIG}"))
    resume = f"go on with 'aggrevated resume {folder}' or " if a_run else ""
    return UsageError(f"{folder} exists already: {resume}choose another --out")


def to_file_name(name: str) -> str:
    """The name without what folders are not called."""
    return re.sub(r"[^\w.-]+", "-", name)


def choose_run_folder(config: Config) -> Path:
    """runs/TASK-METHOD-UPDATE or, where it exists, the first of those with -2, -3, … behind it that does not."""
    folder = Path("runs") / to_file_name(f"{config.task.name}-{config.method}-{config.update.name}")
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(path for path in chain([folder], numbered) if not path.exists())


GROUP_PATTERNS = ("trial-*", "seed-*")  # what the folders of runs are called that belong together


def create_trials(folder: Path, config: Config, count: int) -> list[Run]:
    """New runs, in subfolders, of which trial i has seed + i; one alone has the folder for itself."""
    if count == 1:
        return [Run.create(folder, config)]
    check_folder_unused(folder)
    create_run_folder(folder, TRIALS, {"trials": count, "config": config.to_dict()})
    return create_or_open_trials(folder, config, count)


def create_or_open_trials(folder: Path, config: Config, count: int) -> list[Run]:
    """All trials; those that are not there yet are made."""
    return [
        create_or_open_trial(folder / format_trial_folder_name(i), config.with_settings(seed=config.loop.seed + i))
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


def format_trial_folder_name(trial: int) -> str:
    return f"trial-{trial:02d}"


def list_runs(folder: Path, trust_code: bool = False) -> list[Run]:
    """The run in a folder, or the trials, or the seeds of a trial of a sweep, in its subfolders."""
    if (folder / TRIALS).is_file():
        _, count = read_trials_file(folder, trust_code)
        return [open_trial(folder, folder / format_trial_folder_name(i), trust_code) for i in range(count)]
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
    count = facts.get("trials")
    config = facts.get("config")
    if type(count) is not int or not count >= 1 or not isinstance(config, dict):
        raise DataError(f"{path} does not say what the trials are; restore it, or start a new run")
    return config_from_dict(config, path, trust_code=trust_code), count


def open_trial(folder: Path, trial: Path, trust_code: bool) -> Run:
    """The trial, if it is there."""
    if not (trial / CONFIG).is_file():
        raise DataError(f"{trial} has not begun; finish it with 'aggrevated resume {folder}'")
    return Run.open(trial, trust_code=trust_code)
