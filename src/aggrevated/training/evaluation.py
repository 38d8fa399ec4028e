"""Test of a run's best policy: at the end of the run, and again at any time after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from aggrevated import storage
from aggrevated.algorithm import Learner
from aggrevated.core.errors import DataError
from aggrevated.core.hardware import single_thread
from aggrevated.experts.behavior_clone import BehaviorClone
from aggrevated.problems import EvaluationSettings, Problem, Score
from aggrevated.training.records import Evaluation, Result
from aggrevated.training.run_folder import (
    RESULT,
    Run,
)
from aggrevated.training.session import TrainingSession, ignore_message, make_partial_result
from aggrevated.validation import as_validation_score

SIGNIFICANT_ERRORS = 2.0  # standard errors that make a difference


def evaluate_run(run: Run, how: EvaluationSettings) -> Evaluation:
    """Measure the score of a run's best policy again, without using any earlier measurement.

    Args:
        run: The run.
        how: What is measured, for example on how many episodes of which seeds.

    Returns:
        The score, with the names of task, method and update and the digest of the weights.
    """
    config = run.config
    policy = run.policy
    weights = storage.digest_tensors(policy.state_dict())
    with single_thread():
        score = how.measure(config.problem, policy)
    names = {"task": config.task.name, "method": config.method, "update": config.update.name}
    return Evaluation(**names, seed=config.loop.seed, run=str(run.folder), weights_sha256=weights, more=score)


def finish_run(session: TrainingSession, say: Callable[[str], None] = ignore_message) -> Result:
    """Test the best policy on data that did not select it, plot the learning curve, and write result.json."""
    run = session.run
    learner = session.inputs.learner
    learner.policy.load_state_dict(learner.best.weights or {})
    test: Any = session.inputs.problem.test
    test = test.with_training_cost(count_expert_queries(learner)) if hasattr(test, "with_training_cost") else test
    if hasattr(test, "notice") and (notice := test.notice()):
        say(notice)
    score = test(learner.policy)
    expert_return = validate_expert(session.inputs.problem)
    note = describe_failure(session, expert_return, score)
    result = replace(make_partial_result(session), more=score.to_dict() | ({"note": note} if note else {}))
    if note:
        say(note)
    reference = (score.expert_return, "expert in the test") if expert_return is None else (expert_return, "expert")
    plot_learning_curve(run, result, *reference)
    storage.save_checksummed_json(run.folder / RESULT, result.to_dict())
    return result


def count_expert_queries(learner: Learner) -> int:
    """Return about how often π* was queried in training: by the start, in roll-outs and by the oracle."""
    return learner.start_simulator_steps + learner.oracle_steps + learner.oracle_queries


def describe_failure(session: TrainingSession, expert_return: float | None, score: Score) -> str:
    """Return why the best policy is not what a user expects of training, and what to try; "" if nothing is wrong.

    Args:
        session: the ended session.
        expert_return: validation score of π*, if it is known.
        score: the test scores of the best policy and of π*.
    """
    learner = session.inputs.learner
    config = session.run.config
    notes = list[str]()
    best = learner.best
    if best.n == 0 < learner.n:
        start = "the untrained policy" if config.start.name == "random" else f"the {config.start.name} start"
        notes.append(
            f"no policy that was learned did better on validation than {start}, with {best.initial_return:.4g}: that "
            "one was chosen; try another --method or --update"
        )
    error = score.expert_standard_error or 0.0
    if score.expert_return + SIGNIFICANT_ERRORS * error < best.initial_return:
        notes.append(
            f"the expert's return, {score.expert_return:.4g} in the test, is below that of the policy before training, "
            f"{best.initial_return:.4g} on validation; check the expert with 'aggrevated doctor'"
        )
    is_clone = isinstance(session.inputs.problem.expert, BehaviorClone)
    if expert_return is not None and is_clone and expert_return > best.best_return:
        notes.append(
            f"the clone of the demonstrations does better on validation, {expert_return:.4g}, than the chosen policy, "
            f"{best.best_return:.4g}"
        )
    return "; ".join(notes)


def validate_expert(problem: Problem) -> float | None:
    """Return the validation score of π*; None where it would take long or cannot be measured."""
    validate: Any = problem.validate
    try:
        return as_validation_score(validate(problem.expert)).value if problem.validates_expert else None
    except DataError:  # too many episodes diverged: a run that has ended is not discarded for that
        return None


def plot_learning_curve(run: Run, result: Result, expert_return: float, expert_label: str) -> None:
    """Write curve.png and curve.svg to the run folder."""
    from aggrevated.plots.learning_curves import plot_run_curve

    config = run.config
    metrics = run.metrics()
    current = [result.initial_return, *(line.current_return for line in metrics)]
    best = [result.initial_return, *(line.best_return for line in metrics)]
    title = f"{config.task.title}: {run.label}, seed {config.loop.seed}"
    episodes = [n * config.loop.trajectories for n in (0, *(line.iteration for line in metrics))]
    metric = config.problem.metric_name
    plot_run_curve(episodes, current, best, expert_return, title, run.folder / "curve", metric, expert_label)
