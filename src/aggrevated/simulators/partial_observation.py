"""Partial observation: any simulator, seen through a function. The oracle keeps the state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.simulators import Simulator


@dataclass(frozen=True)
class PartialObservationSimulator:
    """`simulator`, of whose states the learner sees `view(state)`, float32 [n, ...]; all else is as it was."""

    simulator: Simulator
    view: Callable[[Array], Array]
    observation_space: Box
    name: str
    parts: Mapping[str, bool] = field(default_factory=dict)  # of a state, by name: does the view show it?

    @property
    def horizon(self) -> int:
        return self.simulator.horizon

    @property
    def action_space(self) -> Discrete | Box:
        return self.simulator.action_space

    def reset(self, seeds: Array) -> Array:
        return self.simulator.reset(seeds)

    def observe(self, state: Array) -> Array:
        return self.view(state)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        return self.simulator.step(state, action)


@dataclass(frozen=True)
class ColumnSelection:
    """A view that shows some of the numbers of what the simulator itself shows."""

    simulator: Simulator
    columns: tuple[int, ...]

    def __call__(self, state: Array) -> Array:
        return np.ascontiguousarray(self.simulator.observe(state)[:, self.columns])

    @property
    def space(self) -> Box:
        """Of the observations."""
        whole = self.simulator.observation_space
        seen = list(self.columns)
        return Box(whole.low[seen], whole.high[seen])


def select_columns(
    simulator: Simulator, columns: tuple[int, ...], name: str, parts: Mapping[str, bool] | None = None
) -> PartialObservationSimulator:
    """The simulator, of whose observations the learner sees these columns."""
    view = ColumnSelection(simulator, columns)
    return PartialObservationSimulator(simulator, view, view.space, name, parts or {})
