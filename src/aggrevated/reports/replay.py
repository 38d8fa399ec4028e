"""Animation for `aggrevated watch`: the learned policy and its expert from the same start."""

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
    """Write the GIF, and return its path and both returns.

    Raises:
        UsageError: the run is not of a control task.
    """
    problem = run.config.problem
    if not isinstance(problem, ControlProblem):
        raise UsageError(
            f"{run.folder} is a run of {run.config.task.name}, which is not a control task and cannot be animated"
        )
    name, parts = find_drawable_simulator(problem.simulator)
    with single_thread():
        panels = [
            make_panel(
                f"learned ({run.label})",
                problem.simulator,
                RollInPolicy(None, run.policy.actor(), alpha=0.0),
                seed,
                parts,
            ),
            make_panel(
                "expert",
                problem.simulator,
                RollInPolicy(problem.loaded_expert, None, 1.0),
                seed,
                dict.fromkeys(parts, True),
            ),
        ]
        panels = [replace(panel, pictures=render_frames(problem.simulator, panel, panels)) for panel in panels]
    write_comparison_gif(name, panels, path)
    learned, expert = (float(-panel.costs.sum()) for panel in panels)
    return {"gif": str(path), "learned_return": learned, "expert_return": expert}


def make_panel(title: str, simulator: Simulator, policy: RollInPolicy, seed: int, seen: Mapping[str, bool]) -> Panel:
    """Return the panel of one episode."""
    trajectory = roll_in(simulator, policy, derive_seeds(seed, SeedPurpose.TEST, 0, 1))
    last, _, _ = simulator.step(trajectory.states[:, -1], trajectory.actions[:, -1])
    return Panel(title, np.concatenate([trajectory.states[0, 1:], last]), trajectory.costs[0], seen)


def render_frames(simulator: Simulator, panel: Panel, panels: Sequence[Panel]) -> dict[int, Image.Image] | None:
    """Return the images of the steps to draw, where the simulator renders itself; else None."""
    renderer = find_wrapped("pictures", simulator)
    if renderer is None:
        return None
    steps = sorted({min(t, len(panel.costs) - 1) for t in select_steps(panels)})
    images = map(Image.fromarray, renderer.pictures(panel.states[steps]))
    return {t: resize_frame(image) for t, image in zip(steps, images, strict=True)}


def resize_frame(image: Image.Image) -> Image.Image:
    """Return the image at the width of this package's drawings."""
    return image.convert("RGB").resize((WIDTH, max(1, round(image.height * WIDTH / image.width))))


def find_drawable_simulator(simulator: Simulator) -> tuple[str, Mapping[str, bool]]:
    """Return the name of the simulator to draw, and by part of the state whether the learner sees it.

    The second is empty if the learner sees everything.
    """
    if isinstance(simulator, PartialObservationSimulator):
        return simulator.simulator.name, simulator.parts
    return simulator.name, {}
