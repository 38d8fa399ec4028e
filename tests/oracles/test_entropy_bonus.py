"""The entropy bonus: its effect on each loss, by hand; tests/losses checks its gradients."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from aggrevated.core.schedules import linear_schedule
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles import CostToGo
from aggrevated.oracles.advantage import TakenActionOracle
from aggrevated.oracles.entropy_bonus import EntropyBonusOracle
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import GaussianHead
from helpers.tiny_mdp import (
    TinyExpert,
    every_trajectory,
    gradient,
    linear_policy,
    probabilities,
    random_costs,
    random_trajectories,
    with_legal,
    with_vectors,
)

Q = QStarOracle(TinyExpert())
LOSSES = {
    "all actions": (all_actions_loss, Q),
    "taken action": (taken_action_loss, TakenActionOracle(Q)),
    "likelihood": (best_action_nll_loss, Q),
}
every_loss = pytest.mark.parametrize(("loss", "oracle"), LOSSES.values(), ids=LOSSES)


def bonus_in_loss(policy, loss, oracle, bonus, trajectories):
    """Return the amount by which the bonus lowers the loss."""
    costs = EntropyBonusOracle(oracle, bonus)(trajectories)
    return (loss(policy, trajectories, oracle(trajectories)) - loss(policy, trajectories, costs)).item()


@every_loss
def test_entropy_bonus_of_uniform_policy_is_log_3_per_step(loss, oracle):
    policy = linear_policy(None)
    trajectories = every_trajectory(policy).trajectories
    expected = 0.25 * math.log(3) * trajectories.mask.sum() / (3 * trajectories.count)
    assert bonus_in_loss(policy, loss, oracle, 0.25, trajectories) == pytest.approx(expected, rel=1e-6)
    assert not trajectories.mask.all()  # some ended early, and get no bonus after their end


@every_loss
def test_entropy_bonus_is_policy_entropy_in_each_visited_state(loss, oracle):
    policy = linear_policy(3)
    trajectories = every_trajectory(policy).trajectories
    pi = probabilities(policy)
    entropy = -(pi * np.log(pi)).sum(axis=1)
    assert np.ptp(entropy) > 0.03  # the states differ
    total = entropy[trajectories.states[trajectories.mask][:, 0]].sum()
    assert bonus_in_loss(policy, loss, oracle, 2.0, trajectories) == pytest.approx(
        2 * total / (3 * trajectories.count), rel=1e-6
    )


def test_entropy_bonus_ignores_illegal_actions():
    """A uniform policy over m legal actions has the entropy log m; padded steps have none."""
    trajectories = with_legal(random_trajectories())
    choices = trajectories.action_mask[trajectories.mask].sum(axis=1)
    assert set(choices) == {1, 2, 3}
    expected = 0.5 * np.log(choices).sum() / (trajectories.horizon * trajectories.count)
    assert bonus_in_loss(linear_policy(None), all_actions_loss, random_costs, 0.5, trajectories) == pytest.approx(
        expected, rel=1e-6
    )


def test_entropy_bonus_uses_query_weights():
    """The Monte-Carlo oracle queries M of H steps, which get the weight H/M; the others get 0."""
    batch = random_trajectories(k=2, t=3)
    weight = np.array([[0.0, 3.0, 0.0], [0.5, 0.0, 0.0]])

    def oracle(trajectories, policy=None):
        return CostToGo(np.zeros((2, 3, 3)), weight)

    expected = math.log(3) * weight.sum() / (batch.horizon * 2)
    assert bonus_in_loss(linear_policy(None), all_actions_loss, oracle, 1.0, batch) == pytest.approx(expected)


def test_entropy_bonus_of_gaussian_policy_depends_on_its_deviation():
    """The entropy is Σ log σ + ½ log 2πe over the two dimensions of an action, in every state."""
    policy = FeedForwardPolicy(3, GaussianHead(2, log_deviation=-1.5), hidden=()).double()
    trajectories = with_vectors(random_trajectories(), size=2)
    expected = (
        (2 * -1.5 + math.log(2 * math.pi * math.e))
        * trajectories.mask.sum()
        / (trajectories.horizon * trajectories.count)
    )
    taken = bonus_in_loss(policy, taken_action_loss, partial(random_costs, actions=None), 1.0, trajectories)
    assert taken == pytest.approx(expected, rel=1e-6)


@every_loss
def test_entropy_bonus_schedule_uses_iteration_of_trajectories(loss, oracle):
    policy = linear_policy(3)
    iterations = []
    trajectories = every_trajectory(policy).trajectories

    def bonus(n):
        iterations.append(n)
        return {1: 0.5, 7: 0.125}[n]

    first, seventh = (bonus_in_loss(policy, loss, oracle, bonus, replace(trajectories, n=n)) for n in (1, 7))
    assert iterations == [1, 7] and first == pytest.approx(4 * seventh, rel=1e-9) and seventh > 0


@every_loss
@pytest.mark.parametrize("bonus", [0.0, linear_schedule(0.5, 0.0, 2)], ids=["a number", "a schedule that has ended"])
def test_entropy_bonus_of_zero_changes_no_bit(loss, oracle, bonus):
    policy = linear_policy(3)
    trajectories = replace(every_trajectory(policy).trajectories, n=3)
    plain = oracle(trajectories)
    softened = EntropyBonusOracle(oracle, bonus)(trajectories)
    assert torch.equal(loss(policy, trajectories, plain), loss(policy, trajectories, softened))
    np.testing.assert_array_equal(
        gradient(policy, loss, trajectories, plain), gradient(policy, loss, trajectories, softened)
    )


def test_entropy_bonus_oracle_keeps_other_results_of_inner_oracle():
    batch = random_trajectories()
    expected = replace(random_costs(batch), queries=5, simulator_steps=7, diverged=2)
    softened = EntropyBonusOracle(lambda trajectories, policy: expected, 0.3)(batch)
    assert softened.entropy_bonus == 0.3 and replace(softened, entropy_bonus=0.0) == expected
