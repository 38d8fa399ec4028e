"""Models of Stable-Baselines3 on small environments, and those environments as simulators."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space

from aggrevated.core.arrays import Array
from aggrevated.core.spaces import SpaceAdapter

BOX = Box(-np.array([1, 2, 3], np.float32), np.array([1, 2, 3], np.float32))
MATRIX = Box(-5.0, 5.0, (2, 2), np.float64)
DICT = Dict({"z": Box(-1.0, 1.0, (2, 2)), "a": Discrete(3), "m": MultiDiscrete([2, 3]), "b": MultiBinary(2)})
ARM = Box(np.array([-2.0, 0.5], np.float32), np.array([3.0, 1.0], np.float32))


class Small(gymnasium.Env[Any, Any]):
    """Environment with random observations and episodes of five steps."""

    def __init__(self, observations: Space[Any], actions: Space[Any]) -> None:
        self.observation_space = observations
        self.action_space = actions
        self.t = 0

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return self.observation_space.sample(), 1.0 + self.t, False, self.t == 5, {}


@dataclass(frozen=True)
class ObservationSimulator:
    """Simulator with only the parts that an expert needs; its states are observations as vectors."""

    space_adapter: SpaceAdapter
    name: str = "small"
    horizon: int = 5

    @property
    def observation_space(self) -> Box:
        return self.space_adapter.observation_space

    @property
    def action_space(self) -> Discrete | Box:
        return self.space_adapter.action_space

    def observe(self, state: Array) -> Array:
        return state.astype(np.float32)

    def reset(self, seeds: Array) -> Array:
        raise NotImplementedError

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        raise NotImplementedError


def make_simulator(observations: Space[Any], actions: Space[Any]) -> ObservationSimulator:
    return ObservationSimulator(SpaceAdapter(observations, actions))


def find_algorithm(name: str) -> Any:
    import sb3_contrib
    import stable_baselines3

    return getattr(stable_baselines3, name, None) or getattr(sb3_contrib, name)


def save_random_model(name: str, observations: Space[Any], actions: Space[Any], path: Path, **more: Any) -> Any:
    """Make a model with random weights, far from zero, save it to the path and return it."""
    policy = "MultiInputPolicy" if isinstance(observations, Dict) else "MlpPolicy"
    layout = {"net_arch": [16, 8]} | more.pop("policy_kwargs", {})
    if name in ("DQN", "QRDQN", "SAC", "TD3", "DDPG", "TQC"):
        more["buffer_size"] = 100
    model = find_algorithm(name)(
        policy, Small(observations, actions), policy_kwargs=layout, gamma=0.97, seed=3, device="cpu", **more
    )
    randomize_weights(model)
    model.save(path)
    return model


def randomize_weights(model: Any) -> None:
    """Set random weights, all far from zero."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            scale = 0.6 if parameter.ndim == 2 else 0.05  # outputs depend more on observations than on biases
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))


def sample_observations(space: Space[Any], n: int) -> Any:
    """Return a batch of observations in the form of Stable-Baselines3."""
    space.seed(7)
    rows = [space.sample() for _ in range(n)]
    if isinstance(space, Dict):
        return {key: np.stack([row[key] for row in rows]) for key in space.spaces}
    return np.stack(rows)
