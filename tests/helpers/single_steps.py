"""Trajectories of one step, with the cost-to-go of every action, and a small policy for them."""

import numpy as np
import torch

from aggrevated.oracles import CostToGo
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.rollout.trajectories import Trajectories


def single_steps(observations, actions=None, legal=None):
    """Return n trajectories of one step each."""
    seen = np.asarray(observations, np.float32)[:, None]
    n = len(seen)
    return Trajectories(
        states=np.zeros((n, 1, 0), np.float32),
        observations=seen,
        actions=np.zeros((n, 1), int) if actions is None else np.asarray(actions)[:, None],
        costs=np.zeros((n, 1)),
        mask=np.ones((n, 1), bool),
        by_expert=np.zeros((n, 1), bool),
        horizon=1,
        **({} if legal is None else {"action_mask": np.asarray(legal)[:, None]}),
    )


def all_action_costs(values, **more):
    """Return the cost-to-go of every action for n trajectories of one step each."""
    values = np.asarray(values, np.float32)[:, None]
    return CostToGo(values, np.ones(values.shape[:2], np.float32), **more)


def make_policy(hidden=(8,), actions=3, size=3, seed=0):
    """Return a categorical feed-forward policy."""
    return FeedForwardPolicy(size, CategoricalHead(actions), hidden, torch.Generator().manual_seed(seed))
