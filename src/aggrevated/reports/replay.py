"""What `aggrevated watch` shows: the learned policy and its expert, from the same start."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from aggrevated.core.hardware import one_thread
from aggrevated.core.rng import Purpose, seeds
from aggrevated.errors import UsageError
from aggrevated.plots.animation import Panel, side_by_side, steps_shown
from aggrevated.plots.state_drawings import WIDTH
from aggrevated.problems.control import Control
from aggrevated.rollout.roll_in import Mixture, roll_in
from aggrevated.simulators import Simulator, that_can
from aggrevated.simulators.partial_observation import Partial
from aggrevated.storage import Facts
from aggrevated.training.run_folder import Run


def watch(run: Run, seed: int, path: Path) -> Facts:
    """Write the GIF; where it is, and the two returns."""
    world = run.config.world
    if not isinstance(world, Control):
        raise UsageError(f"{run.folder} is a run of {run.config.task.name}, which is not of control and does not move")
    name, parts = drawn(world.simulator)
    with one_thread():
        panels = [
            panel(f"learned ({run.label})", world.simulator, Mixture(None, run.policy.actor(), alpha=0.0), seed, parts),
            panel("expert", world.simulator, Mixture(world.loaded_expert, None, 1.0), seed, dict.fromkeys(parts, True)),
        ]
        panels = [replace(one, pictures=pictures(world.simulator, one, panels)) for one in panels]
    side_by_side(name, panels, path)
    learned, expert = (float(-panel.costs.sum()) for panel in panels)
    return {"gif": str(path), "learned_return": learned, "expert_return": expert}


def panel(title: str, simulator: Simulator, mixture: Mixture, seed: int, seen: Mapping[str, bool]) -> Panel:
    """One episode."""
    rolled = roll_in(simulator, mixture, seeds(seed, Purpose.TEST, 0, 1))
    last, _, _ = simulator.step(rolled.states[:, -1], rolled.actions[:, -1])
    return Panel(title, np.concatenate([rolled.states[0, 1:], last]), rolled.costs[0], seen)


def pictures(simulator: Simulator, panel: Panel, panels: Sequence[Panel]) -> dict[int, Image.Image] | None:
    """By step, those that are shown, where the simulator draws itself; None where it does not."""
    draws = that_can("pictures", simulator)
    if draws is None:
        return None
    steps = sorted({min(t, len(panel.costs) - 1) for t in steps_shown(panels)})
    images = map(Image.fromarray, draws.pictures(panel.states[steps]))
    return {t: resized(image) for t, image in zip(steps, images, strict=True)}


def resized(image: Image.Image) -> Image.Image:
    """As wide as our own drawings."""
    return image.convert("RGB").resize((WIDTH, max(1, round(image.height * WIDTH / image.width))))


def drawn(simulator: Simulator) -> tuple[str, Mapping[str, bool]]:
    """The simulator whose picture it is, by name, and which parts of a state the learner sees; none if it sees all."""
    if isinstance(simulator, Partial):
        return simulator.simulator.name, simulator.parts
    return simulator.name, {}
