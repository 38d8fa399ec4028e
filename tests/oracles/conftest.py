"""Fixture for tests of all oracles: two trajectories of the tiny MDP."""

import numpy as np
import pytest

from aggrevated.rollout.trajectories import Trajectories


@pytest.fixture
def two_trajectories() -> Trajectories:
    """Return s = 0, 1 with actions 2, 2 (the end), and s = 2, 0, 0 with actions 0, 2, 1; all future coins are 0."""
    s = np.array([[0, 1, 0], [2, 0, 0]])
    states = np.stack([s, np.tile(np.arange(3), (2, 1)), np.zeros_like(s)], axis=2)
    mask = np.array([[True, True, False], [True, True, True]])
    states[~mask] = 0
    actions = np.array([[2, 2, 0], [0, 2, 1]])
    costs = np.array([[0.0, 4.0, 0.0], [0.0, 0.0, 2.0]])
    return Trajectories(states, np.eye(3)[s], actions, costs, mask, np.zeros_like(mask), horizon=3)
