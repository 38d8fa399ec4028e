"""Tiny Gymnasium environments with several kinds of observations and actions, and simulators of them."""

from dataclasses import dataclass

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from aggrevated.core.spaces import SpaceAdapter
from aggrevated.simulators.gymnasium import GymnasiumSimulator


class Line(gymnasium.Env):
    """Walk to 0 from anywhere in -5 … 5: left, stay, right; a step costs the distance before it."""

    observation_space = Box(-10.0, 10.0, (2,), np.float32)
    action_space = Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = float(self.np_random.integers(-5, 6))
        return self.observation(), {}

    def observation(self):
        return np.array([self.x, abs(self.x)], np.float32)

    def step(self, action):
        reward = -abs(self.x)
        self.x += int(action) - 1
        return self.observation(), reward, abs(self.x) > 9, False, {}


class Pushed(Line):
    """Variant of `Line` whose action is a push, a vector."""

    action_space = Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action):
        reward = -abs(self.x)
        self.x += float(action[0])
        return self.observation(), reward, abs(self.x) > 9, False, {}


def line(horizon: int = 8) -> GymnasiumSimulator:
    return GymnasiumSimulator(Line, horizon)


def pushed(horizon: int = 8) -> GymnasiumSimulator:
    return GymnasiumSimulator(Pushed, horizon)


@dataclass(frozen=True)
class Grid:
    """Simulator with a space adapter: a Dict of position and lamp, two choices at once; a step costs |x| + |y|."""

    name: str = "grid"
    horizon: int = 6
    space_adapter = SpaceAdapter(
        Dict({"lamp": Discrete(2), "place": Box(-9, 9, (2,), np.int64)}), MultiDiscrete([3, 3], start=[-1, -1])
    )
    observation_space = space_adapter.observation_space
    action_space = space_adapter.action_space

    def reset(self, seeds):
        return np.stack([np.random.default_rng(int(seed)).integers(-3, 4, 2) for seed in seeds])

    def observe(self, state):
        lamps = np.eye(2)[(state.sum(axis=1) > 0).astype(int)]
        return np.concatenate([lamps, state], axis=1).astype(np.float32)

    def step(self, state, action):
        return (
            state + self.space_adapter.to_native_actions(action),
            np.abs(state).sum(axis=1).astype(float),
            np.zeros(len(state)),
        )


STATES = np.array([[-3, 0], [0, 2], [1, 1]])  # states of the grid
HOMEWARDS = -np.sign(STATES)  # in the grid's action space
