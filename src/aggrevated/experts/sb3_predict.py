"""What has a method `predict`, as models of Stable-Baselines3 and policies learned here do, as an expert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from aggrevated.core.arrays import Array
from aggrevated.errors import UsageError
from aggrevated.experts.environment_view import EnvironmentView
from aggrevated.experts.signatures import split_rows


@dataclass(frozen=True)
class SB3PredictExpert:
    """By `predict(observation, deterministic=True)`: all at once where observations are a Box, else one by one."""

    name: str
    model: Any
    native: EnvironmentView

    def act(self, states: Array, t: int) -> Array:
        from aggrevated.experts.torch_modules import single_torch_thread

        part, n = f"the expert {self.name}", len(states)
        with single_torch_thread():
            if isinstance(self.native.space_adapter.observations, Box):
                chosen = split_rows(self._predicted(self.native.batch(states)), n, part) if n else []
            else:
                chosen = [self._predicted(one) for one in self.native.observations(states)]
        return self.native.ours(part, chosen)

    def _predicted(self, observations: Any) -> Any:
        action, memory = self.model.predict(observations, deterministic=True)
        if memory is not None and np.size(memory):
            raise UsageError(
                f"the expert {self.name} remembers what it saw, and an expert is asked about states alone; give one "
                "without a recurrent policy"
            )
        return action
