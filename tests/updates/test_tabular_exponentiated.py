"""Eq. 7 against a minimizer of Eq. 6, against all 2^D leaf weights of the tree, and in Algorithm 1."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.oracles import CostToGo
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.simulators.tabular import (
    TabularExpert,
    TabularSimulator,
    compute_total_cost,
    make_greedy_policy,
    make_random_mdps,
)
from aggrevated.updates.exponentiated import ExponentiatedUpdate
from aggrevated.updates.tabular_exponentiated import apply_base_policies_step, apply_exponentiated_step, log_softmax
from helpers.tabular_policy import tabular_probabilities
from helpers.tiny_mdp import linear_policy, random_trajectories

STRICT = {"over": "raise", "invalid": "raise", "divide": "raise"}


def minimize_equation_6(policy, q, eta):
    """Return argmin over distributions of ⟨Q̃, π⟩ + KL(π ‖ π_n)/η (Eq. 6), by L-BFGS."""
    old = torch.from_numpy(policy)
    q = torch.from_numpy(q)
    logits = torch.zeros_like(q, requires_grad=True)
    solver = torch.optim.LBFGS(
        [logits], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def objective():
        solver.zero_grad()
        new = torch.softmax(logits, 0)
        value = (new * q).sum() + (new * (new / old).log()).sum() / eta
        value.backward()
        return value

    solver.step(objective)
    return torch.softmax(logits.detach(), 0).numpy()


@pytest.mark.parametrize("seed", range(6))
def test_exponentiated_step_minimizes_equation_6(seed):
    generator = np.random.default_rng(seed)
    policy = generator.dirichlet(np.ones(4))
    q = generator.normal(size=4)
    eta = generator.uniform(0.2, 2)
    np.testing.assert_allclose(
        np.exp(apply_exponentiated_step(np.log(policy), q, eta)), minimize_equation_6(policy, q, eta), atol=1e-6
    )


def test_exponentiated_step_matches_hand_computed_odds():
    """(1/2, 1/2) with Q̃ = (0, ln 3) and η = 1: the odds become 3 to 1; with η = 2, 9 to 1."""
    even = np.log([0.5, 0.5])
    q = np.array([0.0, np.log(3)])
    np.testing.assert_allclose(np.exp(apply_exponentiated_step(even, q, 1.0)), [0.75, 0.25])
    np.testing.assert_allclose(np.exp(apply_exponentiated_step(even, q, 2.0)), [0.9, 0.1])


def test_exponentiated_step_updates_each_row_with_its_own_eta():
    generator = np.random.default_rng(0)
    policy = generator.dirichlet(np.ones(3), (2, 4, 5))
    q = generator.normal(size=(2, 4, 5, 3))
    eta = np.array([0.5, 2.0])[:, None, None, None]
    new = np.exp(apply_exponentiated_step(np.log(policy), q, eta))
    for i in np.ndindex(2, 4, 5):
        weights = policy[i] * np.exp(-eta[i[0], 0, 0, 0] * q[i])
        np.testing.assert_allclose(new[i], weights / weights.sum(), rtol=1e-12)


def test_exponentiated_steps_equal_one_step_with_summed_costs():
    generator = np.random.default_rng(0)
    policy = np.log(np.full(4, 0.25))
    q = generator.normal(size=(50, 4))
    for one in q:
        policy = apply_exponentiated_step(policy, one, 0.3)
    np.testing.assert_allclose(policy, log_softmax(-0.3 * q.sum(axis=0)), atol=1e-12)


@pytest.mark.parametrize("size", [1e6, 1e150, -1e150])
def test_exponentiated_step_does_not_overflow_with_huge_costs(size):
    q = np.array([size, 0.0, 2 * size])
    with np.errstate(**STRICT):
        new = np.exp(apply_exponentiated_step(np.log(np.full(3, 1 / 3)), q, 1.0))
    np.testing.assert_array_equal(new, np.eye(3)[q.argmin()])


# ---- the weights of all leaves of the tree


def update_all_leaf_weights(odds, path, q_taken, q_other, eta):
    """Return the log-odds of going right at every node, from separate updates of the weights of all 2^D leaves."""
    depth = len(path)
    leaves = np.array(list(np.ndindex((2,) * depth)))  # [2^D, D]: actions of each leaf
    weight = np.ones(len(leaves))
    loss = np.zeros(len(leaves))
    for j, actions in enumerate(leaves):
        node = here = 0  # the node on the leaf's path, and the one on the episode's path
        for level in range(depth):
            right = 1 / (1 + np.exp(-odds[node]))
            weight[j] *= right if actions[level] else 1 - right
            taken = 1 / (1 + np.exp(-odds[here])) if path[level] else 1 - 1 / (1 + np.exp(-odds[here]))
            if node != here:  # off its path the leaf acts as π_n
                loss[j] += taken * q_taken[level] + (1 - taken) * q_other[level]
            else:
                loss[j] += q_taken[level] if actions[level] == path[level] else q_other[level]
            node = 2 * node + 1 + actions[level]
            here = 2 * here + 1 + path[level]
    weight = weight * np.exp(-eta * loss)
    new = []
    for level in range(depth):
        for prefix in np.ndindex((2,) * level):
            below = (leaves[:, :level] == np.array(prefix, int)).all(axis=1)
            right, left = (weight[below & (leaves[:, level] == side)].sum() for side in (1, 0))
            new.append(np.log(right / left))
    return np.array(new)


@pytest.mark.parametrize("depth", range(1, 7))
def test_base_policies_step_equals_update_of_all_leaf_weights(depth):
    generator = np.random.default_rng(depth)
    for _ in range(30 if depth < 5 else 8):
        odds = generator.normal(size=2**depth - 1)
        path = generator.integers(2, size=depth)
        q_taken = generator.random(depth)
        q_other = generator.random(depth)
        eta = generator.uniform(0, 2)
        node = 0
        nodes = []
        for action in path:
            nodes.append(node)
            node = 2 * node + 1 + action
        sign = 2 * path - 1
        new = odds.copy()
        new[nodes] = sign * apply_base_policies_step(sign * odds[nodes], q_taken, q_other, eta)
        np.testing.assert_allclose(
            new, update_all_leaf_weights(odds, path, q_taken, q_other, eta), atol=1e-12, rtol=1e-12
        )


def test_base_policies_step_updates_batch_of_trees():
    generator = np.random.default_rng(0)
    odds, taken, other = generator.normal(size=(3, 4, 5))
    together = apply_base_policies_step(odds, taken, other, 0.7)
    for i in range(4):
        np.testing.assert_array_equal(together[i], apply_base_policies_step(odds[i], taken[i], other[i], 0.7))


def test_base_policies_step_does_not_overflow():
    odds = np.array([800.0, -800.0, 0.0])
    q = np.array([1e5, 0.0, 1e5])
    with np.errstate(**STRICT):
        new = apply_base_policies_step(odds, q, q[::-1].copy() + 1.0, 1.0)
    assert np.isfinite(new).all()
    assert apply_base_policies_step(np.array([0.0]), np.array([1e6]), np.array([0.0]), 1.0)[0] == -1e6


# ---- as line 7 of Algorithm 1


def uniform_table(mdp):
    policy = FeedForwardPolicy(mdp.horizon * len(mdp.costs), CategoricalHead(mdp.costs.shape[1]), hidden=())
    with torch.no_grad():
        policy.network[0].bias.zero_()
    return policy


def small_mdp():
    p, c, start = (array[0] for array in make_random_mdps(1, 4, 3, 2))
    return TabularSimulator(p, c, start, horizon=3)


def small_tree():
    """Tree of depth 3 with a leaf for each path; the path ends in the last layer, where costs are paid."""
    nodes = 2**4 - 1
    horizon = 4
    p = np.zeros((nodes, 2, nodes))
    c = np.zeros((nodes, 2))
    for node in range(nodes):
        for action in range(2):
            p[node, action, min(2 * node + 1 + action, nodes - 1) if node < 7 else node] = 1.0
    c[7:] = np.random.default_rng(0).random(8)[:, None] * [0.9, 1.0]
    return TabularSimulator(p, c, np.eye(nodes)[0], horizon)


@pytest.mark.parametrize("make", [small_mdp, small_tree])
def test_algorithm_1_with_exponentiated_update_follows_closed_form(make):
    """Each visited (t, s) moves by exp(−η Q*); all others stay."""
    mdp = make()
    eta = 0.8
    seen = []
    expert = TabularExpert(mdp)
    policy = uniform_table(mdp)
    advantage = AdvantageOracle(QStarOracle(expert))

    def recording_oracle(trajectories, policy):
        seen.append(trajectories.observations.any(axis=(0, 1)).reshape(mdp.horizon, -1))
        return advantage(trajectories)

    log_policy = np.log(tabular_probabilities(policy, mdp))
    iterations = aggrevated(
        Learner(policy, ExponentiatedUpdate(eta, normalize_costs=False)),
        mdp,
        expert,
        recording_oracle,
        all_actions_loss,
        k=3,
        validation_episodes=2,
    )
    for iteration in islice(iterations, 6):
        assert iteration.step.step_halvings == 0 and iteration.step.kl > 0
        log_policy = apply_exponentiated_step(log_policy, seen[-1][..., None] * mdp.q_star, eta)
        np.testing.assert_allclose(np.log(tabular_probabilities(policy, mdp)), log_policy, atol=1e-5)
    assert 0 < np.mean(seen) < 1  # some states were visited and some were not


def test_algorithm_1_with_exponentiated_update_learns_optimal_policy():
    mdp = small_mdp()
    expert = TabularExpert(mdp)
    policy = uniform_table(mdp)
    before = compute_total_cost(mdp.transitions, mdp.costs, mdp.start, tabular_probabilities(policy, mdp))
    iterations = aggrevated(
        Learner(policy, ExponentiatedUpdate(5.0, normalize_costs=False)),
        mdp,
        expert,
        AdvantageOracle(QStarOracle(expert)),
        all_actions_loss,
        k=20,
        validation_episodes=2,
    )
    list(islice(iterations, 60))
    best = compute_total_cost(mdp.transitions, mdp.costs, mdp.start, make_greedy_policy(mdp.q_star))
    after = compute_total_cost(mdp.transitions, mdp.costs, mdp.start, tabular_probabilities(policy, mdp))
    assert before > best + 0.3
    assert after < best + 0.01


def test_exponentiated_update_weights_visits_and_ignores_padded_steps():
    """Two visits of state 0 with costs (1, 0, 0) and (0, 0, 5), the first with weight 3; one step after the end."""
    policy = linear_policy()
    before = policy.network[0].weight.detach().numpy().copy()
    bias = policy.network[0].bias.detach().clone()
    mask = np.array([[True, True, True, False]])
    trajectories = replace(random_trajectories(k=1), observations=np.eye(3)[None, [0, 0, 1, 2]], mask=mask)
    values = np.array([[[1.0, 0, 0], [0, 0, 5.0], [0, 2.0, 0], [9.0, 0, 0]]])
    ExponentiatedUpdate(2.0, normalize_costs=False)(
        policy, all_actions_loss, trajectories, CostToGo(values, np.array([[3.0, 1.0, 1.0, 1.0]]))
    )
    moved = policy.network[0].weight.detach().numpy() - before
    np.testing.assert_allclose(moved.T, [[-1.5, 0, -2.5], [0, -4, 0], [0, 0, 0]], atol=1e-12)
    assert torch.equal(policy.network[0].bias, bias)
