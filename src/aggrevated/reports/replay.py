"""What `aggrevated watch` shows: the learned policy and its expert, from the same start."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from aggrevated.core.errors import UsageError
from aggrevated.core.hardware import single_thread
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.plots.animation import Panel, select_steps, write_comparison_gif
from aggrevated.plots.state_drawings import WIDTH
from aggrevated.problems.control import ControlProblem
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import Simulator, find_wrapped
from aggrevated.simulators.partial_observation import PartialObservationSimulator
from aggrevated.storage import JsonDict
from aggrevated.training.run_folder import Run


def write_replay_gif(run: Run, seed: int, path: Path) -> JsonDict:
    """Write the GIF; where it is, and the two returns."""
    world = run.config.problem
    if not isinstance(world, ControlProblem):
        raise UsageError(f"{run.folder} is a run of {run.config.task.name}, which is not of control and does not move")
    name, parts = find_drawable_simulator(world.simulator)
    with single_thread():
        panels = [
            make_panel(
                f"learned ({run.label})",
                world.simulator,
                RollInPolicy(None, run.policy.actor(), alpha=0.0),
                seed,
                parts,
            ),
            make_panel(
                "expert",
                world.simulator,
                RollInPolicy(world.loaded_expert, None, 1.0),
                seed,
                dict.fromkeys(parts, True),
            ),
        ]
        panels = [replace(one, pictures=render_frames(world.simulator, one, panels)) for one in panels]
    write_comparison_gif(name, panels, path)
    learned, expert = (float(-panel.costs.sum()) for panel in panels)
    return {"gif": str(path), "learned_return": learned, "expert_return": expert}


def make_panel(title: str, simulator: Simulator, mixture: RollInPolicy, seed: int, seen: Mapping[str, bool]) -> Panel:
    """One episode."""
    rolled = roll_in(simulator, mixture, derive_seeds(seed, SeedPurpose.TEST, 0, 1))
    last, _, _ = simulator.step(rolled.states[:, -1], rolled.actions[:, -1])
    return Panel(title, np.concatenate([rolled.states[0, 1:], last]), rolled.costs[0], seen)


def render_frames(simulator: Simulator, panel: Panel, panels: Sequence[Panel]) -> dict[int, Image.Image] | None:
    """By step, those that are shown, where the simulator draws itself; None where it does not."""
    draws = find_wrapped("pictures", simulator)
    if draws is None:
        return None
    steps = sorted({min(t, len(panel.costs) - 1) for t in select_steps(panels)})
    images = map(Image.fromarray, draws.pictures(panel.states[steps]))
    return {t: resize_frame(image) for t, image in zip(steps, images, strict=True)}


def resize_frame(image: Image.Image) -> Image.Image:
    """As wide as our own drawings."""
    return image.convert("RGB").resize((WIDTH, max(1, round(image.height * WIDTH / image.width))))


def find_drawable_simulator(simulator: Simulator) -> tuple[str, Mapping[str, bool]]:
    """The simulator whose picture it is, by name, and which parts of a state the learner sees; none if it sees all."""
    if isinstance(simulator, PartialObservationSimulator):
        return simulator.simulator.name, simulator.parts
    return simulator.name, {}
