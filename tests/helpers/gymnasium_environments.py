"""Environment and experts as a user would write them, imported by references to this module."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete


class Corridor(gymnasium.Env[Any, Any]):
    """Walk to the lit end of a corridor; the observation has the lit end and the position."""

    observation_space = Dict({"goal": Discrete(2), "place": Box(-500.0, 500.0, (1,))})
    action_space = Discrete(3, start=-1)

    def __init__(self, length: int = 5, render_mode: str | None = None) -> None:
        self.length = length
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.goal = int(self.np_random.integers(2))
        self.place = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in (-1, 0, 1)
        self.place += int(action)
        at_goal = self.place == (self.length if self.goal else -self.length)
        return self._observe(), 10.0 * at_goal - 1.0, at_goal, False, {}

    def _observe(self) -> dict[str, Any]:
        return {"goal": self.goal, "place": np.array([100.0 * self.place], np.float32)}

    def render(self) -> Any:
        picture = np.full((20, 60, 3), 255, np.uint8)
        picture[:, 30 + 4 * self.place - 2 : 30 + 4 * self.place + 2] = 0
        return picture


def make() -> Corridor:
    return Corridor()


def act(observation: Any) -> int:
    """Return the move to the lit end."""
    return 1 if observation["goal"] else -1


def lazy(observation: Any) -> int:
    """Return the move to the lit end, but stay at every third position."""
    return 0 if round(observation["place"][0] / 100) % 3 == 1 else act(observation)
