"""What a run says of its expert: on which episodes it was measured, and whether there was anything to learn from it."""

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
from helpers import gymnasium_environments as surroundings

FEW = {"iterations": 1, "trajectories": 3, "validation_episodes": 6, "test_episodes": 9, "horizon": 20}


def silent(_: str) -> None:
    pass


def trained(folder: Path, environment: Any, expert: Any, **settings: Any) -> Run:
    """A small run of one's own."""
    return aggrevated.train(environment, expert=expert, out=folder, say=silent, **FEW | settings)


def legend_of(run: Run) -> str:
    """All that is written in the figure that it left: matplotlib repeats words as comments."""
    return (run.folder / "curve.svg").read_text(encoding="utf-8")


def recorded(action: int = 1) -> list[tuple[Any, Any]]:
    """Demonstrations of CartPole by somebody who does one thing only."""
    return [(np.full((5, 4), 0.1 * i, np.float32), np.full(5, action)) for i in range(4)]


def test_an_expert_that_is_a_network_is_drawn_on_the_episodes_that_the_curve_is_of(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", CartPole(20), recorded())
    world = run.config.built_problem
    seed = run.config.loop.seed
    expected = evaluate_mean_return(world.expert, world.simulator, derive_seeds(seed, SeedPurpose.VALIDATION, 0, 6))
    assert expected != run.result().more["expert_return"]  # type: ignore[union-attr]
    assert f"<!-- expert ({expected:.3g}) -->" in legend_of(run)


def test_the_line_of_another_expert_says_that_it_is_of_the_test(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", surroundings.make, surroundings.lazy)
    measured = run.result().more["expert_return"]  # type: ignore[union-attr]
    assert f"<!-- expert in the test ({measured:.3g}) -->" in legend_of(run)


class Slow:
    """An expert that counts its answers and can be made to take its time."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.answers = 0

    def act(self, observation: Any) -> int:
        self.answers += 1
        time.sleep(self.seconds)
        return surroundings.act(observation)


def test_an_expert_answers_in_its_test_no_more_often_than_in_training(tmp_path: Path) -> None:
    expert = Slow()
    before = list[int]()
    settings = {name: value for name, value in FEW.items() if name != "test_episodes"} | {"iterations": 3}
    run = aggrevated.train(
        surroundings.make, expert=expert, out=tmp_path / "run", say=silent,
        progress=lambda line: before.append(expert.answers), **settings,
    )  # fmt: skip
    result = run.result()
    assert result is not None and 20 <= result.more["expert_episodes"] < 1000
    assert expert.answers - before[-1] <= before[-1] + 20 * 20
    given = trained(tmp_path / "given", surroundings.make, Slow(), test_episodes=300)
    assert "expert_episodes" not in given.result().more  # type: ignore[union-attr]


def test_a_slow_test_is_announced_and_a_quick_one_is_not() -> None:
    """1,000 episodes of 20 steps at 2 ms are 40 seconds."""
    notices = [notice_of(Slow(seconds)) for seconds in (0.002, 0.0)]
    assert "1,000 of the expert Slow" in notices[0] and "--test-episodes" in notices[0] and notices[1] == ""


def notice_of(expert: Slow) -> str:
    """What is said before a test of 1,000 episodes of 20 steps."""
    config = resolve_config(as_task(surroundings.make, expert), horizon=20)
    test: Any = config.built_problem.test
    return str(test.notice())


def test_it_is_said_before_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggrevated.problems.control.LONG", 0.0)
    said: list[str] = []
    expert = Slow()
    aggrevated.train(surroundings.make, expert=expert, out=tmp_path / "run", say=said.append, **FEW)
    assert "9 of the expert Slow" in said[-1] and len(said) == 6


def test_a_clone_that_is_better_than_what_was_learned_is_said(tmp_path: Path) -> None:
    """A random policy that learns by steps of next to nothing, beside a clone of somebody who balances."""
    simulator = CartPole(60)
    seen = simulator.observe(simulator.reset(np.arange(300, dtype=np.uint64)))
    balanced = [(seen, (seen[:, 2] + seen[:, 3] > 0).astype(int))]
    still = {"update": "regular", "target_kl": 1e-12, "horizon": 60}
    run = trained(tmp_path / "run", simulator, balanced, **still)
    result = run.result()
    assert result is not None and "the clone of the demonstrations does better on validation" in result.more["note"]
    good = trained(tmp_path / "good", simulator, balanced, horizon=60, iterations=12, trajectories=20)
    assert "note" not in good.result().more  # type: ignore[union-attr]


def test_a_supervised_start_that_was_not_improved_is_said(tmp_path: Path) -> None:
    still = {"update": "regular", "target_kl": 1e-12, "start": "supervised", "start_steps": 2}
    run = trained(tmp_path / "run", surroundings.make, surroundings.act, **still)
    result = run.result()
    assert result is not None and "of the supervised start" in result.more["note"]
    assert result.best_return == result.initial_return
