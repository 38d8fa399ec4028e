"""The tree against hand-computed values, slow loops with every leaf's weight, and the theorems."""

import numpy as np
import pytest

from aggrevated_experiments.theory import tree
from aggrevated_experiments.theory.bounds import compute_special_lower_noisy_bound, compute_special_upper_bound
from aggrevated_experiments.theory.study import fit_slope, list_recorded_episodes
from aggrevated_experiments.theory.tabular_problems import make_binary_tree


def test_tree_v_star_matches_hand_computed_values():
    """Leaves .3 .7 | .6 .2."""
    trees = tree.Trees(np.array([[0.3, 0.7, 0.6, 0.2], [0.9, 0.8, 0.5, 0.5]]))
    np.testing.assert_array_equal(trees.v_star[0], [0.2, 0.3, 0.2, 0.3, 0.7, 0.6, 0.2])
    np.testing.assert_array_equal(trees.v_star[1], [0.5, 0.8, 0.5, 0.9, 0.8, 0.5, 0.5])
    assert trees.decisions == 2 and trees.trials == 2


def test_tree_v_star_equals_that_of_the_dense_mdp():
    trees = tree.make_random_trees(3, 5, seed=0)
    for means, v in zip(trees.means, trees.v_star, strict=True):
        q = make_binary_tree(means).q_star
        for level in range(5):
            nodes = np.arange(2**level - 1, 2 ** (level + 1) - 1)
            np.testing.assert_array_equal(v[nodes], q[level, nodes].min(axis=1))


def test_one_good_leaf_makes_one_good_leaf_per_tree():
    means = tree.make_hard_trees(200, 5, 0.125, seed=0).means
    assert means.shape == (200, 16)
    assert ((means == 0.375).sum(axis=1) == 1).all() and ((means == 0.5).sum(axis=1) == 15).all()
    assert len(np.unique(means.argmin(axis=1))) == 16


def test_uniform_leaves_have_uniform_costs():
    means = tree.make_random_trees(100, 7, seed=0).means
    assert means.shape == (100, 64) and means.min() >= 0 and means.max() <= 1
    assert abs(means.mean() - 0.5) < 4 / np.sqrt(12 * 6400) and abs(means.var() - 1 / 12) < 0.005


# ---- AggreVaTe with follow-the-leader


@pytest.mark.parametrize("depth", range(2, 11))
def test_follow_the_leader_finds_the_best_leaf_within_k_minus_1_episodes(depth):
    """Theorem special_upper on 1,000 random trees and first policies; shallow trees need all K − 1 episodes."""
    regret, found = tree.run_follow_the_leader(
        tree.make_random_trees(1000, depth, seed=depth), depth + 3, seed=depth + 1
    )
    assert found.max() <= depth - 1
    assert depth > 6 or found.max() == depth - 1
    assert (regret.curve[:, depth - 2] == regret.curve[:, -1]).all()
    assert (regret.curve <= compute_special_upper_bound(depth, list_recorded_episodes(depth + 3))).all()


def test_follow_the_leader_equals_loop_over_single_trees():
    trees = tree.make_random_trees(30, 5, seed=4)
    episodes = 6
    policies = np.random.default_rng(9).integers(2, size=(30, 15), dtype=np.int8)
    regret, found = tree.run_follow_the_leader(trees, episodes, seed=9)
    for means, policy, curve, after in zip(trees.means, policies, regret.curve, found, strict=True):
        policy = list(policy)
        total = 0.0
        first = None
        for n in range(episodes):
            node = 0
            visited = []
            while node < 15:
                visited.append(node)
                node = 2 * node + 1 + policy[node]
            total += means[node - 15] - means.min()
            assert curve[n] == pytest.approx(total, abs=1e-12)
            first = n if first is None and means[node - 15] == means.min() else first
            for node in visited:
                policy[node] = int(best_below(means, 2 * node + 2) < best_below(means, 2 * node + 1))
        assert after == first


def best_below(means, node):
    return means[node - 15] if node >= 15 else min(best_below(means, 2 * node + 1), best_below(means, 2 * node + 2))


# ---- AggreVaTeD with exponentiated gradient


def slow_gradient(trees, episodes, seed, rollouts, per_node):
    """Return the regret [trials, N] with the same random numbers, from explicit probabilities of all leaves."""
    generator = np.random.default_rng(seed)
    (trials, count) = trees.means.shape
    depth = trees.decisions
    leaves = np.array(list(np.ndindex((2,) * depth)))
    eta = 2 * np.sqrt(np.log(2) / episodes)
    regret = np.zeros((trials, episodes))
    weights = np.full((trials, count), 1 / count)
    nodes = [dict.fromkeys([()] + [tuple(x[:d]) for x in leaves for d in range(depth)], 0.5) for _ in range(trials)]
    for n in range(episodes):
        noise = generator.logistic(size=(depth, trials))
        paths = np.zeros((trials, depth), int)
        q = np.zeros((2, trials, depth))
        for i in range(trials):
            if per_node:  # the probability of each leaf, from those of going right
                right = [[nodes[i][tuple(x[:d])] for d in range(depth)] for x in leaves]
                weights[i] = np.where(leaves == 1, right, 1 - np.array(right)).prod(axis=1)
            regret[i, n] = weights[i] @ trees.means[i] - trees.means[i].min()
            for level in range(depth):
                below = (leaves[:, :level] == paths[i, :level]).all(axis=1)
                sides = [below & (leaves[:, level] == side) for side in (0, 1)]
                odds = weights[i][sides[1]].sum() / weights[i][sides[0]].sum()
                q[:, i, level] = [trees.means[i][side].min() for side in sides]
                paths[i, level] = noise[level, i] < np.log(odds)
        if rollouts is not None:
            q = generator.binomial(rollouts, q) / rollouts
        for i in range(trials):
            weights[i] = all_leaves(weights[i], leaves, paths[i], q[:, i], eta)
            for level in range(depth):
                prefix = tuple(paths[i, :level])
                odds = nodes[i][prefix] / (1 - nodes[i][prefix]) * np.exp(eta * (q[0, i, level] - q[1, i, level]))
                nodes[i][prefix] = odds / (1 + odds)
    return regret.cumsum(axis=1)


def all_leaves(weights, leaves, path, q, eta):
    """Return each leaf's weight times exp(−η Σ_s Q̃(s, π^j(s))), where π^j acts as π_n off its path."""
    loss = np.zeros(len(leaves))
    for level in range(len(path)):
        below = (leaves[:, :level] == path[:level]).all(axis=1)
        right = weights[below & (leaves[:, level] == 1)].sum() / weights[below].sum()
        mean = (1 - right) * q[0, level] + right * q[1, level]
        loss += np.where(below, q[leaves[:, level], level], mean)
    new = weights * np.exp(-eta * loss)
    return new / new.sum()


@pytest.mark.parametrize("per_node", [False, True])
@pytest.mark.parametrize("rollouts", [None, 1, 3])
def test_tree_exponentiated_gradient_equals_explicit_leaf_probabilities(rollouts, per_node):
    trees = tree.make_random_trees(3, 5, seed=2)
    quick = tree.run_exponentiated_gradient(trees, 40, 7, rollouts, per_node)
    np.testing.assert_allclose(quick.curve, slow_gradient(trees, 40, 7, rollouts, per_node), atol=1e-10)
    assert ("π^s" if per_node else "base policies") in quick.label
    assert ("exact" if rollouts is None else "noisy") in quick.label


@pytest.mark.parametrize("depth", [4, 8, 11])
def test_tree_regret_stays_under_the_upper_bound(depth):
    """Theorem special_lower_noisy; and the regret stays far below that of the first policy."""
    episodes = 1000
    curve = tree.run_exponentiated_gradient(tree.make_hard_trees(10, depth, 0.25, seed=1), episodes, seed=1).curve
    assert (curve <= compute_special_lower_noisy_bound(depth, list_recorded_episodes(episodes))).all()
    assert curve[:, -1].max() < 0.8 * episodes * 0.25 and (np.diff(curve, axis=1) >= 0).all()


def test_tree_regret_grows_as_the_root_of_n():
    episodes = np.array([250, 500, 1000, 2000])
    trees = tree.make_hard_trees(20, 6, 0.25, seed=1)
    at_the_end = [tree.run_exponentiated_gradient(trees, n, seed=1).curve[:, -1].mean() for n in episodes]
    assert fit_slope(np.log(episodes), np.log(at_the_end)) == pytest.approx(0.5, abs=0.07)


def test_tree_regret_grows_with_the_logarithm_of_s():
    """Roughly as (ln S)^1; from S = 15 to 1,023 a bandit's √S would grow 8-fold."""
    depths = np.array([4, 6, 8, 10])
    at_the_end = np.array(
        [
            tree.run_exponentiated_gradient(tree.make_hard_trees(20, d, 0.25, 1), 2000, 1).curve[:, -1].mean()
            for d in depths
        ]
    )
    assert at_the_end[-1] < 4 * at_the_end[0]
    assert fit_slope(np.log(np.log(2.0**depths - 1)), np.log(at_the_end)) == pytest.approx(1.2, abs=0.4)


# ---- episode by episode


def test_follow_the_leader_with_noise_equals_loop_with_sums():
    """The same random numbers: first the policy, then in each episode the rollouts of both actions on the path."""
    means = np.array([0.2, 0.9, 0.6, 0.4, 0.5, 0.1, 0.7, 0.8])
    episodes = 40
    rollouts = 3
    trees = tree.Trees(means[None])
    generator = np.random.default_rng(5)
    policy = generator.integers(2, size=(1, 7), dtype=np.int8)[0]
    sums = np.zeros((2, 7))
    total = 0.0
    regret, found = tree.run_follow_the_leader(trees, episodes, 5, rollouts)
    below = [min(means), 0.2, 0.1, 0.2, 0.4, 0.1, 0.7, *means]
    first = episodes
    for n in range(episodes):
        visited = [0]
        while visited[-1] < 7:
            visited.append(2 * visited[-1] + 1 + int(policy[visited[-1]]))
        *nodes, leaf = visited
        q = generator.binomial(rollouts, [[[below[2 * s + side] for s in nodes]] for side in (1, 2)])[:, 0] / rollouts
        total += below[leaf] - 0.1
        first = min(first, n) if below[leaf] == 0.1 else first
        assert regret.curve[0, n] == pytest.approx(total, abs=1e-12)
        for level, s in enumerate(nodes):
            sums[:, s] += q[:, level]
            policy[s] = sums[1, s] < sums[0, s]
    assert found[0] == first and "noisy" in regret.label


@pytest.mark.parametrize("rollouts", [None, 2])
@pytest.mark.parametrize("episodes_of", [tree.iter_follow_the_leader, tree.iter_exponentiated_gradient])
def test_tree_episodes_follow_the_policy_and_add_up_to_the_curve(episodes_of, rollouts):
    trees = tree.make_random_trees(4, 5, seed=3)
    count = 60
    whole = {tree.iter_follow_the_leader: lambda: tree.run_follow_the_leader(trees, count, 8, rollouts)[0]}
    curve = whole.get(episodes_of, lambda: tree.run_exponentiated_gradient(trees, count, 8, rollouts))().curve
    total = np.zeros(4)
    k = np.arange(4)
    for n, episode in enumerate(episodes_of(trees, count, 8, rollouts)):
        total = total + episode.regret
        np.testing.assert_array_equal(total, curve[:, n])
        assert (episode.nodes[:, 0] == 0).all() and episode.q.shape == (2, 4, 4)
        np.testing.assert_array_equal(episode.nodes[:, 1:], 2 * episode.nodes[:, :-1] + 1 + episode.actions[:, :-1])
        if episodes_of is tree.iter_follow_the_leader:
            np.testing.assert_array_equal(episode.actions, episode.policy[k[:, None], episode.nodes])
        if rollouts is None:
            exact = trees.v_star[k[:, None], 2 * episode.nodes + 1]
            np.testing.assert_array_equal(episode.q[0], exact)
        else:
            assert set(np.unique(episode.q)) <= {0.0, 0.5, 1.0}
    assert n == count - 1


def test_tree_exponentiated_gradient_learns_faster_with_larger_steps():
    trees = tree.make_hard_trees(10, 5, 0.25, seed=0)
    small, own, large = (
        tree.run_exponentiated_gradient(trees, 200, 0, rollouts=None, step=step).curve[:, -1].mean()
        for step in (0.5, 1, 4)
    )
    assert large < own < small
