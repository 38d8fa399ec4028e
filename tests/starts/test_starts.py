"""Line 2: initial policies."""

import numpy as np
import pytest
import torch

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.oracles.zero_one import ExpertActionOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import GaussianHead
from aggrevated.policies.window import WindowPolicy
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.starts import supervised as module
from aggrevated.starts.random import RandomStartSettings
from aggrevated.starts.supervised import SupervisedStartSettings, pretrain_policy
from helpers.tiny_mdp import EXPERT, POLICIES, Home, TinyExpert, TinyMdp, Walk, flat, probabilities, random_policy


@pytest.mark.parametrize("kind", POLICIES)
def test_pretrain_policy_keeps_the_deviation_and_raises_likelihood(kind):
    """The deviation is unchanged to the bit; the expert's actions become many times as likely."""
    policy = random_policy(Walk(), kind, (8,), seed=0, log_deviation=-1.25)
    before = {name: w.clone() for name, w in policy.state_dict().items()}
    demonstrations = roll_in(Walk(), RollInPolicy(Home(), None, 1.0), derive_seeds(0, SeedPurpose.DEMONSTRATION, 0, 10))
    costs = ExpertActionOracle(Home(), Walk.action_space)(demonstrations)
    loss = best_action_nll_loss(policy, demonstrations, costs).item()
    assert pretrain_policy(policy, Walk(), Home(), 10, 100) == (300, 300)  # stays at home for all of H = 30
    deviations = [name for name in before if name.endswith("log_deviation")]
    assert len(deviations) == 1 and (before[deviations[0]] == -1.25).all()
    assert torch.equal(policy.state_dict()[deviations[0]], before[deviations[0]])
    assert all(not torch.equal(w, before[name]) for name, w in policy.named_parameters() if name not in deviations)
    assert best_action_nll_loss(policy, demonstrations, costs).item() < loss - 0.01


def test_pretrain_policy_finds_a_linear_expert():
    """A linear expert is found exactly, whatever states it visits."""
    policy = FeedForwardPolicy(1, GaussianHead(2, -0.5), hidden=())
    pretrain_policy(policy, Walk(), Home(), 20, 1000)
    x = np.array([[-1.0], [0.5], [1.0]], np.float32)
    np.testing.assert_allclose(policy.predict(x, deterministic=True)[0], Home().act(x, 0), atol=0.02)


def test_pretrain_policy_imitates_discrete_actions():
    policy = random_policy(TinyMdp(), "mlp", (), seed=0)
    assert pretrain_policy(policy, TinyMdp(), TinyExpert(), 30, 600) == (90, 90)
    assert (probabilities(policy)[np.arange(3), EXPERT] > 0.9).all()


def test_pretrain_policy_learns_more_with_more_steps():
    found = []
    for steps in (0, 1, 2, 2):
        policy = random_policy(Walk(), "mlp", (8,), seed=0)
        pretrain_policy(policy, Walk(), Home(), 5, steps)
        found.append(flat(policy))
    assert (found[0] == flat(random_policy(Walk(), "mlp", (8,), seed=0))).all()
    assert (found[0] != found[1]).any() and (found[1] != found[2]).any()
    np.testing.assert_array_equal(found[2], found[3])


def test_pretrain_policy_learns_from_every_demonstration(monkeypatch):
    """More demonstrations than follow the leader stores; 5,600 draws miss one of 1,400 with probability e⁻⁴."""
    drawn = []

    def record_minibatch(policy, trajectories, cost_to_go):
        if trajectories.count == 16:  # a minibatch
            drawn.append(trajectories.seeds)
        return best_action_nll_loss(policy, trajectories, cost_to_go)

    monkeypatch.setattr(module, "best_action_nll_loss", record_minibatch)
    policy = random_policy(TinyMdp(), "mlp", (), seed=0)
    assert pretrain_policy(policy, TinyMdp(), TinyExpert(), 1400, 350) == (3 * 1400, 3 * 1400)
    assert len(drawn) == 350
    met = set(np.concatenate(drawn).tolist())
    assert len(met) > 1350 and met <= set(derive_seeds(0, SeedPurpose.DEMONSTRATION, 0, 1400).tolist())


def test_random_start_costs_nothing_and_changes_nothing():
    policy = random_policy(Walk(), "window", (8,), seed=0)
    before = flat(policy)
    assert RandomStartSettings().begin(policy, Walk(), Home(), seed=0, k=10) == (0, 0)
    np.testing.assert_array_equal(flat(policy), before)
    assert isinstance(policy, WindowPolicy) and isinstance(policy.inner.head, GaussianHead)


def test_random_policy_has_the_requested_log_deviation():
    for log_deviation in (-3.0, 0.25):
        policy = random_policy(Walk(), "mlp", (8,), 0, log_deviation=log_deviation)
        assert policy.head.log_deviation.tolist() == [log_deviation] * 2


def test_supervised_start_settings_call_pretrain_policy_with_their_values():
    """K is the number of demonstrations where it is not set."""
    for demonstrations, k, expected in ((5, 9, 5), (0, 9, 9)):
        by_piece, by_hand = (random_policy(Walk(), "mlp", (8,), seed=0) for _ in range(2))
        start = SupervisedStartSettings(start_steps=7, start_learning_rate=0.02, demonstrations=demonstrations)
        bill = start.begin(by_piece, Walk(), Home(), seed=3, k=k)
        assert (
            bill
            == pretrain_policy(by_hand, Walk(), Home(), expected, 7, 0.02, seed=3)
            == (30 * expected, 30 * expected)
        )
        np.testing.assert_array_equal(flat(by_piece), flat(by_hand))
    assert "7 minibatches" in start.notice and RandomStartSettings().notice == ""
