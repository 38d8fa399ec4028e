"""Arrays of K trajectories."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from aggrevated.rollout.trajectories import pad_and_stack
from helpers.tiny_mdp import random_trajectories, with_expert_steps


def test_trajectories_count_steps_and_returns():
    trajectories = random_trajectories(k=2, t=3)
    mask = np.array([[1, 1, 0], [1, 0, 0]], bool)
    costs = np.array([[2.0, 3.0, 0.0], [-1.0, 0.0, 0.0]])
    trajectories = replace(trajectories, mask=mask, costs=costs)
    assert (trajectories.count, trajectories.steps, trajectories.returns.tolist()) == (2, 3, [-5.0, 1.0])


def test_trajectories_by_learner_excludes_expert_and_padded_steps():
    trajectories = with_expert_steps(random_trajectories(), 0.5)
    assert trajectories.by_learner.sum() + trajectories.by_expert.sum() == trajectories.steps
    assert not (trajectories.by_learner & ~trajectories.mask).any()


def test_trajectories_take_returns_selected_in_order():
    trajectories = random_trajectories()
    taken = trajectories.take(np.array([4, 1, 1]))
    np.testing.assert_array_equal(taken.observations, trajectories.observations[[4, 1, 1]])
    assert (taken.count, taken.horizon) == (3, trajectories.horizon)


def test_pad_and_stack_matches_hand_computed_arrays():
    stacked = pad_and_stack([np.array([[1, 2]]), np.array([[3], [4]])])
    np.testing.assert_array_equal(stacked, [[1, 2], [3, 0], [4, 0]])
    assert pad_and_stack([np.ones((2, 3, 4)), np.ones((1, 5, 4))]).shape == (3, 5, 4)


def test_trajectories_reject_mismatched_shapes():
    trajectories = random_trajectories()
    with pytest.raises(AssertionError, match="costs"):
        replace(trajectories, costs=np.zeros((6, 9)))
    with pytest.raises(AssertionError):
        replace(trajectories, horizon=2)


def test_trajectories_are_frozen():
    with pytest.raises(FrozenInstanceError):
        random_trajectories().horizon = 3
