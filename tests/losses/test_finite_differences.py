"""Every loss against a NumPy formula, and its gradient against central finite differences of that formula."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.utils import vector_to_parameters

from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle
from helpers.tiny_mdp import deep_policy, flat, gradient, random_costs, random_trajectories, with_expert_steps

TRAJECTORIES = with_expert_steps(random_trajectories())
SCALE = TRAJECTORIES.horizon * TRAJECTORIES.count


def q(trajectories, policy=None):
    return random_costs(trajectories)


def expected_cost(pi, pi_n, costs):
    """Return Eq. 10 before the gradient: Σ_a π(a|s_t) Q(s_t, a)."""
    return sum(pi[i, t] @ costs[i, t] for i, t in zip(*np.nonzero(TRAJECTORIES.mask), strict=True)) / SCALE


def importance_weighted(pi, pi_n, costs):
    """Return Eq. 4: the denominator is π_n and constant in θ."""
    total = 0.0
    for i, t in zip(*np.nonzero(TRAJECTORIES.mask), strict=True):
        if not TRAJECTORIES.by_expert[i, t]:
            a = TRAJECTORIES.actions[i, t]
            total += pi[i, t, a] / pi_n[i, t, a] * costs[i, t] / (1 - TRAJECTORIES.alpha)
    return total / SCALE


def log_loss(pi, pi_n, costs):
    """Return −log π of the cheapest action."""
    live = zip(*np.nonzero(TRAJECTORIES.mask), strict=True)
    return sum(-np.log(pi[i, t, costs[i, t].argmin()]) for i, t in live) / SCALE


def entropy(pi):
    """Return the mean of −Σ_a π(a|s_t) log π(a|s_t), averaged as all losses."""
    live = zip(*np.nonzero(TRAJECTORIES.mask), strict=True)
    return sum(-pi[i, t] @ np.log(pi[i, t]) for i, t in live) / SCALE


CASES = {
    "all actions, Q (Eq. 10)": (all_actions_loss, q, expected_cost),
    "all actions, A (Eq. 12)": (all_actions_loss, AdvantageOracle(q), expected_cost),
    "taken action, Q (Eq. 11)": (taken_action_loss, TakenActionOracle(q), importance_weighted),
    "taken action, A (Eq. 13)": (taken_action_loss, TakenActionOracle(AdvantageOracle(q)), importance_weighted),
    "likelihood": (best_action_nll_loss, q, log_loss),
}


@pytest.mark.parametrize("bonus", [0.0, 0.7])
@pytest.mark.parametrize(("loss", "oracle", "formula"), CASES.values(), ids=CASES)
def test_losses_and_gradients_match_formula_and_finite_differences(loss, oracle, formula, bonus):
    policy = deep_policy()
    costs = replace(oracle(TRAJECTORIES), entropy_bonus=bonus)
    theta = flat(policy)

    def pi_at(vector):
        vector_to_parameters(torch.from_numpy(vector), policy.parameters())
        with torch.no_grad():
            observations = torch.from_numpy(TRAJECTORIES.observations)
            mask = torch.from_numpy(TRAJECTORIES.mask)
            return policy.distribution(observations, mask).probs.numpy()

    def whole(pi):
        return formula(pi, pi_n, costs.values) - bonus * entropy(pi)

    pi_n = pi_at(theta)
    step = 1e-6
    values = [[whole(pi_at(theta + sign * e)) for sign in (1, -1)] for e in step * np.eye(len(theta))]
    differences = np.array([(up - down) / (2 * step) for up, down in values])
    pi_at(theta)
    assert loss(policy, TRAJECTORIES, costs).item() == pytest.approx(whole(pi_n), rel=1e-6)
    exact = gradient(policy, loss, TRAJECTORIES, costs)
    assert np.abs(exact).max() > 1e-3  # the gradient is not trivial
    # 1/(1 − α) is a float32 in taken_action: seven digits
    np.testing.assert_allclose(exact, differences, atol=1e-8, rtol=1e-6)
