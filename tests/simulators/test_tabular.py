"""Finite MDPs: dynamic programming against enumeration of all trajectories, and the simulator against its arrays."""

from itertools import product

import numpy as np
import pytest

from aggrevated.oracles.monte_carlo import MonteCarloOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import Simulator
from aggrevated.simulators.tabular import (
    TabularExpert,
    TabularSimulator,
    compute_optimal_q,
    compute_policy_q_values,
    compute_state_distributions,
    compute_total_cost,
    hash_to_uniform,
    make_greedy_policy,
    make_random_mdps,
    sample_categorical,
)
from helpers.tiny_mdp import COST, EXPERT, Q_STAR, START, transitions
from helpers.tiny_mdp import state_distributions as by_going_forward

STATES = 2
ACTIONS = 2
HORIZON = 3


def make_tiny_mdp(seed, horizon=HORIZON):
    """Return transitions, costs, start distribution and a random policy of one MDP."""
    p, c, start = (array[0] for array in make_random_mdps(1, STATES, ACTIONS, seed))
    return p, c, start, np.random.default_rng(seed).dirichlet(np.ones(ACTIONS), (horizon, STATES))


def iter_trajectories(p, c, start, policy):
    """Yield probability, cost and states of every trajectory, by definition."""
    steps = range(len(policy))
    for states in product(range(STATES), repeat=len(policy)):
        for actions in product(range(ACTIONS), repeat=len(policy)):
            chance = start[states[0]] * np.prod([policy[t, states[t], actions[t]] for t in steps])
            chance *= np.prod([p[states[t], actions[t], states[t + 1]] for t in steps[:-1]])
            yield chance, sum(c[states[t], actions[t]] for t in steps), states


def q_by_enumeration(p, c, policy, t, s, a):
    """Return Q^π_t(s, a) by enumerating trajectories that start at t in s with a."""
    forced = policy[t:].copy()
    forced[0, s] = np.eye(ACTIONS)[a]
    return sum(chance * cost for chance, cost, _ in iter_trajectories(p, c, np.eye(STATES)[s], forced))


def tabulate(value):
    return np.array(
        [[[value(t, s, a) for a in range(ACTIONS)] for s in range(STATES)] for t in range(HORIZON)]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_policy_q_values_are_the_mean_over_all_trajectories(seed):
    p, c, _, policy = make_tiny_mdp(seed)
    by_hand = tabulate(lambda t, s, a: q_by_enumeration(p, c, policy, t, s, a))
    np.testing.assert_allclose(compute_policy_q_values(p, c, policy), by_hand, atol=1e-13)


def test_optimal_q_is_the_minimum_over_all_deterministic_policies():
    p, c, _, _ = make_tiny_mdp(5)
    choices = product(range(ACTIONS), repeat=HORIZON * STATES)
    policies = [np.eye(ACTIONS)[np.reshape(choice, (HORIZON, STATES))] for choice in choices]
    least = tabulate(lambda t, s, a: min(q_by_enumeration(p, c, policy, t, s, a) for policy in policies))
    np.testing.assert_allclose(compute_optimal_q(p, c, HORIZON), least, atol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_state_distributions_and_total_cost_are_sums_over_all_trajectories(seed):
    p, c, start, policy = make_tiny_mdp(seed)
    d = np.zeros((HORIZON, STATES))
    mu = 0.0
    for chance, cost, states in iter_trajectories(p, c, start, policy):
        d[np.arange(HORIZON), states] += chance
        mu += chance * cost
    np.testing.assert_allclose(compute_state_distributions(p, start, policy), d, atol=1e-14)
    assert compute_total_cost(p, c, start, policy) == pytest.approx(mu, abs=1e-13)


def test_dynamic_programming_gives_the_known_answers_of_the_tiny_mdp():
    """Episodes can end: probability missing in a row of transitions leads to the end, at no further cost."""
    q = compute_optimal_q(transitions(), COST, 3)
    np.testing.assert_array_equal(q, Q_STAR)
    np.testing.assert_array_equal(make_greedy_policy(q), np.broadcast_to(np.eye(3)[EXPERT], (3, 3, 3)))
    pi = np.random.default_rng(0).dirichlet(np.ones(3), 3)
    table = np.broadcast_to(pi, (3, 3, 3))
    np.testing.assert_allclose(
        compute_state_distributions(transitions(), START, table), by_going_forward(pi), atol=1e-15
    )
    assert compute_total_cost(transitions(), COST, START, make_greedy_policy(q)) == pytest.approx(
        (START * Q_STAR[0].min(axis=1)).sum()
    )


def test_dynamic_programming_solves_a_batch_of_mdps_as_one_by_one():
    p, c, start = (array.reshape(2, 3, *array.shape[1:]) for array in make_random_mdps(6, 4, 3, 0))
    policy = np.random.default_rng(0).dirichlet(np.ones(3), (2, 3, 5, 4))
    together = (
        compute_optimal_q(p, c, 5),
        compute_policy_q_values(p, c, policy),
        compute_state_distributions(p, start, policy),
    )
    assert [array.shape for array in together] == [(2, 3, 5, 4, 3), (2, 3, 5, 4, 3), (2, 3, 5, 4)]
    mu = compute_total_cost(p, c, start, policy)
    for i in np.ndindex(2, 3):
        alone = (
            compute_optimal_q(p[i], c[i], 5),
            compute_policy_q_values(p[i], c[i], policy[i]),
            compute_state_distributions(p[i], start[i], policy[i]),
        )
        for all_of_them, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(all_of_them[i], one, atol=1e-13)
        assert mu[i] == pytest.approx(compute_total_cost(p[i], c[i], start[i], policy[i]))


def test_dynamic_programming_evaluates_many_policies_on_one_mdp():
    p, c, start = (array[0] for array in make_random_mdps(1, 4, 3, 0))
    policies = np.random.default_rng(0).dirichlet(np.ones(3), (7, 5, 4))
    mu = compute_total_cost(p, c, start, policies)
    q = compute_policy_q_values(p, c, policies)
    for i in range(7):
        assert mu[i] == pytest.approx(compute_total_cost(p, c, start, policies[i]))
        np.testing.assert_allclose(q[i], compute_policy_q_values(p, c, policies[i]))


def test_greedy_policy_takes_the_first_of_equal_actions():
    np.testing.assert_array_equal(make_greedy_policy(np.array([[2.0, 1.0, 1.0]])), [[0, 1, 0]])


def test_sample_categorical_matches_the_probabilities():
    probabilities = np.broadcast_to([0.2, 0.0, 0.5, 0.3, 0.0], (40_000, 5))
    counts = np.bincount(sample_categorical(probabilities, np.random.default_rng(0)), minlength=5)
    assert counts[1] == counts[4] == 0
    assert chi_square(counts[[0, 2, 3]], [0.2, 0.5, 0.3]) < 16


def chi_square(counts, probabilities):
    expected = np.sum(counts) * np.asarray(probabilities)
    return float(((counts - expected) ** 2 / expected).sum())


# ---- the MDPs of the theorems


def test_make_random_mdps_gives_valid_mdps_with_costs_in_0_1():
    p, c, start = make_random_mdps(5, 4, 3, 1)
    assert p.shape == (5, 4, 3, 4) and c.shape == (5, 4, 3) and start.shape == (5, 4)
    np.testing.assert_allclose(p.sum(axis=3), 1)
    np.testing.assert_allclose(start.sum(axis=1), 1)
    assert c.min() >= 0 and c.max() <= 1 and c.std() > 0.2
    assert not np.allclose(p[0], make_random_mdps(5, 4, 3, 2)[0][0])


# ---- as a simulator


@pytest.fixture
def mdp():
    p, c, start = (array[0] for array in make_random_mdps(1, 3, 2, 4))
    return TabularSimulator(p, c, start, horizon=3)


def make_seeds(n, start=0):
    return np.arange(start, start + n, dtype=np.uint64)


def make_states(s, t, keys):
    return np.stack([np.full(len(keys), s), np.full(len(keys), t), keys], axis=1).astype(np.uint64)


def test_tabular_simulator_conforms_to_protocol(mdp):
    assert isinstance(mdp, Simulator)
    assert mdp.action_space.n == 2 and mdp.observation_space.shape == (9,)


@pytest.mark.parametrize("t", [0, 2])
def test_tabular_simulator_next_states_and_costs_match_the_probabilities(mdp, t):
    n = 20_000
    for s, a in np.ndindex(3, 2):
        following, cost, done = mdp.step(make_states(s, t, make_seeds(n)), np.full(n, a))
        assert not done.any() and (following[:, 1] == t + 1).all()
        counts = np.bincount(following[:, 0].astype(int), minlength=3)
        assert chi_square(counts, mdp.transitions[s, a]) < 16  # 2 degrees of freedom: 1 in 3,000
        assert set(cost) == {0.0, 1.0}
        c = mdp.costs[s, a]
        assert abs(cost.mean() - c) < 4 * np.sqrt(c * (1 - c) / n)
        assert abs(np.corrcoef(cost, following[:, 0])[0, 1]) < 4 / np.sqrt(n)


def test_tabular_simulator_first_states_match_the_probabilities(mdp):
    counts = np.bincount(mdp.reset(make_seeds(20_000))[:, 0].astype(int), minlength=3)
    assert chi_square(counts, mdp.start) < 16


def test_tabular_simulator_episodes_match_dynamic_programming(mdp):
    """Random draws of different steps are independent."""
    n = 20_000
    actions = np.random.default_rng(0).integers(2, size=(3, 20_000))
    uniformly = np.full((3, 3, 2), 0.5)
    d = compute_state_distributions(mdp.transitions, mdp.start, uniformly)
    state = mdp.reset(make_seeds(n))
    total = np.zeros(n)
    for t in range(3):
        assert chi_square(np.bincount(state[:, 0].astype(int), minlength=3), d[t]) < 16
        state, cost, _ = mdp.step(state, actions[t])
        total += cost
    mu = compute_total_cost(mdp.transitions, mdp.costs, mdp.start, uniformly)
    assert abs(total.mean() - mu) < 4 * total.std() / np.sqrt(n)


def test_hash_to_uniform_is_uncorrelated_between_steps_and_keys():
    drawn = np.stack(
        [hash_to_uniform(make_seeds(20_000), index) for index in range(5)] + [hash_to_uniform(make_seeds(20_000, 1), 0)]
    )
    assert drawn.min() >= 0 and drawn.max() < 1
    assert np.abs(drawn.mean(axis=1) - 0.5).max() < 4 / np.sqrt(12 * 20_000)
    assert np.abs(np.corrcoef(drawn) - np.eye(6)).max() < 4 / np.sqrt(20_000)


def test_tabular_simulator_reseed_changes_only_the_randomness(mdp):
    state = make_states(1, 1, make_seeds(500))
    action = np.zeros(500, int)
    other = mdp.reseed(state, make_seeds(500, 10_000))
    np.testing.assert_array_equal(other[:, :2], state[:, :2])
    np.testing.assert_array_equal(state, make_states(1, 1, make_seeds(500)))  # the input is unchanged
    np.testing.assert_array_equal(mdp.observe(other), mdp.observe(state))
    first = mdp.step(state, action)
    second = mdp.step(other, action)
    assert (first[0][:, 0] != second[0][:, 0]).mean() > 0.1 and (first[1] != second[1]).mean() > 0.1
    for again, before in zip(mdp.step(mdp.reseed(other, make_seeds(500)), action), first, strict=True):
        np.testing.assert_array_equal(again, before)


def test_tabular_simulator_observation_is_one_hot_of_time_and_state(mdp):
    for t, s in np.ndindex(3, 3):
        np.testing.assert_array_equal(
            mdp.observe(make_states(s, t, make_seeds(1))), np.eye(9, dtype=np.float32)[[3 * t + s]]
        )


def test_tabular_expert_knows_q_star_and_takes_the_cheapest_action(mdp):
    expert = TabularExpert(mdp)
    for t, s in np.ndindex(3, 3):
        np.testing.assert_array_equal(expert.q(make_states(s, t, make_seeds(1)))[0], mdp.q_star[t, s])
        assert expert.act(make_states(s, t, make_seeds(1)), t)[0] == mdp.q_star[t, s].argmin()


@pytest.mark.parametrize(("advantage", "rollouts"), [(False, 1), (False, 2), (True, 2)])
def test_monte_carlo_oracle_is_unbiased_for_q_star_of_a_tabular_mdp(mdp, advantage, rollouts):
    expert = TabularExpert(mdp)
    policy = FeedForwardPolicy(9, CategoricalHead(2), hidden=())
    trajectories = roll_in(mdp, RollInPolicy(None, policy.actor(), 0.0), make_seeds(3000))
    found = MonteCarloOracle(mdp, expert, rollouts=rollouts, advantage=advantage)(trajectories)
    s = trajectories.states[..., 0].astype(int)
    t = trajectories.states[..., 1].astype(int)
    truth = mdp.q_star - advantage * mdp.q_star.min(axis=2, keepdims=True)
    for time, state, action in np.ndindex(3, 3, 2):
        values = found.values[(t == time) & (s == state) & (trajectories.actions == action)].astype(float)
        assert len(values) > 100
        assert abs(values.mean() - truth[time, state, action]) <= 4 * values.std() / np.sqrt(len(values))
