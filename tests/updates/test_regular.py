"""Online gradient descent, plain and with Adam."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from aggrevated.core.schedules import linear_schedule
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.updates.regular import RegularUpdate
from helpers.tiny_mdp import flat, gradient, random_costs, random_trajectories, randomise

TRAJECTORIES = random_trajectories(dtype=np.float32)
COSTS = random_costs(TRAJECTORIES)


def small_policy(seed=0):
    return randomise(FeedForwardPolicy(3, CategoricalHead(3), hidden=(5,)), seed)


def test_regular_update_with_sgd_steps_by_rate_times_gradient():
    policy = small_policy()
    before = flat(policy)
    g = gradient(policy, all_actions_loss, TRAJECTORIES, COSTS)
    step = RegularUpdate(0.25, torch.optim.SGD)(policy, all_actions_loss, TRAJECTORIES, COSTS)
    np.testing.assert_allclose(flat(policy), before - 0.25 * g, atol=1e-7)
    assert step.gradient_norm == pytest.approx(np.linalg.norm(g), rel=1e-5)
    assert step.step_halvings == 0


def test_regular_update_first_adam_step_has_length_of_rate():
    policy = small_policy()
    before = flat(policy)
    g = gradient(policy, all_actions_loss, TRAJECTORIES, COSTS)
    RegularUpdate(0.01)(policy, all_actions_loss, TRAJECTORIES, COSTS)
    clear = np.abs(g) > 1e-4
    assert clear.sum() > 10
    np.testing.assert_allclose((flat(policy) - before)[clear], -0.01 * np.sign(g[clear]), rtol=1e-3)


def test_regular_update_with_adam_matches_torch():
    policy = small_policy()
    reference = small_policy()
    update = RegularUpdate(0.02)
    optimizer = torch.optim.Adam(reference.parameters(), lr=0.02)
    for _ in range(10):
        update(policy, all_actions_loss, TRAJECTORIES, COSTS)
        optimizer.zero_grad()
        all_actions_loss(reference, TRAJECTORIES, COSTS).backward()
        optimizer.step()
    np.testing.assert_allclose(flat(policy), flat(reference), atol=1e-6)


RATES = (0.02, 0.005, 0.03, 0.0, 0.01, 0.02)  # for n = 1, 2, …


def test_regular_update_with_scheduled_adam_matches_torch():
    policy = small_policy()
    reference = small_policy()
    update = RegularUpdate(lambda n: RATES[n - 1])
    optimizer = torch.optim.Adam(reference.parameters(), lr=1.0)
    for n, rate in enumerate(RATES, start=1):
        update(policy, all_actions_loss, replace(TRAJECTORIES, n=n), COSTS)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        all_actions_loss(reference, TRAJECTORIES, COSTS).backward()
        optimizer.step()
        np.testing.assert_allclose(flat(policy), flat(reference), atol=1e-6)


def test_regular_update_with_constant_schedule_equals_fixed_rate():
    fixed = small_policy()
    scheduled = small_policy()
    one = RegularUpdate(0.02)
    other = RegularUpdate(lambda n: 0.02)
    for n in range(1, 4):
        for update, policy in ((one, fixed), (other, scheduled)):
            update(policy, all_actions_loss, replace(TRAJECTORIES, n=n), COSTS)
    np.testing.assert_array_equal(flat(fixed), flat(scheduled))


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
def test_regular_update_resumes_inside_schedule_with_identical_bits(optimizer):
    """The state of the update does not hold the schedule: the trajectories hold n."""

    def steps(update, policy, iterations):
        return [update(policy, all_actions_loss, replace(TRAJECTORIES, n=n), COSTS) for n in iterations]

    straight = RegularUpdate(linear_schedule(0.05, 0.0, 6), optimizer)
    policy = small_policy()
    steps(straight, policy, (1, 2, 3))
    resumed = RegularUpdate(linear_schedule(0.05, 0.0, 6), optimizer)
    again = small_policy(9)
    again.load_state_dict({name: w.clone() for name, w in policy.state_dict().items()})
    resumed.restore({name: w.clone() for name, w in straight.state().items()})
    assert steps(resumed, again, (4, 5, 6)) == steps(straight, policy, (4, 5, 6))
    np.testing.assert_array_equal(flat(again), flat(policy))
    resting = flat(policy)
    steps(straight, policy, (7,))  # the rate has fallen to 0
    np.testing.assert_array_equal(flat(policy), resting)


def test_regular_update_reports_kl_and_loss_of_the_step():
    policy = small_policy()
    observations, mask = (torch.from_numpy(x) for x in (TRAJECTORIES.observations, TRAJECTORIES.mask))
    with torch.no_grad():
        before = policy.distribution(observations, mask).probs.double()
        loss = all_actions_loss(policy, TRAJECTORIES, COSTS).item()
    step = RegularUpdate(0.05)(policy, all_actions_loss, TRAJECTORIES, COSTS)
    with torch.no_grad():
        after = policy.distribution(observations, mask).probs.double()
    assert step.kl == pytest.approx(float((before * (before / after).log()).sum(-1)[mask].mean()), rel=1e-3)
    assert step.loss == loss


def test_regular_update_halves_step_beyond_max_kl():
    policy = small_policy()
    step = RegularUpdate(100.0, torch.optim.SGD, max_kl=0.01)(policy, all_actions_loss, TRAJECTORIES, COSTS)
    assert 0 < step.step_halvings < 20
    assert 0.0 < step.kl <= 0.01


def test_regular_update_recovers_from_one_huge_cost():
    """Adam squares the gradient: 1e30 gives an infinite second moment, and every later step would be 0 / ∞."""
    policy = small_policy()
    update = RegularUpdate(0.01)
    update(policy, all_actions_loss, TRAJECTORIES, random_costs(TRAJECTORIES, scale=1e30))
    before = flat(policy)
    for _ in range(5):
        update(policy, all_actions_loss, TRAJECTORIES, COSTS)
    assert math.dist(flat(policy), before) > 1e-3


def test_regular_update_trains_float64_policy_in_float64():
    policy = small_policy().double()
    trajectories = random_trajectories()
    before = flat(policy)
    costs = random_costs(trajectories)
    g = gradient(policy, all_actions_loss, trajectories, costs)
    RegularUpdate(0.25, torch.optim.SGD)(policy, all_actions_loss, trajectories, costs)
    np.testing.assert_allclose(flat(policy), before - 0.25 * g, atol=1e-14)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
@pytest.mark.parametrize("rate", [1e-4, 0.01, 1.0])
def test_regular_update_measured_kl_approaches_target_from_any_rate(optimizer, rate):
    policy = small_policy()
    update = RegularUpdate(rate, optimizer, target_kl=0.01)
    for n in range(1, 21):
        trajectories = replace(random_trajectories(seed=n, dtype=np.float32), n=n)
        step = update(policy, all_actions_loss, trajectories, random_costs(trajectories, seed=n))
        assert step.kl <= 0.015
    assert step.kl == pytest.approx(0.01, rel=0.5)


def test_regular_update_rate_factor_at_most_doubles_per_step():
    """Gradient descent at 1e-6 is a thousand times too slow: the rate doubles with each step until it is not."""
    policy = small_policy()
    update = RegularUpdate(1e-6, torch.optim.SGD, target_kl=0.01)
    factors = []
    for _ in range(4):
        update(policy, all_actions_loss, TRAJECTORIES, COSTS)
        factors.append(update.state()["factor"].item())
    assert factors == [2.0, 4.0, 8.0, 16.0]


def test_regular_update_without_gradient_keeps_rate_factor():
    update = RegularUpdate(0.01, torch.optim.SGD, target_kl=0.01)
    update(small_policy(), all_actions_loss, TRAJECTORIES, replace(COSTS, values=np.zeros_like(COSTS.values)))
    assert update.state() == {}


def test_regular_update_without_target_has_no_rate_factor():
    update = RegularUpdate(0.01)
    update(small_policy(), all_actions_loss, TRAJECTORIES, COSTS)
    assert set(update.state()) == {"step", "exp_avg", "exp_avg_sq"}
