"""What a run says of its expert: on which episodes it was measured, and whether there was anything to learn from it."""

from pathlib import Path
from typing import Any

import numpy as np

import aggrevated
import surroundings
from aggrevated.randomness import Purpose, seeds
from aggrevated.runs.run import Run
from aggrevated.simulators.cartpole import CartPole
from aggrevated.validation import mean_return

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
    world, seed = run.config.built_world, run.config.loop.seed
    expected = mean_return(world.expert, world.simulator, seeds(seed, Purpose.VALIDATION, 0, 6))
    assert expected != run.result().more["expert_return"]  # type: ignore[union-attr]
    assert f"<!-- expert ({expected:.3g}) -->" in legend_of(run)


def test_the_line_of_another_expert_says_that_it_is_of_the_test(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", surroundings.make, surroundings.lazy)
    measured = run.result().more["expert_return"]  # type: ignore[union-attr]
    assert f"<!-- expert in the test ({measured:.3g}) -->" in legend_of(run)
