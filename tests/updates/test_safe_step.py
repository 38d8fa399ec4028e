"""Halving, by hand: KL(uniform ‖ softmax(x, −x)) = log cosh x."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.updates.safe_step import MAX_HALVINGS, count_halvings, is_all_finite, search_step_to_kl, take_safe_step
from helpers.tiny_mdp import flat, random_trajectories


@pytest.fixture
def policy():
    """A uniform policy with two actions and three inputs: θ is W [2, 3], then b [2]."""
    policy = FeedForwardPolicy(3, CategoricalHead(2), hidden=()).double()
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
    return policy


def biases(x):
    return torch.tensor([0.0] * 6 + [x, -x], dtype=torch.float64)


TRAJECTORIES = random_trajectories(actions=2)
LOG_COSH_1 = 0.4337808304830271


def test_safe_step_takes_whole_step_within_limit(policy):
    kl, halvings = take_safe_step(policy, TRAJECTORIES, biases(1.0), max_kl=0.5)
    assert (kl, halvings) == (pytest.approx(LOG_COSH_1, abs=1e-12), 0)
    np.testing.assert_array_equal(flat(policy), biases(1.0))


@pytest.mark.parametrize("halvings", [1, 2, 5, 19])
def test_safe_step_halves_long_steps_and_counts_halvings(policy, halvings):
    found = take_safe_step(policy, TRAJECTORIES, biases(2.0**halvings), max_kl=LOG_COSH_1 + 1e-9)
    assert found == (pytest.approx(LOG_COSH_1, abs=1e-12), halvings)
    np.testing.assert_allclose(flat(policy), biases(1.0), atol=1e-15)


def test_safe_step_keeps_policy_after_last_halving(policy):
    assert take_safe_step(policy, TRAJECTORIES, biases(2.0**20), max_kl=LOG_COSH_1 + 1e-9) == (0.0, MAX_HALVINGS)
    assert not flat(policy).any()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308])
@pytest.mark.parametrize("max_kl", [0.5, math.inf])
def test_safe_step_never_leaves_non_finite_weights(policy, bad, max_kl):
    with torch.no_grad():
        policy.network[0].bias[0] = 1e308 if bad == 1e308 else 0.0
    before = flat(policy)
    displacement = biases(0.0)
    displacement[6] = bad
    _, halvings = take_safe_step(policy, TRAJECTORIES, displacement, max_kl)
    assert np.isfinite(flat(policy)).all()
    if bad == 1e308:  # 2e308 is infinite, 1.5e308 is not
        assert (halvings, flat(policy)[6]) == (1, 1.5e308)
    else:
        assert halvings == MAX_HALVINGS
        np.testing.assert_array_equal(flat(policy), before)


def test_safe_step_averages_kl_over_live_steps(policy):
    """Only W moves: o = 0 at padded steps, where a KL of 0 would lower the mean."""
    displacement = torch.tensor([1.0, 0, 0, -1.0, 0, 0, 0, 0], dtype=torch.float64)
    kl, _ = take_safe_step(policy, TRAJECTORIES, displacement, max_kl=math.inf)
    x = TRAJECTORIES.observations[TRAJECTORIES.mask][:, 0]
    assert not TRAJECTORIES.mask.all()
    assert kl == pytest.approx(np.log(np.cosh(x)).mean(), rel=1e-12)


@pytest.mark.parametrize("guess", [0.02, 0.1, 0.14, 1.0, 50.0])
def test_search_step_to_kl_rescales_step_until_kl_is_near_target(policy, guess):
    """KL = log cosh x is 0.01 at x = 0.1416."""
    kl, far = search_step_to_kl(policy, TRAJECTORIES, biases(guess), target=0.01)
    assert 0.01 / 1.5 <= kl <= 0.01 * 1.5
    np.testing.assert_allclose(flat(policy), biases(far * guess), atol=1e-15)
    assert kl == pytest.approx(math.log(math.cosh(far * guess)), rel=1e-9)


def test_search_step_to_kl_keeps_step_near_target(policy):
    assert search_step_to_kl(policy, TRAJECTORIES, biases(0.15), target=0.01)[1] == 1.0


def test_search_step_to_kl_lengthens_step_less_than_eightfold(policy):
    kl, far = search_step_to_kl(policy, TRAJECTORIES, biases(1e-4), target=0.01)
    assert 4 < far < 8 and kl < 1e-5


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_search_step_to_kl_rejects_non_finite_step(policy, bad):
    displacement = biases(0.0)
    displacement[6] = bad
    assert search_step_to_kl(policy, TRAJECTORIES, displacement, target=0.01) == (0.0, 0.0)
    assert not flat(policy).any()


def test_search_step_to_kl_returns_zero_for_zero_displacement(policy):
    assert search_step_to_kl(policy, TRAJECTORIES, biases(0.0), target=0.01) == (0.0, 1.0)


@pytest.mark.parametrize(("far", "halvings"), [(7.0, 0), (1.0, 0), (0.6, 0), (0.5, 1), (0.2, 2), (0.0, MAX_HALVINGS)])
def test_count_halvings_of_fraction_of_step(far, halvings):
    assert count_halvings(far) == halvings


@given(st.lists(st.floats(width=32), min_size=1), st.sampled_from([torch.float32, torch.float64]))
def test_is_all_finite_agrees_with_math_isfinite(numbers, dtype):
    assert is_all_finite(torch.tensor(numbers, dtype=dtype)) == all(map(math.isfinite, numbers))


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf])
def test_is_all_finite_finds_single_non_finite_number(strange):
    for place in (0, 5000, 9999):
        x = torch.ones(10_000)
        x[place] = strange
        assert not is_all_finite(x)
