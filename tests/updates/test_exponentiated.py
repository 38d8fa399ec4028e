"""Exponentiated gradient for networks, against closed forms and hand-computed values."""

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
from aggrevated.updates import compute_gradient_norm, compute_loss_and_gradient
from aggrevated.updates.dataset_aggregation import TrainingData
from aggrevated.updates.exponentiated import ExponentiatedUpdate, compute_normalized_excess_cost
from aggrevated.updates.natural import NaturalSettings
from aggrevated.updates.projection_targets import MAX_SCALED_COST, compute_action_costs, make_gaussian_target
from aggrevated.updates.temperature import PlateauDetector, inverse_sqrt_decay
from helpers.single_steps import all_action_costs, make_policy, single_steps
from helpers.tiny_mdp import flat, random_costs, random_trajectories, randomise, with_vectors


def log_probabilities(policy, observations):
    seen = torch.as_tensor(np.asarray(observations, np.float32))[:, None]
    with torch.no_grad():
        return policy.distribution(seen, torch.ones(seen.shape[:2], dtype=torch.bool)).logits[:, 0].double().numpy()


def test_exponentiated_update_of_table_is_mean_advantage_over_temperature():
    """Two visits of state 0 and one of state 1 in two iterations: log π = −(mean A*)/(τ · unit) up to a constant."""
    policy = make_policy(())
    update = ExponentiatedUpdate(temperature=0.5, decay_after=0, max_target_cost=0)
    first = np.array([[0.0, 1, 2], [1.0, 0, 1]])
    second = np.array([[2.0, 0, 0]])
    update(policy, all_actions_loss, single_steps(np.eye(3)[[0, 1]]), all_action_costs(first))
    update(policy, all_actions_loss, single_steps(np.eye(3)[[0]]), all_action_costs(second))
    unit = np.abs(np.concatenate([first, second])).mean()
    wanted = -np.array([(first[0] + second[0]) / 2, first[1]]) / (0.5 * unit)
    found = log_probabilities(policy, np.eye(3)[[0, 1]])
    np.testing.assert_allclose(found - found[:, :1], wanted - wanted[:, :1], atol=1e-5)


def test_exponentiated_update_of_network_approaches_closed_form_of_table():
    """A wide network, trained with Adam, gets the closed-form probabilities of a table."""
    observations = np.tile(np.eye(3)[[0, 1, 2, 0]], (64, 1))
    costs = np.tile([[0.0, 1, 2], [1, 0, 1], [0, 0, 1], [1, 0, 0]], (64, 1))
    table = make_policy(())
    network = make_policy((32,))
    ExponentiatedUpdate(temperature=0.5)(table, all_actions_loss, single_steps(observations), all_action_costs(costs))
    ExponentiatedUpdate(temperature=0.5, steps=3000, learning_rate=3e-3)(
        network, all_actions_loss, single_steps(observations), all_action_costs(costs)
    )
    np.testing.assert_allclose(log_probabilities(network, np.eye(3)), log_probabilities(table, np.eye(3)), atol=0.1)


def test_exponentiated_update_minimizes_mean_cost_of_indistinguishable_states():
    """Action 0 is slightly better at three of four indistinguishable states; at the fourth it is expensive."""
    alike = np.ones((4, 1))
    costs = np.array([[0, 0.2], [0, 0.2], [0, 0.2], [1.5, 0]])
    assert (costs.argmin(axis=1) == 0).sum() == 3 and costs.mean(axis=0).argmin() == 1
    policy = make_policy((8,), actions=2, size=1)
    ExponentiatedUpdate(steps=500)(policy, all_actions_loss, single_steps(alike), all_action_costs(costs))
    assert np.exp(log_probabilities(policy, [[1.0]]))[0, 1] > 0.9


def test_exponentiated_update_corrects_confident_and_wrong_policy():
    policy = make_policy((8,), actions=2, size=1)
    with torch.no_grad():
        policy.network[-1].bias.copy_(torch.tensor([15.0, -15.0]))
    data = single_steps(np.ones((6, 1))), all_action_costs(np.tile([1.0, 0.0], (6, 1)))
    assert compute_loss_and_gradient(policy, all_actions_loss, *data)[1].norm() < 1e-6  # Σ_a π(a) A*(a) is flat there
    update = ExponentiatedUpdate(learning_rate=0.1)
    for _ in range(3):
        update(policy, all_actions_loss, *data)
    assert np.exp(log_probabilities(policy, [[1.0]]))[0, 1] > 0.9


@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize("kind", ["feed-forward", "lstm"])
def test_exponentiated_update_is_invariant_to_cost_unit(eta, kind):
    found = []
    for unit in (1.0, 1024.0):
        policy = make_policy() if kind == "feed-forward" else RecurrentPolicy(3, CategoricalHead(3), 4)
        policy = randomise(policy, 0)
        update = ExponentiatedUpdate(eta, steps=7)
        for n in range(3):
            trajectories = random_trajectories(seed=n, dtype=np.float32)
            update(policy, all_actions_loss, trajectories, random_costs(trajectories, seed=n, scale=unit))
        found.append(flat(policy))
    np.testing.assert_array_equal(*found)


def test_exponentiated_update_temperature_decays_with_square_root_of_n():
    update = ExponentiatedUpdate(decay_after=4)
    assert [inverse_sqrt_decay(n, update.decay_after) for n in (1, 4, 16, 64)] == [1.0, 1.0, 0.5, 0.25]
    assert inverse_sqrt_decay(1000, 0) == 1.0


def test_action_costs_combine_queried_costs_and_expert_actions():
    """Step 0: cost of the taken action and expert action known; step 1: expert action only, others cost the mean."""
    trajectories = single_steps(np.zeros((2, 1)), actions=[1, 2])
    values = np.array([[4.0], [0.0]], np.float32)
    weight = np.array([[1.0], [0.0]], np.float32)
    cost_to_go = CostToGo(values, weight, expert_actions=np.array([[0], [2]]))
    cost, known, counts = compute_action_costs(TrainingData(trajectories, cost_to_go), 3)
    np.testing.assert_array_equal(known[:, 0], [[True, True, False], [True, True, True]])
    np.testing.assert_allclose(cost[0, 0], [0.0, 2.0, 0.0])  # the mean of the known costs 0 and 4 is the unit
    np.testing.assert_allclose(cost[1, 0], [1.5, 1.5, 0.0])  # 1 on average over all three actions
    np.testing.assert_array_equal(counts, [[1.0], [1.0]])


def test_action_costs_are_clipped_to_max_scaled_cost():
    cost, _, _ = compute_action_costs(
        TrainingData(single_steps(np.zeros((50, 1))), all_action_costs([[0.0, 1.0]] * 49 + [[0.0, 1e6]])), 2
    )
    assert cost.max() == MAX_SCALED_COST


def test_exponentiated_update_ignores_costs_of_illegal_actions():
    legal = np.array([[True, True, False]] * 4)
    found = []
    for illegal_cost in (0.0, 100.0):
        policy = make_policy()
        data = single_steps(np.eye(3)[[0, 1, 2, 0]], legal=legal), all_action_costs([[0.0, 1, illegal_cost]] * 4)
        ExponentiatedUpdate(steps=20)(policy, all_actions_loss, *data)
        found.append(flat(policy))
    np.testing.assert_array_equal(*found)


def test_exponentiated_update_without_expert_actions_is_a_natural_update():
    trajectories = random_trajectories(dtype=np.float32)
    costs = random_costs(trajectories, actions=None)
    one = randomise(make_policy(), 0)
    other = randomise(make_policy(), 0)
    value, gradient = compute_loss_and_gradient(one, taken_action_loss, trajectories, costs)
    step, natural = (
        update(policy, taken_action_loss, trajectories, costs)
        for update, policy in ((ExponentiatedUpdate(), one), (NaturalSettings().build(0), other))
    )
    assert step == replace(
        natural, loss=value, gradient_norm=compute_gradient_norm(gradient)
    )  # in the units of the costs
    np.testing.assert_array_equal(flat(one), flat(other))


def test_exponentiated_update_steps_when_probabilities_underflow():
    """The step is not rejected as one that breaks the policy where a probability underflows to 0."""
    policy = make_policy((8,), actions=2, size=1)
    update = ExponentiatedUpdate(temperature=1e-3, learning_rate=1.0)
    data = single_steps(np.ones((6, 1))), all_action_costs(np.tile([1.0, 0.0], (6, 1)))
    steps = [update(policy, all_actions_loss, *data) for _ in range(5)]
    assert np.exp(log_probabilities(policy, [[1.0]]).astype(np.float32))[0, 0] == 0.0
    assert all(step.step_halvings == 0 and np.isfinite(step.kl) for step in steps)


# ---- targets that the policy cannot represent


def test_normalized_excess_cost_is_1_for_uniform_policy_and_0_for_target():
    q = np.float32([[0, 3, 3], [2, 0, 4]])
    data = TrainingData(single_steps(np.eye(2)), all_action_costs(q))
    policy = make_policy((), actions=3, size=2)
    weight = policy.network[0].weight
    unit = np.abs(q).mean()
    for scale, expected in ((0.0, 1.0), (1 / (0.02 * unit), 0.0)):
        with torch.no_grad():
            weight.copy_(-scale * torch.from_numpy(q).T)
        assert compute_normalized_excess_cost(policy, data, 0.02) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("excess", "triggered"),
    [
        ([0.5] * 19, False),  # fewer than twenty iterations
        ([0.5] * 20, True),
        ([0.5] * 10 + [0.4] * 10, False),  # still improving
        ([0.1] * 20, False),  # the excess is small
        ([0.1] * 20 + [0.5] * 20, True),  # only the last twenty count
    ],
)
def test_plateau_detector_triggers_on_high_cost_without_progress(excess, triggered):
    detector = PlateauDetector()
    for one in excess:
        detector.add(one)
    assert detector.is_triggered() == triggered


def test_exponentiated_update_switches_to_natural_update_at_plateau():
    """Contradictory costs at one observation: each policy errs in half of the states. A restore keeps the switch."""
    policy = make_policy((4,), actions=2, size=1)
    update = ExponentiatedUpdate(steps=2)
    data = single_steps(np.ones((8, 1))), all_action_costs(np.tile(np.float32([[0.0, 1.0], [1.0, 0.0]]), (4, 1)))
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
    assert "observations" not in update.state()  # the data is dropped


def test_exponentiated_update_with_eta_never_switches_to_natural_update():
    policy = make_policy((4,), actions=2, size=1)
    update = ExponentiatedUpdate(steps=2, eta=0.1)
    data = single_steps(np.ones((8, 1))), all_action_costs(np.tile(np.float32([[0.0, 1.0], [1.0, 0.0]]), (4, 1)))
    for _ in range(22):
        update(policy, all_actions_loss, *data)
    assert update.aggregation.seen == 22 * 8


@pytest.mark.parametrize("policy", [make_policy(), RecurrentPolicy(3, CategoricalHead(3), 4)], ids=["mlp", "lstm"])
def test_exponentiated_update_without_known_costs_keeps_policy(policy):
    trajectories = random_trajectories(dtype=np.float32)
    costs = random_costs(trajectories)
    before = flat(policy).copy()
    step = ExponentiatedUpdate(steps=3)(policy, all_actions_loss, trajectories, replace(costs, weight=0 * costs.weight))
    np.testing.assert_array_equal(flat(policy), before)
    assert step.kl == 0.0


def test_exponentiated_update_rejects_expert_actions_with_non_advantage_costs():
    costs = CostToGo(np.float32([[-3.0]]), np.ones((1, 1), np.float32), expert_actions=np.zeros((1, 1), int))
    policy = make_policy(actions=3, size=1)
    with pytest.raises(UsageError, match="use the oracle's advantage"):
        ExponentiatedUpdate()(policy, taken_action_loss, single_steps(np.ones((1, 1))), costs)
    ExponentiatedUpdate()(policy, taken_action_loss, single_steps(np.ones((1, 1))), replace(costs, advantage=True))


# ---- expert actions


def test_projection_target_of_expert_action_only_is_cross_entropy():
    """Two steps: all costs of the first are known, and only the expert action of the second; π is uniform."""
    trajectories = single_steps(np.eye(3)[[0, 1]])
    costs = replace(
        all_action_costs([[0.0, 1, 2], [0, 0, 0]]), weight=np.float32([[1], [0]]), expert_actions=np.array([[0], [2]])
    )
    policy = make_policy()
    with torch.no_grad():
        policy.network[-1].weight.zero_(), policy.network[-1].bias.zero_()
    target = ExponentiatedUpdate()._make_target(policy, TrainingData(trajectories, costs), tau=0.5)
    seen = torch.from_numpy(trajectories.observations)
    mask = torch.ones(2, 1, dtype=torch.bool)
    distance = target.compute_distance(policy.distribution(seen, mask))[:, 0]
    unit = 1.0  # the mean of 0, 1 and 2
    squares = np.var([0.0, 1 / unit / 0.5, 2 / unit / 0.5])  # of z − g around their mean
    np.testing.assert_allclose(distance.detach(), [0.5 * squares, np.log(3)], rtol=1e-5)
    assert target.weight.tolist() == [[1.0], [1.0]] and not target.is_complete()


# ---- continuous actions


def test_gaussian_target_moves_to_expert_actions_and_better_actions():
    """Three steps: the taken action was worse, much better, and not queried."""
    trajectories = single_steps(np.eye(3), actions=[[1.0], [1.0], [1.0]])
    expert_actions = np.array([[[0.0]], [[0.0]], [[0.5]]], np.float32)
    costs = CostToGo(
        np.float32([[3.0], [-30.0], [0.0]]),
        np.float32([[1.0], [1.0], [0.0]]),
        expert_actions=expert_actions,
        advantage=True,
    )
    means = make_gaussian_target(trajectories, costs, np.ones(1)).means[:, 0, 0].numpy()
    assert means[0] == 0.0 and means[1] > 0.95 and means[2] == 0.5
    policy = FeedForwardPolicy(3, GaussianHead(1), (16,))
    ExponentiatedUpdate(steps=500)(policy, taken_action_loss, trajectories, costs)
    with torch.no_grad():
        found = policy.distribution(torch.eye(3)[:, None], torch.ones(3, 1, dtype=torch.bool)).mean[:, 0, 0]
    np.testing.assert_allclose(found, means, atol=0.05)


def test_gaussian_target_weights_are_proportional_to_curvature_of_cost():
    """Queried steps: A* = κ‖a − a*‖²/2, with κ ten times as large at one step; κ distributes twice the total weight."""
    actions = np.array([[0.1], [0.2], [1.0], [1.0]])
    costs = np.float32([[10 * 0.1**2], [0.2**2], [0.0], [0.0]])
    cost_to_go = CostToGo(
        costs, np.float32([[1.0], [1.0], [0.0], [0.0]]), expert_actions=np.zeros((4, 1, 1), np.float32)
    )
    weight = make_gaussian_target(single_steps(np.eye(4), actions=actions), cost_to_go, np.ones(1)).weight[:, 0].numpy()
    assert weight.sum() == pytest.approx(3 * 4, rel=0.01)
    assert weight[0] - 1 == pytest.approx(10 * (weight[1] - 1), rel=0.1) and weight[2] == weight[3] == 1.0
    free = replace(cost_to_go, values=0 * costs)
    np.testing.assert_array_equal(
        make_gaussian_target(single_steps(np.eye(4), actions=actions), free, np.ones(1)).weight, np.ones((4, 1))
    )


def test_exponentiated_update_deviation_decays_with_root_of_n_across_restore():
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
def test_exponentiated_update_rejects_entropy_bonus(head):
    trajectories = random_trajectories(dtype=np.float32)
    costs = replace(random_costs(trajectories), entropy_bonus=0.1)
    with pytest.raises(UsageError, match="does not support an entropy bonus"):
        ExponentiatedUpdate()(FeedForwardPolicy(3, head, (5,)), all_actions_loss, trajectories, costs)
