"""Policies with memory on a task that ends with a question about a cue of the first observation."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.oracles.zero_one import ZeroOneOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.updates.follow_the_leader import FollowTheLeaderUpdate
from aggrevated.updates.natural import NaturalUpdate
from aggrevated.updates.regular import RegularUpdate
from aggrevated.validation import evaluate_returns


@dataclass(frozen=True)
class Recall:
    """Simulator with state [n, 2] int64: the cue (0 or 1) and the time.

    The first observation is the cue, (1, 0) or (0, 1); later observations are (0, 0). The last action must equal the
    cue: a wrong one costs 1, and nothing else costs anything.
    """

    horizon: int = 5
    name: str = "recall"
    action_space = Discrete(2)
    observation_space = Box(0.0, 1.0, (2,), np.float32)

    def reset(self, seeds):
        return np.array([[int(seed) % 2, 0] for seed in seeds])

    def observe(self, state):
        return np.where(state[:, 1:] == 0, np.eye(2)[state[:, 0]], 0.0).astype(np.float32)

    def step(self, state, action):
        last = state[:, 1] == self.horizon - 1
        return state + np.array([0, 1]), (last & (action != state[:, 0])).astype(np.float64), last


@dataclass(frozen=True)
class RecallExpert:
    """Expert that knows the cue; before the last step every action has Q = 0."""

    horizon: int = 5
    name: str = "recall-expert"

    def q(self, states):
        last = states[:, 1] == self.horizon - 1
        return (last[:, None] & (np.arange(2) != states[:, :1])).astype(np.float32)

    def act(self, states, t):
        return states[:, 0]


def generator():
    return torch.Generator().manual_seed(0)


POLICIES = {
    "lstm": lambda: RecurrentPolicy(2, CategoricalHead(2), 8, "lstm", generator()),
    "gru": lambda: RecurrentPolicy(2, CategoricalHead(2), 8, "gru", generator()),
    "window": lambda: WindowPolicy(2, CategoricalHead(2), (8,), generator(), width=5),
    "short window": lambda: WindowPolicy(2, CategoricalHead(2), (8,), generator(), width=4),
    "feed-forward": lambda: FeedForwardPolicy(2, CategoricalHead(2), (8,), generator()),
}
METHODS = {
    "regular": (lambda: RegularUpdate(0.03), AdvantageOracle(QStarOracle(RecallExpert())), all_actions_loss, 100),
    "natural": (
        lambda: NaturalUpdate(delta_kl=0.03, damping=1.0),
        AdvantageOracle(QStarOracle(RecallExpert())),
        all_actions_loss,
        100,
    ),
    "follow the leader": (
        lambda: FollowTheLeaderUpdate(0.02),
        ZeroOneOracle(RecallExpert(), Discrete(2)),
        best_action_nll_loss,
        4,
    ),
}
EPISODES = np.arange(200, dtype=np.uint64)  # each cue a hundred times


def train_policy(policy, method):
    """Return the policy after a short run on Recall, which ends early at the optimum."""
    update, oracle, loss, iterations = METHODS[method]
    learner = Learner(POLICIES[policy](), update())
    loop = aggrevated(learner, Recall(), RecallExpert(), oracle, loss, k=20, validation_episodes=50)
    for _ in range(iterations):
        if next(loop).current_return == 0.0:
            break
    return learner.policy


def last_step_probabilities(policy):
    """Return π(a) at the last step, [cue, a]."""
    observations = torch.zeros(2, 5, 2)
    mask = torch.ones(2, 5, dtype=torch.bool)
    observations[:, 0] = torch.eye(2)
    with torch.no_grad():
        return policy.distribution(observations, mask).probs[:, -1]


@pytest.mark.parametrize("policy", ["lstm", "gru", "window"])
@pytest.mark.parametrize("method", METHODS)
def test_policy_with_memory_learns_recall_task(policy, method):
    """AggreVaTeD with all actions: the gradient of the last step reaches the first observation through the memory."""
    trained = train_policy(policy, method)
    assert (last_step_probabilities(trained).diagonal() > 0.85).all()
    drawn, _ = evaluate_returns(trained, Recall(), EPISODES)
    assert drawn.mean() >= -0.15
    best, _ = evaluate_returns(trained, Recall(), EPISODES[:2], deterministic=True)
    assert best.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("policy", ["feed-forward", "short window"])
@pytest.mark.parametrize("method", METHODS)
def test_policy_without_memory_cannot_solve_recall_task(policy, method):
    """The last observation is the same for both cues, so exactly half of the actions are wrong."""
    trained = train_policy(policy, method)
    end = last_step_probabilities(trained)
    torch.testing.assert_close(end[0], end[1], atol=1e-6, rtol=0)
    best, _ = evaluate_returns(trained, Recall(), EPISODES, deterministic=True)
    assert best.mean() == -0.5
    drawn, _ = evaluate_returns(trained, Recall(), EPISODES)
    assert abs(drawn.mean() + 0.5) < 4 * np.sqrt(0.25 / 200)
