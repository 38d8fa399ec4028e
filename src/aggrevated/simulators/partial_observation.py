"""Partial observation: any simulator, observed through a function. The oracle still sees the full state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.simulators import Simulator


@dataclass(frozen=True)
class PartialObservationSimulator:
    """A simulator whose observations are replaced by `view(state)`.

    Args:
        simulator: the simulator that resets and steps.
        view: function from states [n, ...] to observations, float32 [n, ...].
        observation_space: space of one observation of the view.
        name: name in messages and files.
        parts: parts of a state by name, true where the view shows the part; for the record of a run.
    """

    simulator: Simulator
    view: Callable[[Array], Array]
    observation_space: Box
    name: str
    parts: Mapping[str, bool] = field(default_factory=dict)

    @property
    def horizon(self) -> int:
        """H, the horizon of the wrapped simulator."""
        return self.simulator.horizon

    @property
    def action_space(self) -> Discrete | Box:
        """Action space of the wrapped simulator."""
        return self.simulator.action_space

    def reset(self, seeds: Array) -> Array:
        """Return initial states [n, ...] of the wrapped simulator, one per seed [n]."""
        return self.simulator.reset(seeds)

    def observe(self, state: Array) -> Array:
        """Return the view's observations, float32 [n, ...], of states [n, ...]."""
        return self.view(state)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Return (next states, costs [n], done [n]) of the wrapped simulator."""
        return self.simulator.step(state, action)


@dataclass(frozen=True)
class ColumnSelection:
    """A view that selects columns of the simulator's observations."""

    simulator: Simulator
    columns: tuple[int, ...]

    def __call__(self, state: Array) -> Array:
        return np.ascontiguousarray(self.simulator.observe(state)[:, self.columns])

    @property
    def space(self) -> Box:
        """Space of the selected columns."""
        full = self.simulator.observation_space
        columns = list(self.columns)
        return Box(full.low[columns], full.high[columns])


def select_columns(
    simulator: Simulator, columns: tuple[int, ...], name: str, parts: Mapping[str, bool] | None = None
) -> PartialObservationSimulator:
    """Return the simulator with only some columns of its observations.

    Args:
        simulator: the simulator, with observations [n, O].
        columns: indices of the columns that the learner observes.
        name: name of the new simulator.
        parts: parts of a state by name, true where the columns show the part.

    Returns:
        A simulator with the same states, actions and costs, and observations [n, len(columns)].

    Example:
        >>> from aggrevated import CartPole
        >>> select_columns(CartPole(), (0, 2), "cartpole-positions").observation_space.shape
        (2,)
    """
    view = ColumnSelection(simulator, columns)
    return PartialObservationSimulator(simulator, view, view.space, name, parts or {})
