"""Probabilities of a tabular policy."""

import torch

from aggrevated.core.arrays import Array
from aggrevated.policies import Policy
from aggrevated.simulators.tabular import TabularSimulator


def tabular_probabilities(policy: Policy, mdp: TabularSimulator) -> Array:
    """Return π(a|s, t) of a table, [H, S, A]."""
    states, actions = mdp.costs.shape
    with torch.no_grad():
        one_hot = torch.eye(mdp.horizon * states)[None]
        table = policy.distribution(one_hot, torch.ones(one_hot.shape[:2])).probs[0]
    return table.double().numpy().reshape(mdp.horizon, states, actions)
