"""Stable-Baselines3 evaluates our policies directly, and its returns equal ours."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.tasks.acrobot_partial import make_partial_acrobot
from aggrevated.validation import evaluate_returns

evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
monitor = pytest.importorskip("stable_baselines3.common.monitor")
vec_env = pytest.importorskip("stable_baselines3.common.vec_env")

H = 200
ENVIRONMENTS = 3
EPISODES = 9


class LinkPositions(gymnasium.ObservationWrapper):
    """Acrobot-v1 without its velocities."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = Box(-1.0, 1.0, (4,), np.float32)

    def observation(self, observation):
        return observation[:4]


class Seeded(gymnasium.Wrapper):
    """Wrapper in which episode j of environment i starts with seed i + 3j."""

    def __init__(self, env, first):
        super().__init__(env)
        self.next = first

    def reset(self, *, seed=None, options=None):
        observation = self.env.reset(seed=self.next, options=options)
        self.next += ENVIRONMENTS
        return observation


def make_environments(wrapper):
    def make(first):
        env = gymnasium.make("Acrobot-v1", max_episode_steps=H, disable_env_checker=True)
        return monitor.Monitor(Seeded(wrapper(env), first))

    return vec_env.DummyVecEnv([lambda first=first: make(first) for first in range(ENVIRONMENTS)])


def make_swing_up_policy(cell):
    """Return a policy whose memory has the last and an earlier sin θ₁, and whose torque opposes the motion.

    The first unit forgets at once, the second keeps about a quarter; their difference has the sign of the motion.
    """
    policy = RecurrentPolicy(4, CategoricalHead(3), hidden=2, cell=cell)
    biases = {"lstm": [10.0, 1.0, -10.0, -1.0, 0.0, 0.0, 10.0, 10.0], "gru": [0.0, 0.0, -10.0, -1.0, 0.0, 0.0]}
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        policy.recurrent.weight_ih_l0[4:6, 1] = -0.4  # into g of the LSTM, n of the GRU
        policy.recurrent.bias_ih_l0.copy_(torch.tensor(biases[cell]))
        policy.readout.weight.copy_(torch.tensor([[-50.0, 50.0], [0.0, 0.0], [50.0, -50.0]]))
    return policy


def make_velocity_policy():
    """Return a memoryless policy with the torque in the direction of the second joint's motion."""
    policy = FeedForwardPolicy(6, CategoricalHead(3), hidden=())
    with torch.no_grad():
        policy.network[0].weight.zero_()
        policy.network[0].weight[:, 5] = torch.tensor([-1.0, 0.0, 1.0])
    return policy


CASES = {
    "lstm": (lambda: make_swing_up_policy("lstm"), LinkPositions, make_partial_acrobot(H)),
    "gru": (lambda: make_swing_up_policy("gru"), LinkPositions, make_partial_acrobot(H)),
    "feed-forward": (make_velocity_policy, lambda env: env, Acrobot(H)),
}
every_case = pytest.mark.parametrize(("make", "wrapper", "simulator"), CASES.values(), ids=CASES)


def evaluate_with_sb3(policy, wrapper, **more):
    """Return the returns of the episodes in the order of their seeds, and their lengths."""
    envs = make_environments(wrapper)
    ended = []

    def note(variables, _):
        if variables["done"]:
            ended.append(variables["i"])

    returns, lengths = evaluation.evaluate_policy(
        policy, envs, EPISODES, callback=note, return_episode_rewards=True, **more
    )
    envs.close()
    by_environment = [[r for r, i in zip(returns, ended, strict=True) if i == env] for env in range(ENVIRONMENTS)]
    return np.array(by_environment).T.reshape(-1), np.array(lengths)


@every_case
def test_sb3_evaluate_policy_matches_evaluate_returns_exactly(make, wrapper, simulator):
    policy = make()
    ours, _ = evaluate_returns(policy, simulator, np.arange(EPISODES, dtype=np.uint64), deterministic=True)
    sb3_returns, lengths = evaluate_with_sb3(policy, wrapper, deterministic=True)
    np.testing.assert_array_equal(sb3_returns, ours)
    assert len(set(lengths)) >= 6 and lengths.max() < H  # all swing up, at different times


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_recurrent_predict_clears_the_memory_only_at_episode_starts(cell):
    """A memory that is never cleared, or cleared at every step, gives other returns."""
    policy = make_swing_up_policy(cell)
    right, _ = evaluate_with_sb3(policy, LinkPositions, deterministic=True)

    class Always(RecurrentPolicy):
        fresh = True

        def predict(self, observation, state=None, episode_start=None, deterministic=False, action_masks=None):
            fresh = np.full(len(observation), self.fresh)
            return super().predict(observation, state, fresh, deterministic, action_masks)

    wrong = Always(4, CategoricalHead(3), 2, cell)
    wrong.load_state_dict(policy.state_dict())
    for wrong.fresh in (True, False):
        returns, _ = evaluate_with_sb3(wrong, LinkPositions, deterministic=True)
        assert (returns != right).any()
        if not wrong.fresh:
            np.testing.assert_array_equal(
                returns[:ENVIRONMENTS], right[:ENVIRONMENTS]
            )  # the first episodes have no predecessors


def test_sb3_evaluate_policy_agrees_within_error_when_actions_are_sampled():
    """SB3's draws are not seeded by us, so the bound is 6 standard errors of the difference."""
    policy = make_velocity_policy()
    with torch.no_grad():
        policy.network[0].weight.mul_(3.0)
    ours, _ = evaluate_returns(policy, Acrobot(H), np.arange(60, dtype=np.uint64))
    sb3_returns, _ = evaluate_with_sb3(policy, lambda env: env, deterministic=False)
    assert len(set(sb3_returns)) > 3
    error = np.sqrt(ours.var() / 60 + ours.var() / EPISODES)
    assert abs(ours.mean() - sb3_returns.mean()) < 6 * error


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_sb3_evaluate_policy_supports_an_unvectorized_environment(cell):
    env = monitor.Monitor(Seeded(LinkPositions(gymnasium.make("Acrobot-v1", max_episode_steps=H)), 0))
    mean, deviation = evaluation.evaluate_policy(make_swing_up_policy(cell), env, 3)
    ours, _ = evaluate_returns(
        make_swing_up_policy(cell), make_partial_acrobot(H), np.array([0, 3, 6], np.uint64), deterministic=True
    )
    assert (mean, deviation) == (pytest.approx(ours.mean()), pytest.approx(ours.std()))


@pytest.mark.parametrize("deterministic", [True, False])
def test_sb3_evaluate_policy_supports_continuous_actions(deterministic):
    """A Gaussian LSTM on Pendulum-v1 reads 3 observations and returns actions of shape [n, 1]."""
    policy = RecurrentPolicy(3, GaussianHead(1), 4)
    envs = vec_env.DummyVecEnv(
        [lambda: monitor.Monitor(gymnasium.make("Pendulum-v1", max_episode_steps=20)) for _ in range(2)]
    )
    returns, lengths = evaluation.evaluate_policy(
        policy, envs, 3, return_episode_rewards=True, deterministic=deterministic
    )
    envs.close()
    assert lengths == [20, 20, 20] and all(r < 0 for r in returns)
