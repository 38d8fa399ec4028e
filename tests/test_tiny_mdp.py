"""The tiny MDP, on which many other tests depend, against numbers computed by hand."""

import numpy as np
import pytest

from helpers.tiny_mdp import (
    COST,
    EXPERT,
    NEXT,
    Q_STAR,
    TinyExpert,
    TinyMdp,
    every_trajectory,
    exact_gradient,
    linear_policy,
    mixture,
    probabilities,
    state_distributions,
)

UNIFORM = np.full((3, 3), 1 / 3)


def test_tiny_mdp_q_star_satisfies_bellman_equation():
    value_after = np.zeros(4)  # the last entry is for END = -1
    for t in (2, 1, 0):
        q = COST + value_after[NEXT].mean(axis=2)
        np.testing.assert_array_equal(q, Q_STAR[t])
        assert np.array_equal(q.argmin(axis=1), EXPERT)
        value_after[:3] = q[np.arange(3), EXPERT]


def test_tiny_mdp_state_distributions_of_uniform_policy_match_fractions():
    expected = [[1 / 2, 1 / 4, 1 / 4], [5 / 24, 7 / 24, 1 / 3], [7 / 36, 2 / 9, 5 / 24]]
    np.testing.assert_allclose(state_distributions(UNIFORM), expected, rtol=1e-15)


def test_tiny_mdp_state_distributions_of_mixture_match_fractions():
    expected = [[1 / 2, 1 / 4, 1 / 4], [53 / 240, 17 / 48, 37 / 120], [1667 / 7200, 4457 / 14400, 901 / 4800]]
    np.testing.assert_allclose(state_distributions(mixture(UNIFORM, 0.3)), expected, rtol=1e-14)


def test_tiny_mdp_exact_gradient_of_uniform_policy_matches_fractions():
    logits = np.array(
        [
            [41 / 1296, 11 / 216, -107 / 1296],
            [7 / 1944, -331 / 3888, 317 / 3888],
            [-61 / 648, 37 / 324, -13 / 648],
        ]
    )
    expected = [*logits.T.reshape(-1), -229 / 3888, 311 / 3888, -41 / 1944]
    np.testing.assert_allclose(exact_gradient(UNIFORM), expected, atol=1e-16)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7])
def test_tiny_mdp_enumeration_agrees_with_state_distributions(alpha):
    policy = linear_policy()
    enumeration = every_trajectory(policy, alpha)
    assert enumeration.probability.sum() == pytest.approx(1.0, abs=1e-14)
    visits = enumeration.trajectories.observations * enumeration.trajectories.mask[..., None]  # [J, H, S]
    counted = np.einsum("j,jts->ts", enumeration.probability, visits)
    expected = state_distributions(mixture(probabilities(policy), alpha))
    np.testing.assert_allclose(counted, expected, atol=1e-14)


def test_tiny_mdp_seeds_0_to_15_cover_start_distribution():
    state = TinyMdp().reset(np.arange(16, dtype=np.uint64))
    assert np.bincount(state[:, 0]).tolist() == [8, 4, 4]
    assert np.bincount(state[:, 2]).tolist() == [4, 4, 4, 4]
    assert np.array_equal(TinyExpert().q(state[[0, 8, 12]]), Q_STAR[0])
