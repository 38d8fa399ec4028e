"""A run: Algorithm 1 in a folder. Stopped at any moment, it goes on and ends with the same bits."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from torch import Tensor

from aggrevated import files
from aggrevated.algorithm import Iteration, Learner, aggrevated
from aggrevated.arithmetic import difference, fingerprint
from aggrevated.config import Config
from aggrevated.config.building import Setup, blank_policy, set_up
from aggrevated.config.resolving import from_facts, resolve
from aggrevated.engines import HERE, Engine
from aggrevated.errors import DataError, UsageError
from aggrevated.health import Examined, Health
from aggrevated.machine import one_thread
from aggrevated.policies import Policy
from aggrevated.runs import checkpoint
from aggrevated.runs.records import Evaluation, Metrics, Result
from aggrevated.tasks import Task
from aggrevated.worlds import EvaluationSettings

CHOSEN = "policy.safetensors"  # the best policy so far
SEVERAL = ("trial-*", "seed-*")  # what the folders of runs are called that belong together


@dataclass(frozen=True)
class Run:
    """A run's folder and what it was asked to do."""

    folder: Path
    config: Config

    @classmethod
    def create(cls, folder: Path, config: Config) -> Run:
        """A new run. A folder that already holds something is refused, so that no run is overwritten."""
        with one_thread():
            set_up(config)  # what cannot be set up, for example for lack of its expert, leaves no folder behind
        refuse_if_used(folder)
        files.write_json(folder / "config.json", config.facts())
        return cls(folder, config)

    @classmethod
    def open(cls, folder: Path | str, task: Task | None = None) -> Run:
        """A run that exists; one of a task that has no name to be found by needs the task itself."""
        folder = Path(folder)
        if not (folder / "config.json").is_file():
            raise DataError(f"{folder} is not a run: it has no config.json; give a folder that 'aggrevated train' made")
        return cls(folder, from_facts(files.read_json(folder / "config.json"), folder / "config.json", task))

    @property
    def label(self) -> str:
        """What a legend calls it; the policy is named wherever there could be another one in the figure."""
        config, task = self.config, self.config.task
        policy = "" if config.policy.name == task.policy == "mlp" else f", {config.policy.name}"
        picked = {"method": config.method, "policy": config.policy.name, "update": config.update.name}
        usual = task.tuned_for(picked).get("start", config.row.start)
        start = "" if config.start.name == usual else f", {config.start.name} start"
        usual_oracles = (task.oracle, *config.row.cost_to_go[:1])
        oracle = "" if config.oracle.name in usual_oracles else f", {config.oracle.name}"
        then = "" if config.reinforcement.name == config.row.reinforcement else f", then {config.reinforcement.name}"
        return f"{config.row.title}, {config.update.name}{policy}{start}{oracle}{then}{config.world.label}"

    def metrics(self) -> list[Metrics]:
        """The lines of metrics.jsonl, up to the first that is not whole."""
        path = self.folder / "metrics.jsonl"
        return [Metrics.read(line, path) for line in files.read_lines(path)]

    def result(self) -> Result | None:
        """result.json, if the run has ended: one of fewer iterations than are asked for now does not count."""
        path = self.folder / "result.json"
        result = Result.read(files.read_json(path), path) if path.is_file() else None
        return result if result is not None and result.iterations == self.config.loop.iterations else None

    def so_far(self) -> Result:
        """What was known when policy.safetensors was written."""
        return Result.read(self._chosen()[1]["so_far"], self.folder / CHOSEN)

    @property
    def policy(self) -> Policy:
        """The chosen policy: the best on validation so far."""
        weights, _ = self._chosen()
        policy = blank_policy(self.config)
        try:
            policy.load_state_dict(weights)
        except RuntimeError as error:
            raise DataError(f"{self.folder}/config.json does not fit the policy beside it; restore it") from error
        return policy

    def _chosen(self) -> tuple[dict[str, Tensor], files.Facts]:
        path = self.folder / CHOSEN
        if not path.is_file():
            raise DataError(f"{self.folder} has no policy yet; finish it with 'aggrevated resume {self.folder}'")
        return files.unseal(path)


def made_or_opened(folder: Path, config: Config) -> Run:
    """The run in the folder, if it was asked for the same; a new one if there is none."""
    if not (folder / "config.json").is_file():
        return Run.create(folder, config)
    run = Run.open(folder, config.task)
    if run.config != config:
        raise UsageError(f"{folder} holds a run with other settings; choose another --out or remove it")
    return run


def runs_in(folder: Path) -> list[Run]:
    """The run in a folder, or the trials, or the seeds of a trial of a sweep, in its subfolders."""
    several = sorted(path.parent for name in SEVERAL for path in folder.glob(f"{name}/config.json"))
    return [Run.open(path) for path in several or [folder]]


def refuse_if_used(folder: Path) -> None:
    """A `UsageError` if there is something at that place already."""
    with files.storage_errors(folder):
        used = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if used:
        a_run = (folder / "config.json").exists() or any(folder.glob("trial-*/config.json"))
        resume = f"go on with 'aggrevated resume {folder}' or " if a_run else ""
        raise UsageError(f"{folder} exists already: {resume}choose another --out")


def unused_folder(config: Config) -> Path:
    """runs/TASK-METHOD-UPDATE or, where it exists, the first of those with -2, -3, … behind it that does not."""
    folder = Path("runs") / f"{config.task.name}-{config.method}-{config.update.name}"
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(path for path in chain([folder], numbered) if not path.exists())


def silent(_: object) -> None:
    """Say nothing."""


def as_warning(sentence: str) -> None:
    """Say it by Python's warnings."""
    warnings.warn(sentence, stacklevel=2)


def train(
    task: Task | str,
    method: str = "aggrevated",
    *,
    out: Path | str | None = None,
    progress: Callable[[Metrics], None] = silent,
    warn: Callable[[str], None] = as_warning,
    engine: Engine = HERE,
    **settings: Any,
) -> Run:
    """Learn a policy for a task, given by name or as the object that it is, in a new run folder; `run.policy` is it.

    Settings have the names of the command line's options: `train("cartpole", update="regular", learning_rate=0.01)`.
    `engine` does the work of the lanes, for example `Processes(8)`, and changes nothing in the result.
    """
    config = resolve(task, method, **settings)
    run = Run.create(Path(out) if out is not None else unused_folder(config), config)
    execute(run, progress, warn, engine=engine)
    return run


def execute(
    run: Run,
    progress: Callable[[Metrics], None] = silent,
    warn: Callable[[str], None] = silent,
    anyway: bool = False,
    engine: Engine = HERE,
) -> Result:
    """Run it, or the rest of it, to its last iteration, and give its result; `progress` is told of each iteration.

    Where this machine does not compute as that which began it, the rest is refused, but for `anyway`. `engine` does the
    work of the lanes, and changes nothing.
    """
    with files.only_one(run.folder), one_thread():
        if (ended := run.result()) is not None and (run.folder / CHOSEN).is_file():
            return replace(ended, run=str(run.folder))  # it may have been moved
        setup, seconds = begin(run, warn, anyway)
        setup = replace(setup, world=setup.world.over(engine))
        if Run.open(run.folder, run.config.task).config != run.config:  # more iterations were asked for
            files.write_json(run.folder / "config.json", run.config.facts())
        for metrics in learning(run, setup, seconds, warn, engine):
            progress(metrics)
        if not (run.folder / CHOSEN).is_file():  # somebody removed it
            keep(run, setup, seconds)
        return finish(run, setup)


def learning(
    run: Run, setup: Setup, seconds: float, warn: Callable[[str], None], engine: Engine = HERE
) -> Iterator[Metrics]:
    """The iterations that are missing, each written down, and a checkpoint every few of them."""
    learner, loop, path, clock = setup.learner, run.config.loop, run.folder / "metrics.jsonl", time.perf_counter()
    health = Health.of(run.metrics())
    iterations = aggrevated(
        learner, setup.world.simulator, setup.world.expert, setup.oracle, setup.loss,
        seed=loop.seed, k=loop.trajectories, alpha=setup.alpha,
        validate=setup.world.validate, validate_every=loop.validate_every, engine=engine,
    )  # fmt: skip
    with path.open("a", encoding="utf-8") as file:
        while learner.n < loop.iterations:
            metrics = metrics_of(next(iterations), learner, seconds + time.perf_counter() - clock)
            metrics = replace(metrics, died=health.after(metrics))
            if learner.n % loop.validate_every == 0:
                metrics = replace(metrics, more=setup.world.monitor(learner.policy))
            with files.storage_errors(path):
                file.write(json.dumps(metrics.facts()) + "\n")
                file.flush()
            if learner.n % loop.checkpoint_every == 0 or learner.n == loop.iterations:
                keep(run, setup, metrics.seconds)
            for sentence in health.news():
                warn(f"{run.folder}, iteration {learner.n}: {sentence}")
            yield metrics


def begin(run: Run, warn: Callable[[str], None], anyway: bool = False) -> tuple[Setup, float]:
    """(the parts, with learner and oracle where the newest intact checkpoint left them; the seconds it had used)."""
    files.sweep(run.folder)
    setup, lines = set_up(run.config), run.metrics()
    learner, loop, checkpoints = setup.learner, run.config.loop, run.folder / "checkpoints"
    learner.update = Examined(learner.update)
    facts = checkpoint.restore(checkpoints, learner, setup.oracle, identity(run.config, setup), len(lines), warn)
    if facts is not None and (elsewhere := difference(facts.get("arithmetic", {}), fingerprint())):
        sentence = f"{run.folder} was begun with {elsewhere}: it would not end with the bits that it would have there"
        if not anyway:
            raise DataError(f"{sentence}; go on there, or here with 'aggrevated resume {run.folder} --anyway'")
        warn(sentence)
    if facts is None:
        if lines or any(checkpoints.glob("*")):
            warn(f"{run.folder} has no checkpoint that can be used; starting it over, to the same end")
        learner.start_simulator_steps, learner.oracle_queries = run.config.start.begin(
            learner.policy, setup.world.simulator, setup.world.expert, loop.seed, loop.trajectories
        )
        learner.simulator_steps = learner.start_simulator_steps
    intact = "".join(json.dumps(line.facts()) + "\n" for line in lines[: learner.n])
    files.write_atomically(run.folder / "metrics.jsonl", intact.encode())
    return setup, facts["seconds"] if facts else 0.0


def identity(config: Config, setup: Setup) -> str:
    """A digest of all that shapes the bits, the expert's weights too; with more iterations it is still the same run."""
    return files.digest(dict(setup.world.fingerprint), config.replaced(iterations=1, checkpoint_every=1).facts())


def metrics_of(iteration: Iteration, learner: Learner, seconds: float) -> Metrics:
    """One line of metrics.jsonl."""
    returns = asdict(iteration)
    n, step = returns.pop("n"), returns.pop("step")
    return Metrics(iteration=n, **returns, **step, **checkpoint.counts(learner), seconds=round(seconds, 3), died="")


def keep(run: Run, setup: Setup, seconds: float) -> None:
    """Write a checkpoint, and the best policy so far as a file of its own."""
    facts = {"seconds": seconds, "config": identity(run.config, setup), "arithmetic": fingerprint()}
    checkpoint.save(run.folder / "checkpoints", setup.learner, setup.oracle, facts)
    known = so_far(run, setup.learner, seconds).facts()
    files.seal(run.folder / CHOSEN, setup.learner.best.weights or {}, {"so_far": known, **run.config.facts()})


def so_far(run: Run, learner: Learner, seconds: float) -> Result:
    """What is known of a run before its policy is tested."""
    config, lines = run.config, run.metrics()
    return Result(
        task=config.task.name,
        method=config.method,
        update=config.update.name,
        seed=config.loop.seed,
        iterations=learner.n,
        initial_return=learner.best.first,
        best_return=learner.best.returned,
        **checkpoint.counts(learner),
        seconds=seconds,
        shortened_steps=sum(line.halvings > 0 for line in lines),
        dead_iterations=sum(bool(line.died) for line in lines),
        run=str(run.folder),
        weights_sha256=files.digest(learner.best.weights or {}),
    )


def finish(run: Run, setup: Setup) -> Result:
    """Test the chosen policy on what it was not chosen by, and write result.json."""
    learner = setup.learner
    learner.policy.load_state_dict(learner.best.weights or {})
    score = setup.world.test(learner.policy)
    result = replace(so_far(run, learner, run.metrics()[-1].seconds), more=score.facts())
    draw_curve(run, result, score.expert_return)
    files.write_json(run.folder / "result.json", result.facts())
    return result


def evaluate(run: Run, how: EvaluationSettings) -> Evaluation:
    """The score of the run's chosen policy, measured anew, and nothing of what was measured before."""
    config, policy = run.config, run.policy
    weights = files.digest(policy.state_dict())
    with one_thread():
        score = how.measure(config.world, policy)
    whose = {"task": config.task.name, "method": config.method, "update": config.update.name}
    return Evaluation(**whose, seed=config.loop.seed, run=str(run.folder), weights_sha256=weights, more=score)


def draw_curve(run: Run, result: Result, expert: float) -> None:
    """curve.png and curve.svg: what every run leaves to look at."""
    from aggrevated.plots.learning_curves import run_curve

    config, lines = run.config, run.metrics()
    current = [result.initial_return, *(line.current_return for line in lines)]
    best = [result.initial_return, *(line.best_return for line in lines)]
    title = f"{config.task.title}: {run.label}, seed {config.loop.seed}"
    episodes = [n * config.loop.trajectories for n in range(len(current))]
    run_curve(episodes, current, best, expert, title, run.folder / "curve", config.world.measured)
