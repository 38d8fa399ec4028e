"""States as their environment draws them."""

from __future__ import annotations

from typing import Any

import numpy as np

from aggrevated.core.arrays import Array
from aggrevated.core.user_code import answer
from aggrevated.errors import UsageError
from aggrevated.simulators.gymnasium.make import begin, drawing
from aggrevated.simulators.gymnasium.restore import Way
from aggrevated.simulators.gymnasium.space_conversion import Border
from aggrevated.simulators.gymnasium.states import Spot


def drawn(border: Border, way: Way, spots: list[Spot]) -> list[Array]:
    """A picture uint8 [h, w, 3] of each, by one environment that goes from one to the next."""
    env, at, pictures = drawing(border.source, border.name), None, []
    try:
        answer(border.name, "reset", lambda: begin(env, 0, border.seeding))
        for spot in spots:
            at = way.bring(env, spot.back, at)
            pictures.append(picture(border.name, answer(border.name, "render", env.render)))
    finally:
        env.close()
    return pictures


def picture(name: str, given: Any) -> Array:
    """What `render` gave, if it is a picture."""
    if given is None or np.ndim(given) != 3 or np.shape(given)[2] not in (3, 4):
        raise UsageError(f"{name} cannot be drawn: let its render return arrays [height, width, 3]")
    return np.array(given, np.uint8)[:, :, :3]
