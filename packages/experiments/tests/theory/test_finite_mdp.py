"""EG on finite MDPs against a slow loop and the bound; its Q̃ against Q*; the regret of REINFORCE."""

import numpy as np
import pytest
import torch

from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.simulators.tabular import (
    TabularSimulator,
    compute_optimal_q,
    compute_state_distributions,
    compute_total_cost,
    make_greedy_policy,
    make_random_mdps,
)
from aggrevated.updates.regular import RegularUpdate
from aggrevated_experiments.theory import finite_mdp
from aggrevated_experiments.theory.bounds import compute_noisy_upper_bound, compute_upper_bound
from aggrevated_experiments.theory.study import list_recorded_episodes


def test_step_size_matches_hand_computed_values():
    """(H / Q_max) √(2 S ln A / N)."""
    steps = finite_mdp.step_size(np.array([4.0, 1.0]), horizon=2, states=8, actions=4, episodes=100)
    np.testing.assert_allclose(steps, [0.5 * np.sqrt(16 * np.log(4)) / 10, 2 * np.sqrt(16 * np.log(4)) / 10])


def slow_exact(p, c, start, horizon, episodes):
    """Return the regret on one MDP, with weights multiplied one by one."""
    (states, actions) = c.shape
    q_star = compute_optimal_q(p, c, horizon)
    eta = horizon / q_star.max() * np.sqrt(2 * states * np.log(actions) / episodes)
    policy = np.full((horizon, states, actions), 1 / actions)
    total = 0.0
    curve = []
    best = compute_total_cost(p, c, start, make_greedy_policy(q_star))
    for _ in range(episodes):
        d = list(start)
        cost = 0.0
        new = np.zeros_like(policy)
        for t in range(horizon):
            after = np.zeros(states)
            for s in range(states):
                for a in range(actions):
                    cost += d[s] * policy[t, s, a] * c[s, a]
                    after += d[s] * policy[t, s, a] * p[s, a]
                    new[t, s, a] = policy[t, s, a] * np.exp(-eta * d[s] * q_star[t, s, a] / horizon)
            d = after
        policy = new / new.sum(axis=2, keepdims=True)
        total += cost - best
        curve.append(total)
    return np.array(curve)


def test_exact_curve_equals_loop_over_single_mdps():
    mdps = make_random_mdps(3, 3, 2, 0)
    curve = finite_mdp.run_with_exact_q(mdps, 3, 25).curve
    for i in range(3):
        np.testing.assert_allclose(curve[i], slow_exact(*(array[i] for array in mdps), 3, 25), atol=1e-10)


def test_finite_mdp_regret_stays_under_the_upper_bound():
    """Theorem upper_bound with the Q_max of each MDP; and the regret shows learning."""
    mdps = make_random_mdps(20, 5, 3, 1)
    horizon = 3
    episodes = 400
    q_star = compute_optimal_q(*mdps[:2], horizon)
    first = compute_total_cost(*mdps, np.full(q_star.shape, 1 / 3)) - (mdps[2] * q_star[:, 0].min(axis=2)).sum(axis=1)
    exact = finite_mdp.run_with_exact_q(mdps, horizon, episodes).curve
    noisy = finite_mdp.run_with_sampled_q(
        mdps, horizon, episodes, 0, finite_mdp.make_rollout_noise(mdps, 1), "noisy"
    ).curve
    for i, largest in enumerate(q_star.max(axis=(1, 2, 3))):
        assert (exact[i] <= compute_upper_bound(horizon, largest, 5, 3, list_recorded_episodes(episodes))).all()
        assert (noisy[i] <= compute_noisy_upper_bound(horizon, largest, 5, 3, list_recorded_episodes(episodes))).all()
    np.testing.assert_allclose(exact[:, 0], first)
    np.testing.assert_allclose(noisy[:, 0], first)
    assert (exact[:, -1] < 0.6 * episodes * first).all() and (noisy[:, -1] < 0.8 * episodes * first).all()


def test_sampled_with_one_state_and_no_noise_equals_exact():
    """With H = 1 and an action that always costs 1, Q_max is H, and both take the same step."""
    mdps = np.ones((4, 1, 3, 1)), np.random.default_rng(0).random((4, 1, 3)), np.ones((4, 1))
    mdps[1][:, :, 0] = 1.0

    def noiseless(q_star, visited, generator):
        return q_star[:, :, 0]

    sampled = finite_mdp.run_with_sampled_q(mdps, 1, 50, 0, noiseless, "one").curve
    np.testing.assert_allclose(sampled, finite_mdp.run_with_exact_q(mdps, 1, 50).curve, atol=1e-10)


def test_sampled_updates_visited_states_only():
    """State 0 does not lead to state 1, so the costs at state 1 do not matter."""
    transitions = np.broadcast_to(np.eye(2)[None, :, None], (1, 2, 2, 2))
    mdps = transitions, np.array([[[0.2, 0.8], [0.9, 0.1]]]), np.array([[1.0, 0.0]])
    queried = []

    def record_queries(q_star, visited, generator):
        queried.append(visited)
        return q_star[0, np.arange(2), visited]

    curve = finite_mdp.run_with_sampled_q(mdps, 2, 30, 0, record_queries, "noted").curve[0]
    assert (np.array(queried) == 0).all()
    assert curve[0] == pytest.approx(0.6) and np.diff(curve)[-1] < 0.3


def test_finite_mdp_roll_in_matches_exact_state_distributions():
    p, _, start = make_random_mdps(1, 3, 2, 0)
    policy = np.random.default_rng(0).dirichlet(np.ones(2), (1, 4, 3))
    n = 10_000
    many = [np.broadcast_to(array, (n, *array.shape[1:])) for array in (p, start, policy)]
    visited = finite_mdp.roll_in(*many, np.random.default_rng(1))
    frequency = (visited[..., None] == np.arange(3)).mean(axis=0)
    d = compute_state_distributions(p, start, policy)[0]
    assert (np.abs(frequency - d) < 4 * np.sqrt(d * (1 - d) / n)).all()


@pytest.fixture
def sampled_queries():
    """Return (MDPs, Q*, visited states) of one MDP, repeated many times."""
    n = 4000
    mdps = tuple(np.broadcast_to(array, (n, *array.shape[1:])) for array in make_random_mdps(1, 3, 2, 3))
    q_star = np.broadcast_to(compute_optimal_q(*(array[0] for array in mdps[:2]), 3), (n, 3, 3, 2))
    return mdps, q_star, np.broadcast_to([2, 0, 1], (n, 3))


@pytest.mark.parametrize("rollouts", [1, 4])
def test_rolled_out_q_is_unbiased_with_variance_of_its_rollouts(sampled_queries, rollouts):
    mdps, q_star, visited = sampled_queries
    drawn = finite_mdp.make_rollout_noise(mdps, rollouts)(q_star, visited, np.random.default_rng(0))
    truth = q_star[0, np.arange(3), [2, 0, 1]]
    assert drawn.shape == (4000, 3, 2)
    assert (np.abs(drawn.mean(axis=0) - truth) < 4 * drawn.std(axis=0) / np.sqrt(4000)).all()
    assert set(np.unique(drawn[:, 2] * rollouts)) == set(range(rollouts + 1))  # at the last step: one cost of 0 or 1
    last = truth[2]
    np.testing.assert_allclose(drawn[:, 2].var(axis=0), last * (1 - last) / rollouts, rtol=0.2)


def test_bounded_noise_is_unbiased_and_within_its_width(sampled_queries):
    _, q_star, visited = sampled_queries
    truth = q_star[0, np.arange(3), [2, 0, 1]]
    error = finite_mdp.add_bounded_noise(q_star, visited, np.random.default_rng(0), width=0.5) - truth
    assert 0.49 < np.abs(error).max() <= 0.5
    assert (np.abs(error.mean(axis=0)) < 4 * 0.5 / np.sqrt(3 * 4000)).all()
    wider = finite_mdp.add_bounded_noise(q_star, visited, np.random.default_rng(0)) - truth
    np.testing.assert_allclose(wider, 2 * error, atol=1e-12)


def test_probabilities_of_a_policy_equal_its_softmax_table():
    mdp = TabularSimulator(*(array[0] for array in make_random_mdps(1, 3, 2, 0)), horizon=2)
    policy = FeedForwardPolicy(6, CategoricalHead(2), hidden=())
    logits = (policy.network[0].weight + policy.network[0].bias[:, None]).detach()
    expected = torch.softmax(logits, dim=0).T.reshape(2, 3, 2)
    np.testing.assert_allclose(finite_mdp.compute_probabilities(policy, mdp), expected, atol=1e-6)


def test_policy_gradient_counts_k_episodes_per_policy():
    mdps = make_random_mdps(2, 3, 2, 0)
    horizon = 2
    q_star = compute_optimal_q(*mdps[:2], horizon)
    best = (mdps[2] * q_star[:, 0].min(axis=2)).sum(axis=1)
    uniformly = compute_total_cost(*mdps, np.full(q_star.shape, 0.5)) - best
    regret = finite_mdp.run_policy_gradient(mdps, horizon, 195, 0, lambda: RegularUpdate(0.3), "REINFORCE", k=10)
    each = np.diff(regret.curve, axis=1, prepend=0.0)  # [2, 195]
    assert regret.curve.shape == (2, 195) and not regret.learns_from_expert
    np.testing.assert_allclose(each[:, :10], np.broadcast_to(uniformly[:, None], (2, 10)), atol=1e-6)
    for first in range(0, 190, 10):
        np.testing.assert_allclose(each[:, first : first + 10], each[:, [first] * min(10, 195 - first)], atol=1e-9)
    assert (each[:, 10] != each[:, 9]).all()
    assert (each[:, -1] < 0.5 * uniformly).all()
