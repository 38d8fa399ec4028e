"""Aggregation of data, the reservoir, and the minimum of the summed losses where it is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete

from aggrevated.core.errors import UsageError
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.losses.taken_action import taken_action_loss
from aggrevated.oracles import CostToGo
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.oracles.zero_one import ExpertActionOracle, ZeroOneOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates.follow_the_leader import MAX_MEASURED_TRAJECTORIES, FollowTheLeaderUpdate
from helpers.tiny_mdp import (
    EXPERT,
    Home,
    TinyExpert,
    TinyMdp,
    Walk,
    flat,
    linear_policy,
    probabilities,
    random_costs,
    random_trajectories,
    randomise,
)

SEEDS = np.arange(16, dtype=np.uint64)


def small_policy(seed=0):
    return randomise(FeedForwardPolicy(3, CategoricalHead(3), hidden=(5,)), seed)


def tagged_trajectories(tags, t=1):
    """Return one trajectory for each tag, with the tag as its cost-to-go."""
    k = len(tags)
    observations = np.zeros((k, t, 3), np.float32)
    ones = np.ones((k, t), bool)
    trajectories = Trajectories(observations, observations, np.zeros((k, t), int), ones * 1.0, ones, ~ones, horizon=3)
    values = np.tile(np.asarray(tags, np.float32)[:, None, None], (1, t, 3))
    return trajectories, CostToGo(values, np.ones((k, t), np.float32))


def stored_tags(update):
    """Return the tags of the stored data."""
    return update.state()["values"].numpy()[:, 0, 0].astype(int)


def bandit_trajectories(counts, horizon=1):
    """Return bandit trajectories: one observation, and action a taken `counts[a]` times."""
    actions = np.repeat(np.arange(len(counts)), counts)[:, None]
    observations = np.ones((len(actions), 1, 1), np.float32)
    ones = np.ones(actions.shape, bool)
    return Trajectories(observations, observations, actions, ones * 1.0, ones, ~ones, horizon)


def bandit_policy(pi):
    policy = FeedForwardPolicy(1, CategoricalHead(len(pi)), hidden=())
    with torch.no_grad():
        policy.network[0].weight.zero_()
        policy.network[0].bias.copy_(torch.log(torch.tensor(pi)))
    return policy


def test_follow_the_leader_keeps_all_data_below_buffer_size_and_pads_it():
    update = FollowTheLeaderUpdate(steps=1)
    policy = small_policy()
    update(policy, all_actions_loss, *tagged_trajectories([1, 2], t=1))
    update(policy, all_actions_loss, *tagged_trajectories([3, 4, 5], t=3))
    update(policy, all_actions_loss, *tagged_trajectories([6], t=2))
    assert update.aggregation.seen == 6
    assert stored_tags(update).tolist() == [1, 2, 3, 4, 5, 6]
    expected = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 0]])
    state = update.state()
    np.testing.assert_array_equal(state["mask"], expected.astype(bool))
    np.testing.assert_array_equal(state["weight"], expected)
    np.testing.assert_array_equal(state["values"][..., 0], expected * np.arange(1, 7)[:, None])


def test_follow_the_leader_does_not_store_states():
    update = FollowTheLeaderUpdate(steps=1)
    update(small_policy(), all_actions_loss, *tagged_trajectories([1, 2]))
    assert update.state()["states"].shape == (2, 1, 0)


def test_follow_the_leader_buffer_is_a_uniform_sample_of_all_data():
    """12 of 40 trajectories, 300 times: each stays 90 ± 8 times, the first as likely as the last."""
    policy = small_policy()
    counts = np.zeros(40)
    for seed in range(300):
        update = FollowTheLeaderUpdate(steps=0, buffer_size=12, seed=seed)
        for tags in np.arange(40).reshape(5, 8):
            update(policy, all_actions_loss, *tagged_trajectories(tags))
        assert len(set(stored_tags(update))) == 12
        counts[stored_tags(update)] += 1
    assert counts.sum() == 300 * 12
    chi_square = ((counts - 90) ** 2 / (90 * (1 - 0.3))).sum() * 39 / 40
    assert 12 < chi_square < 80  # 39 degrees of freedom: 0.99999 of all samples
    assert abs(counts[:8].mean() - 90) < 10 and abs(counts[-8:].mean() - 90) < 10


def test_follow_the_leader_samples_batch_larger_than_buffer():
    counts = np.zeros(10)
    for seed in range(300):
        update = FollowTheLeaderUpdate(steps=0, buffer_size=3, seed=seed)
        update(small_policy(), all_actions_loss, *tagged_trajectories(range(10)))
        counts[stored_tags(update)] += 1
    assert counts.sum() == 900
    assert np.abs(counts - 90).max() < 4.5 * 8  # √(300 · 0.3 · 0.7) ≈ 8


def test_follow_the_leader_minimizes_sum_of_losses():
    """ℓ₁ costs (0, 3, 9) and ℓ₂ costs (9, 4, 0): each alone is minimal at one end, the sum (9, 7, 9) in the middle."""
    policy = bandit_policy([1 / 3] * 3)
    update = FollowTheLeaderUpdate(learning_rate=0.1, steps=300)
    for costs, alone in (((0, 3, 9), 0), ((9, 4, 0), 2)):
        trajectories = bandit_trajectories([4, 4, 4])
        values = np.tile(np.array(costs, np.float32), (12, 1, 1))
        cost_to_go = CostToGo(values, np.ones((12, 1), np.float32))
        step = update(policy, all_actions_loss, trajectories, cost_to_go)
        single = bandit_policy([1 / 3] * 3)
        FollowTheLeaderUpdate(learning_rate=0.1, steps=300)(single, all_actions_loss, trajectories, cost_to_go)
        assert bandit_probabilities(single).argmax() == alone
    assert bandit_probabilities(policy)[1] > 0.95
    assert step.step_halvings == 0


def bandit_probabilities(policy):
    with torch.no_grad():
        return policy.distribution(torch.ones(1, 1, 1), torch.ones(1, 1)).probs[0, 0].numpy()


@pytest.mark.parametrize(
    ("loss", "oracle"),
    [(all_actions_loss, QStarOracle(TinyExpert())), (best_action_nll_loss, ZeroOneOracle(TinyExpert(), Discrete(3)))],
)
def test_follow_the_leader_finds_expert_on_tiny_mdp(loss, oracle):
    """argmin_π Σ ℓ_i is π*(s) = (2, 1, 0) in every state, for AggreVaTe's loss and for DAgger's."""
    policy = linear_policy().float()
    assert (probabilities(policy).argmax(axis=1) != EXPERT).any()
    update = FollowTheLeaderUpdate(learning_rate=0.1, steps=150)
    for n in range(2):
        trajectories = roll_in(TinyMdp(), RollInPolicy(None, policy.actor()), SEEDS + np.uint64(16 * n))
        update(policy, loss, trajectories, oracle(trajectories))
    assert (probabilities(policy)[np.arange(3), EXPERT] > 0.9).all()


def linear_gaussian_policy(seed=0):
    """Return a Gaussian policy with two actions that is linear in x."""
    return randomise(FeedForwardPolicy(1, GaussianHead(2), hidden=()), seed, 0.3)


def roll_in_with_expert_actions(policy, n):
    """Return roll-ins of the policy, and the expert actions."""
    trajectories = roll_in(Walk(), RollInPolicy(None, policy.actor()), SEEDS + np.uint64(16 * n))
    return trajectories, ExpertActionOracle(Home(), Walk.action_space)(trajectories)


def test_follow_the_leader_finds_expert_with_continuous_actions():
    """The most likely linear policy is the expert, (0, −x/2); its deviation decreases further and further."""
    policy = linear_gaussian_policy()
    update = FollowTheLeaderUpdate(learning_rate=0.03, steps=200)
    before = policy.head.log_deviation.detach().clone()
    for n in range(2):
        step = update(policy, best_action_nll_loss, *roll_in_with_expert_actions(policy, n))
    assert step.step_halvings == 0 and update.aggregation.seen == 32
    weight, bias = (p.detach().numpy() for p in policy.network[0].parameters())
    np.testing.assert_allclose(weight, [[0.0], [-0.5]], atol=0.02)
    np.testing.assert_allclose(bias, [0.0, 0.0], atol=0.02)
    assert (policy.head.log_deviation < before - 1).all()


def test_follow_the_leader_stores_and_restores_expert_actions():
    """In batches of different lengths, expert actions are padded, sampled, saved and restored like other arrays."""

    def make():
        return FollowTheLeaderUpdate(steps=5, minibatch_size=4, buffer_size=20)

    straight = make()
    policy = linear_gaussian_policy()
    for n in range(2):
        straight(policy, best_action_nll_loss, *roll_in_with_expert_actions(policy, n))
    state = {name: tensor.clone() for name, tensor in straight.state().items()}
    assert state["expert_actions"].shape == (*state["mask"].shape, 2) and len(state["mask"]) == 20
    x = state["observations"]
    mask = state["mask"]
    assert torch.equal(state["expert_actions"], torch.cat([torch.zeros_like(x), -x / 2], dim=2) * mask[..., None])
    resumed = make()
    again = linear_gaussian_policy(1)
    again.load_state_dict({name: tensor.clone() for name, tensor in policy.state_dict().items()})
    resumed.restore(state)
    for n in range(2, 4):
        assert straight(policy, best_action_nll_loss, *roll_in_with_expert_actions(policy, n)) == resumed(
            again, best_action_nll_loss, *roll_in_with_expert_actions(again, n)
        )
    np.testing.assert_array_equal(flat(again), flat(policy))


def test_follow_the_leader_reaches_minimum_loss_on_one_batch():
    """The minimum of Σ_a π(a|s) Q(s, a) is min_a Q̃(s, a) with Q̃ summed over the visits; softmax gets within 1 %."""
    policy = linear_policy().float()
    trajectories = roll_in(TinyMdp(), RollInPolicy(None, policy.actor()), np.arange(64, dtype=np.uint64))
    costs = QStarOracle(TinyExpert())(trajectories)
    FollowTheLeaderUpdate(learning_rate=0.2, steps=400, minibatch_size=64)(
        policy, all_actions_loss, trajectories, costs
    )
    summed = np.einsum("kts,kta->sa", trajectories.observations * trajectories.mask[..., None], costs.values)
    least = summed.min(axis=1).sum() / (3 * 64)
    assert least <= all_actions_loss(policy, trajectories, costs).item() < 1.01 * least


def test_follow_the_leader_draws_minibatches_without_replacement():
    sizes = []
    tags = set()

    def spy(policy, trajectories, cost_to_go):
        sizes.append(trajectories.count)
        tags.update(cost_to_go.values[:, 0, 0].astype(int))
        assert len(set(cost_to_go.values[:, 0, 0])) == trajectories.count
        return all_actions_loss(policy, trajectories, cost_to_go)

    update = FollowTheLeaderUpdate(steps=30, minibatch_size=4)
    policy = small_policy()
    update(policy, spy, *tagged_trajectories([1, 2, 3]))
    assert sizes == [3] + [3] * 30
    sizes.clear()
    update(policy, spy, *tagged_trajectories([4, 5, 6]))
    assert sizes == [3] + [4] * 30
    assert tags == {1, 2, 3, 4, 5, 6}


def test_follow_the_leader_is_determined_by_seed():
    trajectories = random_trajectories(k=20, dtype=np.float32)
    costs = random_costs(trajectories)
    found = []
    for seed in (0, 0, 1):
        policy = small_policy()
        FollowTheLeaderUpdate(steps=5, minibatch_size=4, seed=seed)(policy, all_actions_loss, trajectories, costs)
        found.append(flat(policy))
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


def test_follow_the_leader_rejects_taken_action_loss():
    """Eq. 4 over all data would have to divide by the π_i (and α_i) of each iteration."""
    costs = np.array([2.0, 1.0, 3.0], np.float32)
    policy = bandit_policy([0.1, 0.8, 0.1])
    update = FollowTheLeaderUpdate(learning_rate=0.05, steps=0)

    trajectories = bandit_trajectories([10, 80, 10])
    taken = CostToGo(costs[trajectories.actions], np.ones((100, 1), "f4"))
    with pytest.raises(UsageError, match="needs the cost-to-go of every action"):
        update(policy, taken_action_loss, trajectories, taken)


def test_follow_the_leader_rejects_entropy_bonus():
    trajectories = random_trajectories(dtype=np.float32)
    costs = random_costs(trajectories)
    with pytest.raises(UsageError, match="follow the leader does not support an entropy bonus"):
        FollowTheLeaderUpdate()(small_policy(), all_actions_loss, trajectories, replace(costs, entropy_bonus=0.1))
    FollowTheLeaderUpdate(steps=1)(small_policy(), all_actions_loss, trajectories, costs)


def test_follow_the_leader_measures_some_and_keeps_all_of_many_trajectories():
    trajectories = random_trajectories(k=MAX_MEASURED_TRAJECTORIES + 50, dtype=np.float32)
    costs = random_costs(trajectories)
    update = FollowTheLeaderUpdate(steps=1)
    policy = small_policy()
    first = np.arange(MAX_MEASURED_TRAJECTORIES)
    some = CostToGo(costs.values[first], costs.weight[first])
    expected = all_actions_loss(policy, trajectories.take(first), some).item()
    step = update(policy, all_actions_loss, trajectories, costs)
    assert step.loss == expected and step.kl > 0
    assert len(update.state()["values"]) == update.aggregation.seen == MAX_MEASURED_TRAJECTORIES + 50
