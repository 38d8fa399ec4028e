"""The finite MDPs of the theorems as tabular simulators: the binary tree, and the one-step problem."""

import numpy as np

from aggrevated import TabularSimulator
from aggrevated.core.arrays import Array
from aggrevated.core.errors import UsageError


def make_binary_tree(leaf_costs: Array) -> TabularSimulator:
    """The tree of Section 5.1 over these expected leaf costs [2^(K−1)]: S = 2^K − 1 states, H = K, left and right.

    Transitions are a dense array here; `theory.tree` has what deep trees need.
    """
    leaves = len(leaf_costs)
    states = 2 * leaves - 1
    if leaves < 1 or leaves & (leaves - 1) or leaves > 1024:
        raise UsageError(f"a tree has a power of two of leaves, here at most 1024, not {leaves}")
    transitions = np.zeros((states, 2, states))
    costs = np.zeros((states, 2))
    inner = np.arange(leaves - 1)
    for action in (0, 1):
        transitions[inner, action, 2 * inner + 1 + action] = 1.0
        transitions[np.arange(leaves - 1, states), action, np.arange(leaves - 1, states)] = 1.0
    costs[leaves - 1 :] = np.asarray(leaf_costs)[:, None]
    return TabularSimulator(transitions, costs, np.eye(states)[0], horizon=int(np.log2(leaves)) + 1, name="tree")


def make_one_step_mdp(best: Array, gap: float, actions: int) -> TabularSimulator:
    """H = 1 (Theorem lower_bound): a uniform state, every action costs 1/2, but `best[s]` costs less by `gap`."""
    costs = np.full((len(best), actions), 0.5)
    costs[np.arange(len(best)), best] -= gap
    stay = np.broadcast_to(np.eye(len(best))[:, None], (len(best), actions, len(best)))
    return TabularSimulator(stay, costs, np.full(len(best), 1 / len(best)), horizon=1, name="one-step")
