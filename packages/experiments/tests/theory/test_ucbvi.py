"""UCBVI: hand-computed cost-to-go, below Q*, and its convergence."""

import numpy as np
import pytest

from aggrevated.simulators.tabular import compute_optimal_q, compute_total_cost, make_greedy_policy, make_random_mdps
from aggrevated_experiments.theory.ucbvi import compute_optimistic_q, run_ucbvi

HORIZON = 3


def make_experience(trials, visits, seed, states=3, actions=2):
    """Return (MDPs, counts, paid costs) after `visits` visits of every state and action."""
    transitions, costs, start = make_random_mdps(trials, states, actions, seed)
    generator = np.random.default_rng(seed)
    return (
        (transitions, costs, start),
        generator.multinomial(visits, transitions) * 1.0,
        generator.binomial(visits, costs) * 1.0,
    )


def test_optimistic_q_matches_hand_computed_values():
    """One state, H = 2. Action 0: tried 4 times, cost 3, width ½·√(4/4) = ½ a step; action 1: never tried."""
    q = compute_optimistic_q(np.array([[[[4.0], [0.0]]]]), np.array([[[3.0, 0.0]]]), 2, scale=0.5, confidence=4.0)
    np.testing.assert_allclose(q[0, :, 0], [[0.0, 0.0], [0.25, 0.0]])  # at t = 0: ¾ + 0 − 2·½, not below 0
    both = compute_optimistic_q(np.array([[[[4.0], [16.0]]]]), np.array([[[3.0, 16.0]]]), 2, scale=0.5, confidence=4.0)
    np.testing.assert_allclose(both[0, :, 0], [[0.0, 0.75], [0.25, 0.75]])  # 1 + ¼ − 2·¼ and 1 − ¼


@pytest.mark.parametrize("visits", [1, 10, 100])
def test_optimistic_q_is_below_q_star_with_the_theoretical_bonus(visits):
    mdps, counts, paid = make_experience(200, visits, seed=visits)
    confidence = np.log(3 * 2 * HORIZON * 1000)
    q_star = compute_optimal_q(*mdps[:2], HORIZON)
    assert (compute_optimistic_q(counts, paid, HORIZON, 1.0, confidence) <= q_star + 1e-12).all()
    assert (compute_optimistic_q(counts, paid, HORIZON, 0.0, confidence) > q_star).mean() > 0.1  # due to the bonus


def test_optimistic_q_converges_to_q_star():
    mdps, counts, paid = make_experience(20, 10**7, seed=0)
    np.testing.assert_allclose(
        compute_optimistic_q(counts, paid, HORIZON, 0.1, 10.0), compute_optimal_q(*mdps[:2], HORIZON), atol=2e-3
    )


def test_ucbvi_finds_the_optimal_policy_of_a_small_mdp():
    """Action 1 of state 0 is expensive now and cheap later: a greedy learner would not try it."""
    transitions = np.zeros((1, 2, 2, 2))
    transitions[0, 0, 0] = transitions[0, 1, 1] = [1.0, 0.0]
    transitions[0, 0, 1] = transitions[0, 1, 0] = [0.0, 1.0]
    mdps = transitions, np.array([[[0.6, 0.9], [0.05, 0.9]]]), np.array([[1.0, 0.0]])
    assert make_greedy_policy(compute_optimal_q(*mdps[:2], HORIZON))[0, 0, 0].tolist() == [0, 1]
    twenty = tuple(np.repeat(array, 20, axis=0) for array in mdps)
    regret = run_ucbvi(twenty, HORIZON, 400, seed=0, scale=0.1)
    assert (regret.curve[:, -1] == regret.curve[:, -50]).all()  # no mistake at the end
    assert regret.curve[:, -1].min() > 0 and not regret.learns_from_expert


def test_ucbvi_regret_starts_with_the_first_policy_and_is_never_negative():
    """Before any trial all costs are 0, so the policy takes the first action everywhere."""
    mdps = make_random_mdps(10, 4, 3, 0)
    q_star = compute_optimal_q(*mdps[:2], HORIZON)
    first = np.broadcast_to(np.eye(3)[0], q_star.shape)
    curve = run_ucbvi(mdps, HORIZON, 200, seed=0, scale=0.1).curve
    best = (mdps[2] * q_star[:, 0].min(axis=2)).sum(axis=1)
    np.testing.assert_allclose(curve[:, 0], compute_total_cost(*mdps, first) - best)
    assert (np.diff(curve, axis=1) > -1e-12).all()
    assert (curve[:, -1] - curve[:, -20]).mean() < 0.5 * (curve[:, 20] - curve[:, 1]).mean()  # it decreases
