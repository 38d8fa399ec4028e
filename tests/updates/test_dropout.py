"""Dropout masks depend on the seed only, and there is no dropout outside of learning."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.parsing.learners.parser_policies import KINDS
from aggrevated.parsing.parser import Parser
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.updates import compute_loss_and_gradient, make_dropout_context
from aggrevated.updates.exponentiated import ExponentiatedUpdate
from aggrevated.updates.follow_the_leader import FollowTheLeaderUpdate
from aggrevated.updates.regular import RegularUpdate
from helpers.parser_policies import corpus, reader, trajectories
from helpers.tiny_mdp import gradient, random_costs, random_trajectories

PAGES = corpus()
PARSES = trajectories(PAGES)
COSTS = QStarOracle(Parser(PAGES, np.arange(len(PAGES.lengths))).expert)(PARSES)
every_kind = pytest.mark.parametrize("kind", KINDS)


def loss_with(policy, seed):
    with make_dropout_context(policy)(seed):
        return all_actions_loss(policy, PARSES, COSTS).item()


@every_kind
def test_dropout_context_is_determined_by_seed(kind):
    policy = reader(kind, PAGES, dropout=0.5)
    seeds = (0, 2, 8, 2**63 + 4, 2**64 - 1)
    losses = [loss_with(policy, seed) for seed in seeds]
    assert losses == [loss_with(policy, seed) for seed in seeds] and len(set(losses)) == len(seeds)
    assert all_actions_loss(policy, PARSES, COSTS).item() not in losses


def test_dropout_context_uses_one_mask_for_two_consecutive_seeds():
    """Follow the leader numbers its minibatches consecutively, and torch has half as many seeds."""
    policy = reader("lstm", PAGES, dropout=0.5)
    assert len({loss_with(policy, seed) for seed in range(6)}) == 3


def test_dropout_context_leaves_global_torch_generator_unchanged():
    policy = reader("reactive", PAGES, dropout=0.5)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    loss_with(policy, 1)
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(6)  # nor does torch's global generator
    loss = loss_with(policy, 1)
    torch.manual_seed(7)
    assert loss_with(policy, 1) == loss


def test_dropout_is_inactive_outside_context_and_after_an_error():
    policy = reader("reactive", PAGES, dropout=0.5)
    before = all_actions_loss(policy, PARSES, COSTS).item()
    with pytest.raises(KeyError), make_dropout_context(policy)(1):
        assert policy.training and policy.dropout.training
        raise KeyError
    assert not policy.training and not policy.dropout.training
    assert all_actions_loss(policy, PARSES, COSTS).item() == before


@every_kind
def test_actor_made_inside_dropout_context_has_no_dropout(kind):
    policy = reader(kind, PAGES, dropout=0.5)
    outside = policy.actor()
    with make_dropout_context(policy)(1):
        actor = policy.actor()
    observation = PARSES.observations[:, 0]
    expected = outside.parameters(observation, outside.memory(len(observation)))[0]
    np.testing.assert_array_equal(actor.parameters(observation, actor.memory(len(observation)))[0], expected)


def test_regular_update_seeds_dropout_from_trajectories():
    def after(seeds):
        policy = reader("lstm", PAGES, dropout=0.5)
        step = RegularUpdate(0.01)(policy, all_actions_loss, replace(PARSES, seeds=seeds), COSTS)
        return step.loss, torch.cat([w.flatten() for w in policy.parameters()])

    one, again, other = (after(PARSES.seeds + np.uint64(shift)) for shift in (0, 0, 64))
    assert one[0] == again[0] and torch.equal(one[1], again[1])
    assert one[0] != other[0] and not torch.equal(one[1], other[1])


POLICIES = {
    "feed-forward": lambda: FeedForwardPolicy(3, CategoricalHead(3), hidden=(5,)),
    "lstm": lambda: RecurrentPolicy(3, CategoricalHead(3), 4, "lstm"),
    "gru": lambda: RecurrentPolicy(3, CategoricalHead(3), 4, "gru"),
}


@pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)
def test_loss_and_gradient_without_dropout_are_plain_for_general_policies(make):
    policy = make().eval()
    data = random_trajectories(dtype=np.float32)
    costs = random_costs(data)
    assert_plain_loss_and_gradient(policy, data, costs)


@every_kind
def test_loss_and_gradient_without_dropout_are_plain_for_parser_policies(kind):
    assert_plain_loss_and_gradient(reader(kind, PAGES), PARSES, COSTS)


@pytest.mark.parametrize(
    "update", [FollowTheLeaderUpdate(steps=5), ExponentiatedUpdate(steps=5)], ids=lambda u: type(u).__name__
)
def test_updates_search_modules_for_dropout_once_per_fit(update, monkeypatch):
    """Iterating over the modules is slow compared with a step of a small network."""
    policy = FeedForwardPolicy(3, CategoricalHead(3), hidden=(5,))
    data = random_trajectories(dtype=np.float32)
    walks = []
    monkeypatch.setattr(policy, "modules", lambda: walks.append(policy) or iter(()))
    update(policy, all_actions_loss, data, random_costs(data))
    assert len(walks) == 2  # for the reported loss, and for the fit


def assert_plain_loss_and_gradient(policy, data, costs):
    """Assert that an update computes the plain loss and its plain gradient."""
    loss, found = compute_loss_and_gradient(policy, all_actions_loss, data, costs)
    assert loss == all_actions_loss(policy, data, costs).item()
    np.testing.assert_array_equal(found.double().numpy(), gradient(policy, all_actions_loss, data, costs))
