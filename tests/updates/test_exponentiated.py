"""Exponentiated gradient for networks: what is known of it by hand, and that it keeps to it."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from aggrevated.core.errors import UsageError
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles import CostToGo
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import gradient_norm, loss_and_gradient
from aggrevated.updates.dataset_aggregation import TrainingData
from aggrevated.updates.exponentiated import ExponentiatedUpdate, normalized_excess_cost
from aggrevated.updates.natural import NaturalSettings
from aggrevated.updates.projection_targets import MAX_SCALED_COST, action_costs, gaussian_target
from aggrevated.updates.temperature import PlateauDetector
from helpers.tiny_mdp import flat, random_costs, random_trajectories, randomise, with_vectors


def steps_of(observations, actions=None, legal=None):
    """One step in each of n trajectories."""
    seen = np.asarray(observations, np.float32)[:, None]
    n = len(seen)
    return Trajectories(
        states=np.zeros((n, 1, 0), np.float32),
        observations=seen,
        actions=np.zeros((n, 1), int) if actions is None else np.asarray(actions)[:, None],
        costs=np.zeros((n, 1)),
        mask=np.ones((n, 1), bool),
        by_expert=np.zeros((n, 1), bool),
        horizon=1,
        **({} if legal is None else {"action_mask": np.asarray(legal)[:, None]}),
    )


def told(values, **more):
    """The cost-to-go of every action at each of n steps."""
    values = np.asarray(values, np.float32)[:, None]
    return CostToGo(values, np.ones(values.shape[:2], np.float32), **more)


def policy_of(hidden=(8,), actions=3, size=3, seed=0):
    return FeedForwardPolicy(size, CategoricalHead(actions), hidden, torch.Generator().manual_seed(seed))


def log_probabilities(policy, observations):
    seen = torch.as_tensor(np.asarray(observations, np.float32))[:, None]
    with torch.no_grad():
        return policy.distribution(seen, torch.ones(seen.shape[:2], dtype=torch.bool)).logits[:, 0].double().numpy()


def test_a_table_has_the_mean_of_all_visits_over_tau():
    """Two visits of state 0, one of state 1, in two iterations: log π = −(mean A*)/(τ · unit), but for a constant."""
    policy = policy_of(())
    update = ExponentiatedUpdate(temperature=0.5, decay_after=0, max_target_cost=0)
    first = np.array([[0.0, 1, 2], [1.0, 0, 1]])
    second = np.array([[2.0, 0, 0]])
    update(policy, all_actions_loss, steps_of(np.eye(3)[[0, 1]]), told(first))
    update(policy, all_actions_loss, steps_of(np.eye(3)[[0]]), told(second))
    unit = np.abs(np.concatenate([first, second])).mean()
    wanted = -np.array([(first[0] + second[0]) / 2, first[1]]) / (0.5 * unit)
    found = log_probabilities(policy, np.eye(3)[[0, 1]])
    np.testing.assert_allclose(found - found[:, :1], wanted - wanted[:, :1], atol=1e-5)


def test_the_fit_finds_what_is_known_in_closed_form():
    """The same goal for a table, and for a network wide enough to be one: Adam ends where the closed form is."""
    observations = np.tile(np.eye(3)[[0, 1, 2, 0]], (64, 1))
    costs = np.tile([[0.0, 1, 2], [1, 0, 1], [0, 0, 1], [1, 0, 0]], (64, 1))
    table = policy_of(())
    network = policy_of((32,))
    ExponentiatedUpdate(temperature=0.5)(table, all_actions_loss, steps_of(observations), told(costs))
    ExponentiatedUpdate(temperature=0.5, steps=3000, learning_rate=3e-3)(
        network, all_actions_loss, steps_of(observations), told(costs)
    )
    np.testing.assert_allclose(log_probabilities(network, np.eye(3)), log_probabilities(table, np.eye(3)), atol=0.1)


def test_states_that_look_alike_get_the_action_that_is_cheapest_on_average_not_by_vote():
    """Action 0 is better at three of four of them, by a little; at the fourth it is dear."""
    alike = np.ones((4, 1))
    costs = np.array([[0, 0.2], [0, 0.2], [0, 0.2], [1.5, 0]])
    assert (costs.argmin(axis=1) == 0).sum() == 3 and costs.mean(axis=0).argmin() == 1
    policy = policy_of((8,), actions=2, size=1)
    ExponentiatedUpdate(steps=500)(policy, all_actions_loss, steps_of(alike), told(costs))
    assert np.exp(log_probabilities(policy, [[1.0]]))[0, 1] > 0.9


def test_a_policy_that_is_sure_and_wrong_does_not_stay_so():
    policy = policy_of((8,), actions=2, size=1)
    with torch.no_grad():
        policy.network[-1].bias.copy_(torch.tensor([15.0, -15.0]))
    data = steps_of(np.ones((6, 1))), told(np.tile([1.0, 0.0], (6, 1)))
    assert loss_and_gradient(policy, all_actions_loss, *data)[1].norm() < 1e-6  # Σ_a π(a) A*(a) is flat there
    update = ExponentiatedUpdate(learning_rate=0.1)
    for _ in range(3):
        update(policy, all_actions_loss, *data)
    assert np.exp(log_probabilities(policy, [[1.0]]))[0, 1] > 0.9


@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["feed-forward", "lstm"])
def test_costs_in_another_unit_give_the_same_bits(eta, kind):
    found = []
    for unit in (1.0, 1024.0):
        policy = policy_of() if kind == "feed-forward" else RecurrentPolicy(3, CategoricalHead(3), 4)
        policy = randomise(policy, 0)
        update = ExponentiatedUpdate(eta, steps=7)
        for n in range(3):
            trajectories = random_trajectories(seed=n, dtype=np.float32)
            update(policy, all_actions_loss, trajectories, random_costs(trajectories, seed=n, scale=unit))
        found.append(flat(policy))
    np.testing.assert_array_equal(*found)


def test_tau_and_the_rate_of_the_fit_fall_as_the_bound_says():
    update = ExponentiatedUpdate(decay_after=4)
    assert [update._temperature_decay(n) for n in (1, 4, 16, 64)] == [1.0, 1.0, 0.5, 0.25]
    assert ExponentiatedUpdate(decay_after=0)._temperature_decay(1000) == 1.0


def test_what_is_known_of_actions():
    """Step 0: asked of the action taken, and advised; step 1: only advised, so that others cost a mean mistake."""
    trajectories = steps_of(np.zeros((2, 1)), actions=[1, 2])
    values = np.array([[4.0], [0.0]], np.float32)
    weight = np.array([[1.0], [0.0]], np.float32)
    told_of_taken = CostToGo(values, weight, expert_actions=np.array([[0], [2]]))
    cost, known, counts = action_costs(TrainingData(trajectories, told_of_taken), 3)
    np.testing.assert_array_equal(known[:, 0], [[True, True, False], [True, True, True]])
    np.testing.assert_allclose(cost[0, 0], [0.0, 2.0, 0.0])  # the mean of what is known, 0 and 4, is the unit
    np.testing.assert_allclose(cost[1, 0], [1.5, 1.5, 0.0])  # over all three actions that is 1 on average
    np.testing.assert_array_equal(counts, [[1.0], [1.0]])


def test_a_very_dear_mistake_counts_as_a_dear_one():
    cost, _, _ = action_costs(TrainingData(steps_of(np.zeros((50, 1))), told([[0.0, 1.0]] * 49 + [[0.0, 1e6]])), 2)
    assert cost.max() == MAX_SCALED_COST


def test_illegal_actions_have_no_say():
    legal = np.array([[True, True, False]] * 4)
    found = []
    for of_illegal in (0.0, 100.0):
        policy = policy_of()
        data = steps_of(np.eye(3)[[0, 1, 2, 0]], legal=legal), told([[0.0, 1, of_illegal]] * 4)
        ExponentiatedUpdate(steps=20)(policy, all_actions_loss, *data)
        found.append(flat(policy))
    np.testing.assert_array_equal(*found)


def test_without_advice_the_action_taken_is_learned_from_by_a_natural_step():
    trajectories = random_trajectories(dtype=np.float32)
    costs = random_costs(trajectories, actions=None)
    one = randomise(policy_of(), 0)
    other = randomise(policy_of(), 0)
    value, gradient = loss_and_gradient(one, taken_action_loss, trajectories, costs)
    step, natural = (
        update(policy, taken_action_loss, trajectories, costs)
        for update, policy in ((ExponentiatedUpdate(), one), (NaturalSettings().build(0), other))
    )
    assert step == replace(natural, loss=value, gradient_norm=gradient_norm(gradient))  # in the costs' own units
    np.testing.assert_array_equal(flat(one), flat(other))


def test_a_policy_as_sure_as_a_float_can_be_still_moves():
    """Where a probability underflows to 0 the step is not held for one that breaks the policy."""
    policy = policy_of((8,), actions=2, size=1)
    update = ExponentiatedUpdate(temperature=1e-3, learning_rate=1.0)
    data = steps_of(np.ones((6, 1))), told(np.tile([1.0, 0.0], (6, 1)))
    steps = [update(policy, all_actions_loss, *data) for _ in range(5)]
    assert np.exp(log_probabilities(policy, [[1.0]]).astype(np.float32))[0, 0] == 0.0
    assert all(step.step_halvings == 0 and np.isfinite(step.kl) for step in steps)


# ---- what the policies cannot do


def test_the_excess_is_one_for_a_policy_at_random_and_nothing_for_the_goal():
    q = np.float32([[0, 3, 3], [2, 0, 4]])
    data = TrainingData(steps_of(np.eye(2)), told(q))
    policy = policy_of((), actions=3, size=2)
    weight = policy.network[0].weight
    unit = np.abs(q).mean()
    for scale, expected in ((0.0, 1.0), (1 / (0.02 * unit), 0.0)):
        with torch.no_grad():
            weight.copy_(-scale * torch.from_numpy(q).T)
        assert normalized_excess_cost(policy, data, 0.02) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("left", "reached"),
    [
        ([0.5] * 19, False),  # too early to say
        ([0.5] * 20, True),
        ([0.5] * 10 + [0.4] * 10, False),  # it still gets better
        ([0.1] * 20, False),  # little is left
        ([0.1] * 20 + [0.5] * 20, True),  # only the last twenty are looked at
    ],
)
def test_a_standstill_is_much_left_and_no_progress(left, reached):
    standstill = PlateauDetector()
    for one in left:
        standstill.add(one)
    assert standstill.triggered() == reached


def test_where_states_look_alike_it_hands_over_to_the_natural_update_for_good_and_after_a_restore():
    """One observation, and advice that differs: half of the states are wrong whatever it does."""
    policy = policy_of((4,), actions=2, size=1)
    update = ExponentiatedUpdate(steps=2)
    data = steps_of(np.ones((8, 1))), told(np.tile(np.float32([[0.0, 1.0], [1.0, 0.0]]), (4, 1)))
    for _ in range(20):
        update(policy, all_actions_loss, *data)
    resumed = ExponentiatedUpdate(steps=2)
    alone = NaturalSettings().build(0)
    resumed.restore({name: w.clone() for name, w in update.state().items()})
    alone.restore(update.natural.state())
    twins = [deepcopy(policy) for _ in range(3)]
    for one, twin in zip((update, resumed, alone), twins, strict=True):
        one(twin, all_actions_loss, *data)
        one(twin, all_actions_loss, *data)
    weights = [parameters_to_vector(twin.parameters()) for twin in twins]
    assert torch.equal(weights[0], weights[2]) and torch.equal(weights[1], weights[2])
    assert "observations" not in update.state()  # of no more use


def test_with_eta_it_never_hands_over():
    policy = policy_of((4,), actions=2, size=1)
    update = ExponentiatedUpdate(steps=2, eta=0.1)
    data = steps_of(np.ones((8, 1))), told(np.tile(np.float32([[0.0, 1.0], [1.0, 0.0]]), (4, 1)))
    for _ in range(22):
        update(policy, all_actions_loss, *data)
    assert update.aggregation.seen == 22 * 8


@pytest.mark.parametrize("policy", [policy_of(), RecurrentPolicy(3, CategoricalHead(3), 4)], ids=["mlp", "lstm"])
def test_where_nothing_is_known_the_policy_stays(policy):
    trajectories = random_trajectories(dtype=np.float32)
    costs = random_costs(trajectories)
    before = flat(policy).copy()
    step = ExponentiatedUpdate(steps=3)(policy, all_actions_loss, trajectories, replace(costs, weight=0 * costs.weight))
    np.testing.assert_array_equal(flat(policy), before)
    assert step.kl == 0.0


def test_a_cost_that_is_no_advantage_cannot_be_compared_with_advice():
    costs = CostToGo(np.float32([[-3.0]]), np.ones((1, 1), np.float32), expert_actions=np.zeros((1, 1), int))
    policy = policy_of(actions=3, size=1)
    with pytest.raises(UsageError, match="use the oracle's advantage"):
        ExponentiatedUpdate()(policy, taken_action_loss, steps_of(np.ones((1, 1))), costs)
    ExponentiatedUpdate()(policy, taken_action_loss, steps_of(np.ones((1, 1))), replace(costs, advantage=True))


# ---- advice


def test_where_only_advice_is_known_the_distance_is_cross_entropy():
    """Two steps: of the first all costs are known, of the second that π* would take the last; π is uniform over 3."""
    trajectories = steps_of(np.eye(3)[[0, 1]])
    costs = replace(told([[0.0, 1, 2], [0, 0, 0]]), weight=np.float32([[1], [0]]), advice=np.array([[0], [2]]))
    policy = policy_of()
    with torch.no_grad():
        policy.network[-1].weight.zero_(), policy.network[-1].bias.zero_()
    goal = ExponentiatedUpdate()._target(policy, TrainingData(trajectories, costs), tau=0.5)
    seen = torch.from_numpy(trajectories.observations)
    mask = torch.ones(2, 1, dtype=torch.bool)
    distance = goal.distance(policy.distribution(seen, mask))[:, 0]
    unit = 1.0  # the mean of 0, 1 and 2
    squares = np.var([0.0, 1 / unit / 0.5, 2 / unit / 0.5])  # of z − g around their mean
    np.testing.assert_allclose(distance.detach(), [0.5 * squares, np.log(3)], rtol=1e-5)
    assert goal.weight.tolist() == [[1.0], [1.0]] and not goal.complete()


# ---- vectors


def test_a_gaussian_is_drawn_to_what_is_advised_and_to_what_was_better():
    """Three steps: the action taken was worse, better by much, and not asked about."""
    trajectories = steps_of(np.eye(3), actions=[[1.0], [1.0], [1.0]])
    advice = np.array([[[0.0]], [[0.0]], [[0.5]]], np.float32)
    costs = CostToGo(
        np.float32([[3.0], [-30.0], [0.0]]), np.float32([[1.0], [1.0], [0.0]]), expert_actions=advice, advantage=True
    )
    means = gaussian_target(trajectories, costs, np.ones(1)).means[:, 0, 0].numpy()
    assert means[0] == 0.0 and means[1] > 0.95 and means[2] == 0.5
    policy = FeedForwardPolicy(3, GaussianHead(1), (16,))
    ExponentiatedUpdate(steps=500)(policy, taken_action_loss, trajectories, costs)
    with torch.no_grad():
        found = policy.distribution(torch.eye(3)[:, None], torch.ones(3, 1, dtype=torch.bool)).mean[:, 0, 0]
    np.testing.assert_allclose(found, means, atol=0.05)


def test_a_gaussian_minds_a_distance_as_much_as_it_costs():
    """Asked about: A* = κ‖a − a*‖²/2, with κ ten times as large at one step; twice the weight of all, shared by κ."""
    actions = np.array([[0.1], [0.2], [1.0], [1.0]])
    costs = np.float32([[10 * 0.1**2], [0.2**2], [0.0], [0.0]])
    told = CostToGo(costs, np.float32([[1.0], [1.0], [0.0], [0.0]]), expert_actions=np.zeros((4, 1, 1), np.float32))
    weight = gaussian_target(steps_of(np.eye(4), actions=actions), told, np.ones(1)).weight[:, 0].numpy()
    assert weight.sum() == pytest.approx(3 * 4, rel=0.01)
    assert weight[0] - 1 == pytest.approx(10 * (weight[1] - 1), rel=0.1) and weight[2] == weight[3] == 1.0
    free = replace(told, values=0 * costs)
    np.testing.assert_array_equal(
        gaussian_target(steps_of(np.eye(4), actions=actions), free, np.ones(1)).weight, np.ones((4, 1))
    )


def test_the_deviation_falls_as_one_over_the_root_of_n_and_goes_on_after_a_restore():
    trajectories = with_vectors(random_trajectories(dtype=np.float32), size=2)
    costs = replace(
        random_costs(trajectories, actions=None), expert_actions=np.zeros_like(trajectories.actions), advantage=True
    )
    policy = FeedForwardPolicy(3, GaussianHead(2, -0.5), (5,))
    update = ExponentiatedUpdate(steps=2)
    for _ in range(3):
        update(policy, taken_action_loss, trajectories, costs)
    resumed = ExponentiatedUpdate(steps=2)
    resumed.restore({name: w.clone() for name, w in update.state().items()})
    resumed(policy, taken_action_loss, trajectories, costs)
    np.testing.assert_allclose(policy.head.log_deviation.detach().exp(), np.exp(-0.5) / 2, rtol=1e-5)


@pytest.mark.parametrize("head", [CategoricalHead(3), GaussianHead(2)])
def test_an_entropy_bonus_is_refused(head):
    trajectories = random_trajectories(dtype=np.float32)
    costs = replace(random_costs(trajectories), entropy_bonus=0.1)
    with pytest.raises(UsageError, match="knows no entropy bonus"):
        ExponentiatedUpdate()(FeedForwardPolicy(3, head, (5,)), all_actions_loss, trajectories, costs)
