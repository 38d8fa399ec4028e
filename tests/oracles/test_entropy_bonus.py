"""The entropy bonus: what it adds to each loss, by hand; its gradients are in tests/gradients."""

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


def difference(policy, loss, oracle, bonus, trajectories):
    """How much a bonus takes from the loss."""
    costs = EntropyBonusOracle(oracle, bonus)(trajectories)
    return (loss(policy, trajectories, oracle(trajectories)) - loss(policy, trajectories, costs)).item()


@every_loss
def test_of_a_uniform_policy_every_step_is_worth_log_3(loss, oracle):
    policy = linear_policy(None)
    found = every_trajectory(policy).trajectories
    expected = 0.25 * math.log(3) * found.mask.sum() / (3 * found.count)
    assert difference(policy, loss, oracle, 0.25, found) == pytest.approx(expected, rel=1e-6)
    assert not found.mask.all()  # some ended early, and have no bonus after their end


@every_loss
def test_of_any_policy_a_step_is_worth_the_entropy_in_its_state(loss, oracle):
    policy = linear_policy(3)
    found = every_trajectory(policy).trajectories
    pi = probabilities(policy)
    entropy = -(pi * np.log(pi)).sum(axis=1)
    assert np.ptp(entropy) > 0.03  # the states differ
    total = entropy[found.states[found.mask][:, 0]].sum()
    assert difference(policy, loss, oracle, 2.0, found) == pytest.approx(2 * total / (3 * found.count), rel=1e-6)


def test_illegal_actions_have_no_part_in_the_entropy():
    """A uniform policy among m legal actions has the entropy log m, and among one none."""
    found = with_legal(random_trajectories())
    choices = found.action_mask[found.mask].sum(axis=1)
    assert set(choices) == {1, 2, 3}
    expected = 0.5 * np.log(choices).sum() / (found.horizon * found.count)
    assert difference(linear_policy(None), all_actions_loss, random_costs, 0.5, found) == pytest.approx(
        expected, rel=1e-6
    )


def test_a_step_has_its_weight_in_the_bonus_too():
    """The Monte-Carlo oracle asks about M of H steps, which then count H/M-fold, and the others not at all."""
    found = random_trajectories(k=2, t=3)
    weight = np.array([[0.0, 3.0, 0.0], [0.5, 0.0, 0.0]])

    def oracle(trajectories, policy=None):
        return CostToGo(np.zeros((2, 3, 3)), weight)

    expected = math.log(3) * weight.sum() / (found.horizon * 2)
    assert difference(linear_policy(None), all_actions_loss, oracle, 1.0, found) == pytest.approx(expected)


def test_a_gaussian_has_the_entropy_of_its_deviation():
    """Σ log σ + ½ log 2πe over the two numbers of an action, in every state."""
    policy = FeedForwardPolicy(3, GaussianHead(2, log_deviation=-1.5), hidden=()).double()
    found = with_vectors(random_trajectories(), size=2)
    expected = (2 * -1.5 + math.log(2 * math.pi * math.e)) * found.mask.sum() / (found.horizon * found.count)
    taken = difference(policy, taken_action_loss, partial(random_costs, actions=None), 1.0, found)
    assert taken == pytest.approx(expected, rel=1e-6)


@every_loss
def test_the_bonus_is_that_of_the_trajectories_own_iteration(loss, oracle):
    policy = linear_policy(3)
    asked = []
    found = every_trajectory(policy).trajectories

    def bonus(n):
        asked.append(n)
        return {1: 0.5, 7: 0.125}[n]

    first, seventh = (difference(policy, loss, oracle, bonus, replace(found, n=n)) for n in (1, 7))
    assert asked == [1, 7] and first == pytest.approx(4 * seventh, rel=1e-9) and seventh > 0


@every_loss
@pytest.mark.parametrize("bonus", [0.0, linear_schedule(0.5, 0.0, 2)], ids=["a number", "a schedule that has ended"])
def test_no_bonus_changes_no_bit(loss, oracle, bonus):
    policy = linear_policy(3)
    found = replace(every_trajectory(policy).trajectories, n=3)
    plain = oracle(found)
    softened = EntropyBonusOracle(oracle, bonus)(found)
    assert torch.equal(loss(policy, found, plain), loss(policy, found, softened))
    np.testing.assert_array_equal(gradient(policy, loss, found, plain), gradient(policy, loss, found, softened))


def test_all_else_that_the_oracle_said_is_kept():
    found = random_trajectories()
    said = replace(random_costs(found), queries=5, simulator_steps=7, diverged=2)
    softened = EntropyBonusOracle(lambda trajectories, policy: said, 0.3)(found)
    assert softened.entropy_bonus == 0.3 and replace(softened, entropy_bonus=0.0) == said
