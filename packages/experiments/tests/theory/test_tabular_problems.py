"""The finite MDPs of the theorems against hand-computed values."""

import numpy as np
import pytest

from aggrevated import UsageError
from aggrevated.simulators.tabular import compute_state_distributions, compute_total_cost, make_greedy_policy
from aggrevated_experiments.theory.tabular_problems import make_binary_tree, make_one_step_mdp


def test_make_binary_tree_matches_hand_computed_values():
    """Leaves .4 .1 | .9 .3: the best on the left costs .1, on the right .3; the optimum goes left, then right."""
    tree = make_binary_tree(np.array([0.4, 0.1, 0.9, 0.3]))
    assert tree.horizon == 3 and tree.costs.shape == (7, 2)
    np.testing.assert_array_equal(tree.q_star[0, 0], [0.1, 0.3])
    np.testing.assert_array_equal(tree.q_star[1, 1:3], [[0.4, 0.1], [0.9, 0.3]])
    np.testing.assert_array_equal(tree.q_star[2, 3:, 0], [0.4, 0.1, 0.9, 0.3])
    pi_star = make_greedy_policy(tree.q_star)
    np.testing.assert_array_equal(
        compute_state_distributions(tree.transitions, tree.start, pi_star), np.eye(7)[[0, 1, 4]]
    )
    uniformly = np.full((3, 7, 2), 0.5)
    assert compute_total_cost(tree.transitions, tree.costs, tree.start, uniformly) == pytest.approx(1.7 / 4)


@pytest.mark.parametrize("leaves", [0, 3, 2048])
def test_make_binary_tree_requires_a_power_of_two_of_leaves(leaves):
    with pytest.raises(UsageError, match=f"power of two of leaves, at most 1024; got {leaves}"):
        make_binary_tree(np.zeros(leaves))


def test_make_one_step_mdp_matches_hand_computed_values():
    mdp = make_one_step_mdp(np.array([2, 0]), 0.125, 3)
    np.testing.assert_array_equal(mdp.q_star, [[[0.5, 0.5, 0.375], [0.375, 0.5, 0.5]]])
    np.testing.assert_array_equal(mdp.start, [0.5, 0.5])
    assert mdp.horizon == 1
    assert compute_total_cost(mdp.transitions, mdp.costs, mdp.start, make_greedy_policy(mdp.q_star)) == 0.375
