"""The end of a run: its best policy is tested and its curve drawn; and a run is evaluated again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from aggrevated import storage
from aggrevated.algorithm import Learner
from aggrevated.core.errors import DataError
from aggrevated.core.hardware import single_thread
from aggrevated.experts.behavior_clone import BehaviorClone
from aggrevated.problems import EvaluationSettings, Problem
from aggrevated.training.records import Evaluation, Result
from aggrevated.training.run_folder import (
    RESULT,
    Run,
)
from aggrevated.training.session import TrainingSession, ignore_message, make_partial_result
from aggrevated.validation import as_validation_score


def evaluate_run(run: Run, how: EvaluationSettings) -> Evaluation:
    """The score of the run's chosen policy, measured anew, and nothing of what was measured before."""
    config = run.config
    policy = run.policy
    weights = storage.digest_tensors(policy.state_dict())
    with single_thread():
        score = how.measure(config.problem, policy)
    whose = {"task": config.task.name, "method": config.method, "update": config.update.name}
    return Evaluation(**whose, seed=config.loop.seed, run=str(run.folder), weights_sha256=weights, more=score)


def finish_run(sitting: TrainingSession, say: Callable[[str], None] = ignore_message) -> Result:
    """Test the chosen policy on what it was not chosen by, and write result.json."""
    run = sitting.run
    learner = sitting.inputs.learner
    learner.policy.load_state_dict(learner.best.weights or {})
    test: Any = sitting.inputs.problem.test
    test = test.with_training_cost(count_expert_queries(learner)) if hasattr(test, "with_training_cost") else test
    if hasattr(test, "notice") and (notice := test.notice()):
        say(notice)
    score = test(learner.policy)
    same = validate_expert(sitting.inputs.problem)
    note = describe_unimproved_start(sitting, same)
    result = replace(make_partial_result(sitting), more=score.to_dict() | ({"note": note} if note else {}))
    if note:
        say(note)
    plot_learning_curve(
        run, result, *((score.expert_return, "expert in the test") if same is None else (same, "expert"))
    )
    storage.save_checksummed_json(run.folder / RESULT, result.to_dict())
    return result


def count_expert_queries(learner: Learner) -> int:
    """How often π* was asked in training, about: by the start, in roll-outs, and as who knows better."""
    return learner.start_simulator_steps + learner.oracle_steps + learner.oracle_queries


def describe_unimproved_start(sitting: TrainingSession, expert: float | None) -> str:
    """That a supervised start, or a clone of demonstrations, is better on validation than what was learned, if so."""
    learner = sitting.inputs.learner
    config = sitting.run.config
    found = list[str]()
    best = learner.best
    if config.start.name != "random" and best.n == 0 < learner.n:
        found.append(
            f"no policy that was learned did better on validation than the first, of the {config.start.name} start, "
            f"with {best.initial_return:.4g}: that one was chosen"
        )
    if expert is not None and isinstance(sitting.inputs.problem.expert, BehaviorClone) and expert > best.best_return:
        found.append(
            f"the clone of the demonstrations does better on validation, {expert:.4g}, than the chosen policy, "
            f"{best.best_return:.4g}"
        )
    return "; ".join(found)


def validate_expert(world: Problem) -> float | None:
    """What π* gets on what the policies were chosen by; None where that would take long, or cannot be told."""
    validate: Any = world.validate
    try:
        return as_validation_score(validate(world.expert)).value if world.validates_expert else None
    except DataError:  # too many of few episodes diverged: no reason to lose a run that has ended
        return None


def plot_learning_curve(run: Run, result: Result, expert: float, whose: str) -> None:
    """curve.png and curve.svg: what every run leaves to look at."""
    from aggrevated.plots.learning_curves import plot_run_curve

    config = run.config
    lines = run.metrics()
    current = [result.initial_return, *(line.current_return for line in lines)]
    best = [result.initial_return, *(line.best_return for line in lines)]
    title = f"{config.task.title}: {run.label}, seed {config.loop.seed}"
    episodes = [n * config.loop.trajectories for n in (0, *(line.iteration for line in lines))]
    plot_run_curve(episodes, current, best, expert, title, run.folder / "curve", config.problem.metric_name, whose)
