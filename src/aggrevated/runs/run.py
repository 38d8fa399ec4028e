"""A run: Algorithm 1 in a folder. Stopped at any moment, it goes on and ends with the same bits."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path

from torch import Tensor

from aggrevated.algorithm import Iteration, aggrevated
from aggrevated.errors import DataError, UsageError
from aggrevated.experiments import tasks
from aggrevated.files import (
    Facts,
    digest,
    only_one,
    read_json,
    read_lines,
    seal,
    storage_errors,
    sweep,
    unseal,
    write_atomically,
    write_json,
)
from aggrevated.policies import Policy
from aggrevated.recipes import METHODS
from aggrevated.runs import checkpoint
from aggrevated.runs.config import Config, from_facts
from aggrevated.setup import Setup, blank_policy, set_up
from aggrevated.start import STARTS, Supervision


@dataclass(frozen=True)
class Run:
    """A run's folder and what it was asked to do."""

    folder: Path
    config: Config

    @classmethod
    def create(cls, folder: Path, config: Config) -> Run:
        """A new run. A folder that already holds something is refused, so that no run is overwritten."""
        set_up(config)  # what cannot be set up, for example for lack of its expert, leaves no folder behind
        refuse_if_used(folder)
        write_json(folder / "config.json", config.facts())
        return cls(folder, config)

    @classmethod
    def open(cls, folder: Path) -> Run:
        """A run that exists."""
        if not (folder / "config.json").is_file():
            raise DataError(f"{folder} is not a run: it has no config.json; give a folder that 'aggrevated train' made")
        return cls(folder, from_facts(read_json(folder / "config.json"), folder / "config.json"))

    @property
    def label(self) -> str:
        """What a legend calls it; the policy is named wherever there could be another one in the figure."""
        config = self.config
        task, method = tasks()[config.task], METHODS[config.method]
        policy = "" if config.policy == task.policy == "mlp" else f", {config.policy}"
        usual = task.settings.get(config.method, {}).get("start", method.start)
        start = "" if config.start == usual else f", {config.start} start"
        ink = ", real ink" if config.crohme else ", one writer" if config.single_writer else ""
        return f"{method.title}, {config.update}{policy}{start}{ink}"

    def metrics(self) -> list[Facts]:
        """The lines of metrics.jsonl, up to the first that is not whole."""
        return read_lines(self.folder / "metrics.jsonl")

    def result(self) -> Facts | None:
        """result.json, if the run has ended: one of fewer iterations than are asked for now does not count."""
        path = self.folder / "result.json"
        facts = read_json(path) if path.is_file() else {}
        return facts if facts.get("iterations") == self.config.iterations else None

    def so_far(self) -> Facts:
        """What was known when policy.safetensors was written."""
        return self._chosen()[1]["so_far"]  # type: ignore[no-any-return]

    def policy(self) -> Policy:
        """The chosen policy: the best on validation so far."""
        weights, _ = self._chosen()
        policy = blank_policy(self.config)
        try:
            policy.load_state_dict(weights)
        except RuntimeError as error:
            raise DataError(f"{self.folder}/config.json does not fit the policy beside it; restore it") from error
        return policy

    def _chosen(self) -> tuple[dict[str, Tensor], Facts]:
        path = self.folder / "policy.safetensors"
        if not path.is_file():
            raise DataError(f"{self.folder} has no policy yet; finish it with 'aggrevated resume {self.folder}'")
        return unseal(path)


def runs_in(folder: Path) -> list[Run]:
    """The run in a folder, or the trials in its subfolders."""
    trials = sorted(path.parent for path in folder.glob("trial-*/config.json"))
    return [Run.open(path) for path in trials or [folder]]


def refuse_if_used(folder: Path) -> None:
    """A `UsageError` if there is something at that place already."""
    with storage_errors(folder):
        used = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if used:
        a_run = (folder / "config.json").exists() or any(folder.glob("trial-*/config.json"))
        resume = f"go on with 'aggrevated resume {folder}' or " if a_run else ""
        raise UsageError(f"{folder} exists already: {resume}choose another --out")


def unused_folder(folder: Path) -> Path:
    """The folder itself or, where it exists, the first of folder-2, folder-3, … that does not."""
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(path for path in chain([folder], numbered) if not path.exists())


def execute(run: Run, progress: Callable[[Facts], None], warn: Callable[[str], None]) -> Facts:
    """Run it, or the rest of it, to its last iteration, and give its result; `progress` is told of each iteration."""
    config, path = run.config, run.folder / "metrics.jsonl"
    with only_one(run.folder):
        if (ended := run.result()) is not None:
            return ended | {"run": str(run.folder)}  # it may have been moved
        setup, seconds = begin(run, warn)
        if Run.open(run.folder).config != config:  # more iterations were asked for
            write_json(run.folder / "config.json", config.facts())
        learner, clock = setup.learner, time.perf_counter()
        learning = aggrevated(
            learner, setup.world.simulator, setup.world.expert, setup.oracle, setup.loss,
            seed=config.seed, k=config.trajectories, alpha=setup.alpha,
            validate=setup.world.validate, validate_every=config.validate_every,
        )  # fmt: skip
        with path.open("a", encoding="utf-8") as metrics:
            while learner.n < config.iterations:
                line = metrics_of(next(learning), setup, seconds + time.perf_counter() - clock)
                if learner.n % config.validate_every == 0:
                    line |= setup.world.monitor(learner.policy)
                with storage_errors(path):
                    metrics.write(json.dumps(line) + "\n")
                    metrics.flush()
                if learner.n % config.checkpoint_every == 0 or learner.n == config.iterations:
                    keep(run, setup, line["seconds"])
                progress(line)
        return finish(run, setup)


def begin(run: Run, warn: Callable[[str], None]) -> tuple[Setup, float]:
    """(the pieces, with the learner where its newest intact checkpoint left it; the seconds it had used)."""
    sweep(run.folder)
    setup, lines = set_up(run.config), run.metrics()
    checkpoints, own = run.folder / "checkpoints", identity(run.config, setup)
    facts = checkpoint.restore(checkpoints, setup.learner, own, len(lines), warn)
    if facts is None:
        if lines or any(checkpoints.glob("*")):
            warn(f"{run.folder} has no checkpoint that can be used; starting it over, to the same end")
        config, learner = run.config, setup.learner
        demonstrations = config.demonstrations or config.trajectories
        how = Supervision(demonstrations, config.start_steps, config.start_rate, config.seed)
        learner.simulator_steps, learner.oracle_queries = STARTS[config.start](
            learner.policy, setup.world.simulator, setup.world.expert, how
        )
    intact = "".join(json.dumps(line) + "\n" for line in lines[: setup.learner.n])
    write_atomically(run.folder / "metrics.jsonl", intact.encode())
    return setup, facts["seconds"] if facts else 0.0


def identity(config: Config, setup: Setup) -> str:
    """A digest of all that shapes the bits, the expert's weights too; with more iterations it is still the same run."""
    return digest(setup.world.fingerprint, replace(config, iterations=1, checkpoint_every=1).facts())


def metrics_of(iteration: Iteration, setup: Setup, seconds: float) -> Facts:
    """One line of metrics.jsonl."""
    return {
        "iteration": iteration.n,
        "roll_in_return": iteration.roll_in_return,
        "current_return": iteration.current_return,
        "best_return": iteration.best_return,
        "loss": iteration.step.loss,
        "gradient_norm": iteration.step.gradient_norm,
        "kl": iteration.step.kl,
        "halvings": iteration.step.halvings,
        "simulator_steps": setup.learner.simulator_steps,
        "oracle_steps": setup.learner.oracle_steps,
        "oracle_queries": setup.learner.oracle_queries,
        "diverged": setup.learner.diverged,
        "seconds": round(seconds, 3),
    }


def keep(run: Run, setup: Setup, seconds: float) -> None:
    """Write a checkpoint, and the best policy so far as a file of its own."""
    facts = {"seconds": seconds, "config": identity(run.config, setup)}
    checkpoint.save(run.folder / "checkpoints", setup.learner, facts)
    weights = setup.learner.best.weights or {}
    seal(run.folder / "policy.safetensors", weights, {"so_far": so_far(run, setup, seconds), **run.config.facts()})


def so_far(run: Run, setup: Setup, seconds: float) -> Facts:
    """What is known of a run before its policy is tested."""
    learner, config = setup.learner, run.config
    return {
        "task": config.task,
        "method": config.method,
        "update": config.update,
        "seed": config.seed,
        "iterations": learner.n,
        "initial_return": learner.best.first,
        "best_return": learner.best.returned,
        "simulator_steps": learner.simulator_steps,
        "oracle_steps": learner.oracle_steps,
        "oracle_queries": learner.oracle_queries,
        "diverged": learner.diverged,
        "seconds": seconds,
        "shortened_steps": sum(line["halvings"] > 0 for line in run.metrics()),
        "run": str(run.folder),
        "weights_sha256": digest(learner.best.weights or {}),
    }


def finish(run: Run, setup: Setup) -> Facts:
    """Test the chosen policy on what it was not chosen by, and write result.json."""
    learner = setup.learner
    learner.policy.load_state_dict(learner.best.weights or {})
    facts = so_far(run, setup, run.metrics()[-1]["seconds"]) | setup.world.test(learner.policy)
    draw_curve(run, facts)
    write_json(run.folder / "result.json", facts)
    return facts


def draw_curve(run: Run, facts: Facts) -> None:
    """curve.png and curve.svg: what every run leaves to look at."""
    from aggrevated.plots.learning_curves import run_curve

    lines = run.metrics()
    current, best = (
        [facts["initial_return"], *(line[name] for line in lines)] for name in ("current_return", "best_return")
    )
    title = f"{tasks()[run.config.task].title}: {run.label}, seed {run.config.seed}"
    episodes = [n * run.config.trajectories for n in range(len(current))]
    measured = tasks()[run.config.task].measured
    run_curve(episodes, current, best, facts["expert_return"], title, run.folder / "curve", measured)
