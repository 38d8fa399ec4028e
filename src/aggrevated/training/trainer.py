"""Algorithm 1 in a folder. Stopped at any moment, it goes on and ends with the same bits."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from aggrevated import loggers, storage
from aggrevated.algorithm import Iteration, Learner, aggrevated
from aggrevated.config.builder import Setup, set_up
from aggrevated.config.resolver import resolve
from aggrevated.config.summary import chosen
from aggrevated.core.hardware import one_thread
from aggrevated.core.signals import finish_first
from aggrevated.engines import HERE, Engine
from aggrevated.errors import DataError
from aggrevated.experts.behavior_clone import Clone
from aggrevated.kernels.numerics import difference, fingerprint
from aggrevated.problems import World
from aggrevated.tasks import as_task
from aggrevated.training import checkpoint, limits
from aggrevated.training.diagnostics import Examined, Health
from aggrevated.training.records import Metrics, Result
from aggrevated.training.run_folder import (
    CHECKPOINTS,
    CHOSEN,
    CONFIG,
    METRICS,
    RESULT,
    Run,
    identity,
    same_in_all,
    unused_folder,
)

Warn = Callable[[str], None]
LEAST_UNSAVED = 1.0  # seconds of work that are always worth a checkpoint
SHARE = 50  # and how many times what a checkpoint takes


def silent(_: object) -> None:
    """Say nothing."""


def aloud(sentence: str) -> None:
    """Say it on standard error."""
    print(sentence, file=sys.stderr)


def as_warning(sentence: str) -> None:
    """Say it by Python's warnings."""
    warnings.warn(sentence, stacklevel=2)


def train(
    env: Any,
    method: str = "aggrevated",
    *,
    expert: Any = None,
    out: Path | str | None = None,
    progress: Callable[[Metrics], None] = silent,
    say: Callable[[str], None] = aloud,
    warn: Warn = as_warning,
    engine: Engine = HERE,
    log: str | Sequence[str] = (),
    **settings: Any,
) -> Run:
    """Learn a policy in a new run folder; `run.policy` is it.

    `env` is the name of a task, the id of an environment of Gymnasium, a function that makes one, a simulator, or a
    `Task`; `expert` a file, or anything that acts (`aggrevated.as_expert`). Settings have the names of the command
    line's options: `train("cartpole", update="regular", learning_rate=0.01)`. `say` is told what follows from them,
    `progress` of each iteration. `engine` does the work of the lanes, for example `Processes(8)`, and `log`
    names who else hears of the metrics, for example "tensorboard"; neither changes anything in the result.
    """
    loggers.makers(log)  # what is not installed leaves no folder behind
    named = isinstance(expert, str | os.PathLike)
    settings |= {"expert": os.fspath(expert)} if named else {}
    config = resolve(as_task(env, None if named else expert), method, **settings)
    for line in chosen(config):
        say(line)
    run = Run.create(Path(out) if out is not None else unused_folder(config), config)
    execute(run, progress, warn, engine=engine, log=log, say=say)
    return run


def resume(
    folder: Path | str,
    env: Any = None,
    *,
    expert: Any = None,
    iterations: int | None = None,
    budget: int | None = None,
    queries: int | None = None,
    progress: Callable[[Metrics], None] = silent,
    say: Callable[[str], None] = aloud,
    warn: Warn = as_warning,
    engine: Engine = HERE,
    log: str | Sequence[str] = (),
    trust: bool = False,
    anyway: bool = False,
) -> Run:
    """Go on with a run from its last checkpoint, or with more to do; it ends with the same bits as if never stopped.

    `env` and `expert` are what `train` was given, where these were objects or functions that have no name to be found
    by; others than those are refused. `trust`: import the Python code that the folder names.
    """
    run = limits.longer(Run.open(folder, trust=trust, env=env, expert=expert), iterations, budget, queries)
    execute(run, progress, warn, anyway, engine, log, say)
    return run


@dataclass
class Tally:
    """What a run counts besides its learner."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    shortened_steps: int = 0
    dead_iterations: int = 0

    def add(self, line: Metrics) -> None:
        """One more iteration."""
        self.seconds, self.cpu_seconds = line.seconds, line.cpu_seconds
        self.shortened_steps += line.halvings > 0
        self.dead_iterations += bool(line.died)


@dataclass
class Sitting:
    """A run while it is run: its parts, and what there is to be kept of it."""

    run: Run
    setup: Setup
    health: Health
    seal: str  # of the last line of metrics.jsonl
    tally: Tally = field(default_factory=Tally)
    cost: dict[str, int] = field(default_factory=dict)  # of the last iteration, by the limits on it
    unkept: list[storage.Facts] = field(default_factory=list)  # lines since the last checkpoint
    kept: int = 0  # the iteration of the last checkpoint
    kept_at: float = field(default_factory=time.perf_counter)
    keeping_took: float = 0.0

    @property
    def ended(self) -> str:
        """The setting that ends the run here, if one does."""
        learner = self.setup.learner
        return limits.ended_by(self.run.config.loop, learner.n, limits.spent(learner), self.cost)

    def due(self) -> bool:
        """Whether a checkpoint is: every few iterations, at the last, and where much work would be lost."""
        n, loop, since = self.setup.learner.n, self.run.config.loop, time.perf_counter() - self.kept_at
        much = since > max(LEAST_UNSAVED, SHARE * self.keeping_took)
        return n - self.kept >= loop.checkpoint_every or bool(self.ended) or much

    def keep_newest(self) -> None:
        """The same, unless it is done."""
        if self.kept != self.setup.learner.n:
            self.keep()

    def keep(self) -> None:
        """Write a checkpoint, and the best policy so far as a file of its own."""
        run, setup, began = self.run, self.setup, time.perf_counter()
        facts = {
            "tally": asdict(self.tally),
            "cost": self.cost,
            "config": identity(run.config, setup.world),
            "habits": storage.digest(dict(setup.world.habits)),
            "arithmetic": fingerprint(),
            "metrics": {"seal": self.seal, "lines": self.unkept},
        }
        checkpoint.save(run.folder / CHECKPOINTS, setup.learner, setup.oracle, facts)
        self.keep_chosen()
        self.kept, self.unkept, self.kept_at = setup.learner.n, [], time.perf_counter()
        self.keeping_took = self.kept_at - began

    def keep_chosen(self) -> None:
        """Only the latter."""
        run, best = self.run, self.setup.learner.best
        known = {"so_far": so_far(self).facts(), "config": same_in_all(run.config), "arithmetic": fingerprint()}
        storage.seal(run.folder / CHOSEN, best.weights or {}, known)

    def validate_last(self) -> None:
        """Let the last policy be a candidate, where a limit ended the run between two validations.

        No checkpoint knows of it: a run that is made longer is as if it had been that long from the start.
        """
        setup, learner = self.setup, self.setup.learner
        if learner.n % self.run.config.loop.validate_every or learner.best.weights is None:
            learner.challenge(setup.world.validate(learner.policy), learner.n)


def execute(
    run: Run,
    progress: Callable[[Metrics], None] = silent,
    warn: Warn = silent,
    anyway: bool = False,
    engine: Engine = HERE,
    log: str | Sequence[str] = (),
    say: Callable[[str], None] = silent,
) -> Result:
    """Run it, or the rest of it, to its end, and give its result; `progress` is told of each iteration.

    Where this machine does not compute as that which began it, the rest is refused, but for `anyway`. `engine` does the
    work of the lanes, and changes nothing. Asked to stop by a signal, it finishes the iteration and keeps it first.
    The logs that `log` names hear of every iteration, of those that were run before first. `say` is told what will
    take long.
    """
    loggers.makers(log)
    with storage.only_one(run.folder), one_thread():
        if (ended := whole_result(run, warn)) is not None:
            return replace(ended, run=str(run.folder))  # it may have been moved
        sitting = begin(run, warn, anyway)
        sitting.setup = replace(sitting.setup, world=sitting.setup.world.over(engine))
        if Run.open(run.folder, run.config.task).config != run.config:  # more was asked for
            storage.seal_json(run.folder / CONFIG, run.config.facts())
        with loggers.telling(log, run.folder, run.config.facts(), warn) as told:
            for line in run.metrics() if log else ():
                told.write(line.facts())
            with finish_first() as stop:
                for metrics in learning(sitting, warn, engine):
                    told.write(metrics.facts())
                    progress(metrics)
                    if stop.asked is not None:
                        sitting.keep_newest()
                        stop.leave()
                if stop.asked is not None:
                    stop.leave()
            sitting.validate_last()
            if digest_of_chosen(run) != storage.digest(sitting.setup.learner.best.weights or {}):
                sitting.keep_chosen()  # by that line, or a stop came between a checkpoint and it, or it was damaged
            result = finish(sitting, say)
            told.close(result.facts())
        return result


def whole_result(run: Run, warn: Warn) -> Result | None:
    """The result of a run that has ended and left all that belongs to it; None if there is something to be done.

    What does not belong together is a `DataError`.
    """
    result = run.result()
    if result is None or digest_of_chosen(run, warn) is None:
        return None
    if storage.digest(run.chosen()[0]) != result.weights_sha256:
        raise DataError(f"{run.folder}/{RESULT} is not of the policy beside it; remove it, and resume makes it again")
    lines = run.metrics()
    return result if (lines[-1].iteration if lines else 0) == result.iterations else None


def digest_of_chosen(run: Run, warn: Warn = silent) -> str | None:
    """Of the chosen policy's weights; None if it is missing or damaged, and to be made again from the checkpoints."""
    if not (run.folder / CHOSEN).is_file():
        return None
    try:
        return storage.digest(storage.unseal(run.folder / CHOSEN)[0])
    except DataError as error:
        warn(f"{error}; it is made again from the last checkpoint")
        return None


def learning(sitting: Sitting, warn: Warn, engine: Engine = HERE) -> Iterator[Metrics]:
    """The iterations that are missing, each written down, and a checkpoint every few of them."""
    run, setup, health, tally = sitting.run, sitting.setup, sitting.health, sitting.tally
    learner, loop, began = setup.learner, run.config.loop, time.perf_counter() - tally.seconds
    cpu_began = time.process_time() - tally.cpu_seconds
    iterations = aggrevated(
        learner, setup.world.simulator, setup.world.expert, setup.oracle, setup.loss,
        seed=loop.seed, k=loop.trajectories, alpha=setup.alpha,
        validate=setup.world.validate, validate_every=loop.validate_every, engine=engine,
    )  # fmt: skip
    with storage.Journal(run.folder / METRICS, sitting.seal) as journal:
        while not sitting.ended:
            before = limits.spent(learner)
            iteration = next(iterations)
            took = time.perf_counter() - began, time.process_time() - cpu_began
            metrics = metrics_of(iteration, learner, *took)
            metrics = replace(metrics, died=health.after(metrics))
            if learner.n % loop.validate_every == 0:
                metrics = replace(metrics, more=setup.world.monitor(learner.policy))
            tally.add(metrics)
            sitting.cost = limits.since(learner, before)
            journal.append(metrics.facts())
            sitting.seal = journal.seal
            sitting.unkept.append(metrics.facts())
            if sitting.due():
                journal.sync()
                sitting.keep()
            for sentence in health.news():
                warn(f"{run.folder}, iteration {learner.n}: {sentence}")
            yield metrics
            limits.refuse_endless(run, sitting.cost)


def begin(run: Run, warn: Warn, anyway: bool = False) -> Sitting:
    """The parts, with learner and oracle where the newest intact checkpoint left them."""
    storage.sweep(run.folder)
    setup, lines = set_up(run.config), [line.facts() for line in run.metrics()]
    learner, loop, checkpoints = setup.learner, run.config.loop, run.folder / CHECKPOINTS
    learner.update = Examined(learner.update)
    own, habits = identity(run.config, setup.world), storage.digest(dict(setup.world.habits))
    kept = checkpoint.restore(checkpoints, learner, setup.oracle, own, habits, warn)
    tally = Tally(**kept.facts["tally"]) if kept is not None else Tally()
    if kept is not None:
        refuse_elsewhere(run, kept.facts["arithmetic"], warn, anyway)
        lines = kept.lines(lines, run.folder / METRICS, warn)
    else:
        if lines or any(checkpoints.glob("*")):
            warn(f"{run.folder} has no checkpoint that can be used; starting it over, to the same end")
        lines, cpu_began = [], time.process_time()
        learner.start_simulator_steps, learner.oracle_queries = run.config.start.begin(
            learner.policy, setup.world.simulator, setup.world.expert, loop.seed, loop.trajectories
        )
        learner.simulator_steps = learner.start_simulator_steps
        tally.cpu_seconds = round(time.process_time() - cpu_began, 3)
    records = [Metrics.read(line, run.folder / METRICS) for line in lines]
    seal = storage.rewrite_journal(run.folder / METRICS, (record.facts() for record in records))
    cost = kept.facts["cost"] if kept is not None else {}
    sitting = Sitting(run, setup, Health.of(records), seal, tally, cost, kept=learner.n)
    if kept is not None and seal != kept.facts["metrics"]["seal"]:  # lines are lost for good
        sitting.unkept = kept.facts["metrics"]["lines"]
        sitting.keep()
    return sitting


def refuse_elsewhere(run: Run, then: storage.Facts, warn: Warn, anyway: bool) -> None:
    """A `DataError` where this machine or its packages do not compute as those before; a warning with `anyway`."""
    if elsewhere := difference(then, fingerprint()):
        sentence = f"{run.folder} was begun with {elsewhere}: it would not end with the bits that it would have there"
        if not anyway:
            raise DataError(f"{sentence}; go on there, or here with 'aggrevated resume {run.folder} --anyway'")
        warn(sentence)


def metrics_of(iteration: Iteration, learner: Learner, seconds: float, cpu_seconds: float) -> Metrics:
    """One line of metrics.jsonl."""
    returns = asdict(iteration)
    n, step = returns.pop("n"), returns.pop("step")
    known = {**returns, **step, **checkpoint.counts(learner)}
    return Metrics(iteration=n, **known, seconds=round(seconds, 3), cpu_seconds=round(cpu_seconds, 3), died="")


def so_far(sitting: Sitting) -> Result:
    """What is known of a run before its policy is tested."""
    run, learner = sitting.run, sitting.setup.learner
    config = run.config
    return Result(
        task=config.task.name,
        method=config.method,
        update=config.update.name,
        seed=config.loop.seed,
        iterations=learner.n,
        budget=config.loop.budget,
        queries=config.loop.queries,
        ended=sitting.ended,
        initial_return=learner.best.first,
        best_return=learner.best.returned,
        **checkpoint.counts(learner),
        **asdict(sitting.tally),
        run=str(run.folder),
        weights_sha256=storage.digest(learner.best.weights or {}),
    )


def finish(sitting: Sitting, say: Callable[[str], None] = silent) -> Result:
    """Test the chosen policy on what it was not chosen by, and write result.json."""
    run, learner = sitting.run, sitting.setup.learner
    learner.policy.load_state_dict(learner.best.weights or {})
    test: Any = sitting.setup.world.test
    test = test.after(answers_of_expert(learner)) if hasattr(test, "after") else test
    if hasattr(test, "notice") and (notice := test.notice()):
        say(notice)
    score = test(learner.policy)
    same = expert_on_validation(sitting.setup.world)
    note = better_before(sitting, same)
    result = replace(so_far(sitting), more=score.facts() | ({"note": note} if note else {}))
    if note:
        say(note)
    draw_curve(run, result, *((score.expert_return, "expert in the test") if same is None else (same, "expert")))
    storage.seal_json(run.folder / RESULT, result.facts())
    return result


def answers_of_expert(learner: Learner) -> int:
    """How often π* was asked in training, about: by the start, in roll-outs, and as who knows better."""
    return learner.start_simulator_steps + learner.oracle_steps + learner.oracle_queries


def better_before(sitting: Sitting, expert: float | None) -> str:
    """That a supervised start, or a clone of demonstrations, is better on validation than what was learned, if so."""
    learner, config, found = sitting.setup.learner, sitting.run.config, list[str]()
    best = learner.best
    if config.start.name != "random" and best.n == 0 < learner.n:
        found.append(
            f"no policy that was learned did better on validation than the first, of the {config.start.name} start, "
            f"with {best.first:.4g}: that one was chosen"
        )
    if expert is not None and isinstance(sitting.setup.world.expert, Clone) and expert > best.returned:
        found.append(
            f"the clone of the demonstrations does better on validation, {expert:.4g}, than the chosen policy, "
            f"{best.returned:.4g}"
        )
    return "; ".join(found)


def expert_on_validation(world: World) -> float | None:
    """What π* gets on what the policies were chosen by; None where that would take long, or cannot be told."""
    validate: Any = world.validate
    try:
        return float(validate(world.expert)) if world.validates_expert else None
    except DataError:  # too many of few episodes diverged: no reason to lose a run that has ended
        return None


def draw_curve(run: Run, result: Result, expert: float, whose: str) -> None:
    """curve.png and curve.svg: what every run leaves to look at."""
    from aggrevated.plots.learning_curves import run_curve

    config, lines = run.config, run.metrics()
    current = [result.initial_return, *(line.current_return for line in lines)]
    best = [result.initial_return, *(line.best_return for line in lines)]
    title = f"{config.task.title}: {run.label}, seed {config.loop.seed}"
    episodes = [n * config.loop.trajectories for n in (0, *(line.iteration for line in lines))]
    run_curve(episodes, current, best, expert, title, run.folder / "curve", config.world.measured, whose)
