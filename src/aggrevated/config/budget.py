"""What an iteration costs at most, before the first: so that a budget buys several of them."""

from collections.abc import Mapping
from typing import Any

from gymnasium.spaces import Discrete

from aggrevated.config import Config


def max_cost_per_trajectory(pieces: Mapping[str, Any]) -> dict[str, int]:
    """Of a roll-in of all H steps and the questions about it, by the names of the limits."""
    steps, space = pieces["problem"].steps, pieces["problem"].spaces()[1]
    actions = int(space.n) if isinstance(space, Discrete) else None
    return {"budget": steps + pieces["oracle"].max_steps(steps, actions), "queries": steps}


def max_cost_per_iteration(config: Config) -> dict[str, int]:
    """The same of all K."""
    return {name: config.loop.trajectories * most for name, most in max_cost_per_trajectory(config.components).items()}
