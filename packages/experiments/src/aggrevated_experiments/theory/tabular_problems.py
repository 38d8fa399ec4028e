"""Finite MDPs of the theorems as tabular simulators: the binary tree and the one-step problem."""

import numpy as np

from aggrevated import TabularSimulator
from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError


def make_binary_tree(leaf_costs: Array) -> TabularSimulator:
    """Return the tree of Section 5.1: S = 2^K − 1 states, H = K, actions left and right.

    Transitions are a dense array here; `theory.tree` supports deep trees.

    Args:
        leaf_costs: expected costs of the leaves [2^(K−1)].

    Raises:
        UsageError: the number of leaves is not a power of two up to 1024.
    """
    leaves = len(leaf_costs)
    states = 2 * leaves - 1
    if leaves < 1 or leaves & (leaves - 1) or leaves > 1024:
        raise UsageError(f"a tree needs a power of two of leaves, at most 1024; got {leaves}")
    transitions = np.zeros((states, 2, states))
    costs = np.zeros((states, 2))
    inner = np.arange(leaves - 1)
    for action in (0, 1):
        transitions[inner, action, 2 * inner + 1 + action] = 1.0
        transitions[np.arange(leaves - 1, states), action, np.arange(leaves - 1, states)] = 1.0
    costs[leaves - 1 :] = np.asarray(leaf_costs)[:, None]
    return TabularSimulator(transitions, costs, np.eye(states)[0], horizon=int(np.log2(leaves)) + 1, name="tree")


def make_one_step_mdp(best: Array, gap: float, actions: int) -> TabularSimulator:
    """Return the problem of Theorem lower_bound, H = 1, with uniform states.

    Actions cost 1/2, and `best[s]` costs 1/2 − gap.
    """
    costs = np.full((len(best), actions), 0.5)
    costs[np.arange(len(best)), best] -= gap
    stay = np.broadcast_to(np.eye(len(best))[:, None], (len(best), actions, len(best)))
    return TabularSimulator(stay, costs, np.full(len(best), 1 / len(best)), horizon=1, name="one-step")
