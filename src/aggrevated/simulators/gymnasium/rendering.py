"""States as their environment draws them."""

from __future__ import annotations

from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.user_code import call_user_code
from aggrevated.errors import UsageError
from aggrevated.simulators.gymnasium.make import make_rendering_environment, reset_environment
from aggrevated.simulators.gymnasium.restore import StateRestorer
from aggrevated.simulators.gymnasium.space_conversion import EnvironmentAdapter
from aggrevated.simulators.gymnasium.states import EnvironmentState


def render_states(border: EnvironmentAdapter, way: StateRestorer, spots: list[EnvironmentState]) -> list[Array]:
    """A picture uint8 [h, w, 3] of each, by one environment that goes from one to the next."""
    env, at, pictures = make_rendering_environment(border.source, border.name), None, []
    try:
        call_user_code(border.name, "reset", lambda: reset_environment(env, 0, border.seeding))
        for spot in spots:
            at = way.bring(env, spot.back, at)
            pictures.append(check_frame(border.name, call_user_code(border.name, "render", env.render)))
    finally:
        env.close()
    return pictures


def check_frame(name: str, given: Any) -> Array:
    """What `render` gave, if it is a picture."""
    if given is None or np.ndim(given) != 3 or np.shape(given)[2] not in (3, 4):
        raise UsageError(f"{name} cannot be drawn: let its render return arrays [height, width, 3]")
    return np.array(given, np.uint8)[:, :, :3]
