"""What `aggrevated watch` shows: the learned policy and its expert, from the same start."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from aggrevated.errors import UsageError
from aggrevated.experiments import tasks
from aggrevated.files import Facts
from aggrevated.plots.animation import Panel, side_by_side
from aggrevated.randomness import Purpose, seeds
from aggrevated.roll_in import Mixture, roll_in
from aggrevated.runs.run import Run
from aggrevated.setup import set_up
from aggrevated.simulators import Simulator
from aggrevated.simulators.partial import Partial


def watch(run: Run, seed: int, path: Path) -> Facts:
    """Write the GIF; where it is, and the two returns."""
    if tasks()[run.config.task].world != "control":
        raise UsageError(f"{run.folder} is a run of {run.config.task}, which does not move; use 'aggrevated parse'")
    world = set_up(run.config).world
    start = seeds(seed, Purpose.TEST, 0, 1)
    name, parts = drawn(world.simulator)
    panels = []
    for title, mixture, seen in (
        (f"learned ({run.label})", Mixture(None, run.policy().actor(), alpha=0.0), parts),
        ("expert", Mixture(world.expert, None, alpha=1.0), dict.fromkeys(parts, True)),
    ):
        rolled = roll_in(world.simulator, mixture, start)
        last, _, _ = world.simulator.step(rolled.states[:, -1], rolled.actions[:, -1])
        panels.append(Panel(title, np.concatenate([rolled.states[0, 1:], last]), rolled.costs[0], seen))
    side_by_side(name, panels, path)
    learned, expert = (float(-panel.costs.sum()) for panel in panels)
    return {"gif": str(path), "learned_return": learned, "expert_return": expert}


def drawn(simulator: Simulator) -> tuple[str, Mapping[str, bool]]:
    """The simulator whose picture it is, by name, and which parts of a state the learner sees; none if it sees all."""
    if isinstance(simulator, Partial):
        return simulator.simulator.name, simulator.parts
    return simulator.name, {}
