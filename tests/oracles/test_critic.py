"""Generalized advantages by hand and in their limits, and a critic that learns V^π of a tabular MDP."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.oracles import iter_stateful
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.critic import CriticOracle, CriticSettings, generalized_advantages
from aggrevated.oracles.entropy_bonus import EntropyBonusOracle
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.simulators.tabular import TabularSimulator, compute_policy_q_values, make_random_mdps
from helpers.tiny_mdp import random_trajectories, randomise

STATES = 3
HORIZON = 4
MDP = TabularSimulator(*(part[0] for part in make_random_mdps(1, STATES, 2, seed=3)), horizon=HORIZON)
POLICY = randomise(FeedForwardPolicy(HORIZON * STATES, CategoricalHead(2), hidden=()), 0, 1.0)


def roll_in_batch(n: int, mdp: TabularSimulator = MDP) -> Trajectories:
    return roll_in(mdp, RollInPolicy(None, POLICY.actor(), n=n), derive_seeds(0, SeedPurpose.ROLL_IN, n, 500))


def policy_values() -> np.ndarray:
    """Return V^π_t(s), [H, S], by backward induction."""
    observations = torch.eye(HORIZON * STATES)[None]
    with torch.no_grad():
        pi = POLICY.distribution(observations, torch.ones(1, HORIZON * STATES)).probs[0].numpy()
    pi = pi.reshape(HORIZON, STATES, 2)
    return (pi * compute_policy_q_values(MDP.transitions, MDP.costs, pi)).sum(axis=2)


def test_generalized_advantages_match_hand_computed_values():
    """Two episodes, one ends early; γ = λ = 1/2, so that each later step counts a quarter of the one before."""
    mask = np.array([[1, 1, 1], [1, 1, 0]], bool)
    zeros = np.zeros((2, 3))
    costs = np.array([[1.0, 2.0, 4.0], [8.0, 1.0, 0.0]])
    v = np.array([[2.0, 4.0, 8.0], [6.0, 2.0, 0.0]])
    trajectories = Trajectories(zeros, zeros, zeros, costs, mask, zeros > 0, horizon=3)
    delta = np.array([[1 + 2 - 2, 2 + 4 - 4, 4 - 8], [8 + 1 - 6, 1 - 2, 0.0]])
    expected = [[1 + (2 - 4 / 4) / 4, 2 - 4 / 4, -4], [3 - 1 / 4, -1, 0]]
    np.testing.assert_array_equal(generalized_advantages(trajectories, v, 0.5, 0.5), expected)
    np.testing.assert_array_equal(generalized_advantages(trajectories, v, 0.5, 0.0), delta)  # the TD error
    np.testing.assert_array_equal(
        generalized_advantages(trajectories, v, 1.0, 1.0), [[7 - 2, 6 - 4, 4 - 8], [9 - 6, 1 - 2, 0]]
    )


def test_untrained_critic_oracle_with_lambda_1_returns_reward_to_go():
    trajectories = random_trajectories(k=20, t=5, dtype=np.float32)
    costs = CriticOracle(gae_lambda=1.0)(trajectories)
    expected = RewardToGoOracle()(trajectories)
    np.testing.assert_allclose(costs.values, expected.values, atol=1e-6)
    np.testing.assert_array_equal(costs.weight, expected.weight)
    assert costs.queries == costs.simulator_steps == 0


@pytest.mark.parametrize("gae_lambda", [1.0, 0.5, 0.0])
def test_critic_oracle_converges_to_value_of_policy(gae_lambda):
    """With λ < 1 the critic learns from its own estimates, one step further back in each iteration."""
    critic = CriticOracle(gae_lambda, learning_rate=0.03, steps=100)
    expected = policy_values()
    for n in range(1, 13):
        critic(roll_in_batch(n))
    fresh = roll_in_batch(99)
    s = fresh.states[..., 0].astype(int)
    t = fresh.states[..., 1].astype(int)
    error = critic.v(fresh) - expected[t, s]
    assert np.sqrt((error**2).mean()) < 0.1 < np.sqrt((expected**2).mean()) / 5


def test_critic_oracle_evaluates_trajectories_before_fitting_them():
    """V_φ of earlier iterations: a critic trained on the same costs would explain their noise away."""
    trajectories = roll_in_batch(2)
    other = roll_in_batch(3)
    critic = CriticOracle()
    critic(roll_in_batch(1))
    v = critic.v(trajectories)
    np.testing.assert_array_equal(
        critic(trajectories).values, generalized_advantages(trajectories, v, 1.0, 0.97).astype(np.float32)
    )
    assert not np.array_equal(critic.v(other), v)


def test_critic_oracle_has_lower_variance_than_leave_one_out_baseline():
    """States differ in cost and actions have no effect, so the mean of other trajectories explains little."""
    stay = np.eye(3)[:, None].repeat(2, axis=1)
    costs = np.array([[0.05] * 2, [0.5] * 2, [0.95] * 2])
    mdp = TabularSimulator(stay, costs, np.full(3, 1 / 3), horizon=HORIZON)
    critic = CriticOracle(gae_lambda=1.0, steps=100)
    for n in range(1, 5):
        trajectories = roll_in_batch(n, mdp=mdp)
        noise, others = (oracle(trajectories).values for oracle in (critic, AdvantageOracle(RewardToGoOracle())))
    assert (noise**2).mean() < 0.5 * (others**2).mean()


def test_critic_oracle_resumes_from_state_with_identical_bits():
    uninterrupted = CriticOracle()
    resumed = CriticOracle()
    assert uninterrupted.state() == {}
    resumed.restore({})
    for n in (1, 2):
        uninterrupted(roll_in_batch(n))
    resumed.restore({name: w.clone() for name, w in uninterrupted.state().items()})
    for n in (3, 4):
        np.testing.assert_array_equal(uninterrupted(roll_in_batch(n)).values, resumed(roll_in_batch(n)).values)
    first = uninterrupted.state()
    second = resumed.state()
    assert first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_critic_oracle_state_is_a_copy():
    critic = CriticOracle()
    critic(roll_in_batch(1))
    state = critic.state()
    before = {name: w.clone() for name, w in state.items()}
    critic(roll_in_batch(2))
    assert all(torch.equal(before[name], w) for name, w in state.items())
    restored = CriticOracle()
    restored.restore(state)
    restored(roll_in_batch(2))
    assert all(torch.equal(before[name], w) for name, w in state.items())


def test_iter_stateful_finds_critic_oracle_inside_other_oracles():
    critic = CriticOracle()
    assert dict(iter_stateful(EntropyBonusOracle(critic, 0.1))) == {"oracle.oracle": critic}
    assert not dict(iter_stateful(EntropyBonusOracle(AdvantageOracle(RewardToGoOracle()), 0.1)))


def test_critic_oracle_is_invariant_to_units_of_observations_and_costs():
    """The critic normalizes observations and costs."""
    plain = random_trajectories(k=40, t=6, dtype=np.float32)
    units = np.array([4096.0, 1.0, 1 / 64], np.float32)
    other = replace(plain, observations=units * plain.observations, costs=1024.0 * plain.costs)
    actual = [
        [critic(one).values for _ in range(4)] for critic, one in ((CriticOracle(), plain), (CriticOracle(), other))
    ]
    np.testing.assert_allclose(actual[1][3], 1024.0 * actual[0][3], rtol=1e-4)
    assert not np.allclose(actual[0][0], actual[0][3], atol=0.1)


def test_critic_oracle_accepts_constant_observations_and_costs():
    plain = random_trajectories(k=4, t=3, dtype=np.float32)
    same = replace(plain, observations=np.ones_like(plain.observations), costs=np.zeros_like(plain.costs))
    critic = CriticOracle()
    assert not critic(same).values.any() and not critic(same).values.any()


def test_critic_settings_build_critic_oracle():
    actual = CriticSettings(0.9, 0.99, (8, 4), 7, 0.1).build(MDP, None)
    assert actual == CriticOracle(0.9, 0.99, (8, 4), 7, 0.1)
