"""Simulator whose observations are images: a bright pixel must be moved onto a dimmer one."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated import ControlProblem, Task

SIDE = 8
STEPS = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])


class Grid:
    """Simulator whose states are the positions (row, column) of both pixels."""

    name = "grid"
    observation_space = Box(0.0, 255.0, (SIDE, SIDE), np.float32)
    action_space = Discrete(4)

    def __init__(self, horizon: int = 16) -> None:
        self.horizon = horizon

    def reset(self, seeds):
        drawn = [np.random.default_rng(int(seed)).choice(SIDE**2, 2, replace=False) for seed in seeds]
        return np.stack(np.divmod(np.stack(drawn), SIDE), axis=-1).reshape(-1, 4).astype(np.int64)

    def observe(self, state):
        pictures = np.zeros((len(state), SIDE, SIDE), np.float32)
        rows = np.arange(len(state))
        pictures[rows, state[:, 2], state[:, 3]] = 100.0
        pictures[rows, state[:, 0], state[:, 1]] = 255.0
        return pictures

    def step(self, state, action):
        moved = np.concatenate([(state[:, :2] + STEPS[action]).clip(0, SIDE - 1), state[:, 2:]], axis=1)
        return moved, np.ones(len(state)), (moved[:, :2] == moved[:, 2:]).all(axis=1)


class Guide:
    """Expert that knows the shortest path, and Q of every action."""

    name = "guide"

    def __init__(self, simulator: Grid) -> None:
        self.simulator = simulator

    def q(self, states):
        after = [self.simulator.step(states, np.full(len(states), action))[0] for action in range(4)]
        return np.stack([1.0 + np.abs(s[:, :2] - s[:, 2:]).sum(axis=1) for s in after], axis=1)

    def act(self, states, t):
        return self.q(states).argmin(axis=1)


GRID = Task(
    name="grid",
    title="A pixel to its place",
    problem=ControlProblem(
        make=Grid,
        make_expert=Guide,
        worst_return=lambda horizon: -float(horizon),
        horizon=16,
        validation_episodes=30,
        test_episodes=100,
    ),
    policy="cnn",
)
