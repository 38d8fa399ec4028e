"""Comparison of a run with its expert: the episodes of the measurement, and whether there was anything to learn."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aggrevated
from aggrevated.config.resolver import resolve_config
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.simulators.cartpole import CartPole
from aggrevated.tasks import as_task
from aggrevated.training.run_folder import Run
from aggrevated.validation import evaluate_mean_return
from helpers import gymnasium_environments

FEW = {"iterations": 1, "trajectories": 3, "validation_episodes": 6, "test_episodes": 9, "horizon": 20}


def ignore_message(_: str) -> None:
    pass


def train_small_run(folder: Path, environment: Any, expert: Any, **settings: Any) -> Run:
    """Train a small custom run."""
    return aggrevated.train(environment, expert=expert, out=folder, say=ignore_message, **FEW | settings)


def read_curve_svg(run: Run) -> str:
    """Return the figure of a run as text; matplotlib repeats its labels in comments."""
    return (run.folder / "curve.svg").read_text(encoding="utf-8")


def make_demonstrations(action: int = 1) -> list[tuple[Any, Any]]:
    """Return demonstrations of CartPole with one constant action."""
    return [(np.full((5, 4), 0.1 * i, np.float32), np.full(5, action)) for i in range(4)]


def test_learning_curve_shows_a_network_expert_on_validation_episodes(tmp_path: Path) -> None:
    run = train_small_run(tmp_path / "run", CartPole(20), make_demonstrations())
    world = run.config.built_problem
    seed = run.config.loop.seed
    expected = evaluate_mean_return(world.expert, world.simulator, derive_seeds(seed, SeedPurpose.VALIDATION, 0, 6))
    assert expected != run.result().more["expert_return"]  # type: ignore[union-attr]
    assert f"<!-- expert ({expected:.3g}) -->" in read_curve_svg(run)


def test_learning_curve_marks_another_expert_as_measured_in_the_test(tmp_path: Path) -> None:
    run = train_small_run(tmp_path / "run", gymnasium_environments.make, gymnasium_environments.lazy)
    measured = run.result().more["expert_return"]  # type: ignore[union-attr]
    assert f"<!-- expert in the test ({measured:.3g}) -->" in read_curve_svg(run)


class SlowExpert:
    """Expert that counts its calls and can be slow."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.answers = 0

    def act(self, observation: Any) -> int:
        self.answers += 1
        time.sleep(self.seconds)
        return gymnasium_environments.act(observation)


def test_expert_test_takes_no_more_answers_than_training(tmp_path: Path) -> None:
    expert = SlowExpert()
    before = list[int]()
    settings = {name: value for name, value in FEW.items() if name != "test_episodes"} | {"iterations": 3}
    run = aggrevated.train(
        gymnasium_environments.make, expert=expert, out=tmp_path / "run", say=ignore_message,
        progress=lambda line: before.append(expert.answers), **settings,
    )  # fmt: skip
    result = run.result()
    assert result is not None and 20 <= result.more["expert_episodes"] < 1000
    assert expert.answers - before[-1] <= before[-1] + 20 * 20
    given = train_small_run(tmp_path / "given", gymnasium_environments.make, SlowExpert(), test_episodes=300)
    assert "expert_episodes" not in given.result().more  # type: ignore[union-attr]


def test_held_out_evaluator_announces_a_slow_test_only() -> None:
    """100 episodes of 20 steps at 20 ms take 40 seconds; the fast expert takes far less than 5 ms."""
    notices = [read_notice(SlowExpert(seconds)) for seconds in (0.02, 0.0)]
    assert "100 of the expert SlowExpert" in notices[0] and "--test-episodes" in notices[0] and notices[1] == ""


def read_notice(expert: SlowExpert) -> str:
    """Return the notice before a test of 100 episodes of 20 steps."""
    config = resolve_config(as_task(gymnasium_environments.make, expert), horizon=20, test_episodes=100)
    test: Any = config.built_problem.test
    return str(test.notice())


def test_train_announces_a_slow_test_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggrevated.problems.control.LONG", 0.0)
    messages: list[str] = []
    expert = SlowExpert()
    aggrevated.train(gymnasium_environments.make, expert=expert, out=tmp_path / "run", say=messages.append, **FEW)
    assert "9 of the expert SlowExpert" in messages[-1] and len(messages) == 6


def test_result_notes_a_behavior_clone_better_than_the_learned_policy(tmp_path: Path) -> None:
    """The learned policy is random, with a tiny step size; the clone imitates a balancing expert."""
    simulator = CartPole(60)
    seen = simulator.observe(simulator.reset(np.arange(300, dtype=np.uint64)))
    balanced = [(seen, (seen[:, 2] + seen[:, 3] > 0).astype(int))]
    still = {"update": "regular", "target_kl": 1e-12, "horizon": 60}
    run = train_small_run(tmp_path / "run", simulator, balanced, **still)
    result = run.result()
    assert result is not None and "the clone of the demonstrations does better on validation" in result.more["note"]
    good = train_small_run(tmp_path / "good", simulator, balanced, horizon=60, iterations=12, trajectories=20)
    assert "note" not in good.result().more  # type: ignore[union-attr]


def test_result_notes_a_supervised_start_that_was_not_improved(tmp_path: Path) -> None:
    still = {"update": "regular", "target_kl": 1e-12, "start": "supervised", "start_steps": 2}
    run = train_small_run(tmp_path / "run", gymnasium_environments.make, gymnasium_environments.act, **still)
    result = run.result()
    assert result is not None and "the supervised start" in result.more["note"]
    assert result.best_return == result.initial_return


def test_result_notes_an_untrained_policy_that_was_not_improved(tmp_path: Path) -> None:
    still = {"update": "regular", "target_kl": 1e-12}
    run = train_small_run(tmp_path / "run", gymnasium_environments.make, gymnasium_environments.act, **still)
    result = run.result()
    assert result is not None and "better on validation than the untrained policy" in result.more["note"]


def test_result_notes_an_expert_below_the_untrained_policy(tmp_path: Path) -> None:
    run = train_small_run(tmp_path / "run", CartPole(60), lambda observation: 0, horizon=60, iterations=2)
    result = run.result()
    assert result is not None and "is below that of the policy before training" in result.more["note"]
