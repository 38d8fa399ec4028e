"""Mixture of policies: probabilities by hand, actor and distribution agree, members can be added and saved."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from aggrevated.core.errors import UsageError
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.mixture import MixturePolicy
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.rollout.roll_in import RollInPolicy, replay_hidden_states, roll_in
from helpers.tiny_mdp import TinyMdp, linear_policy, probabilities, randomise, state_distributions

SHARES = np.array([0.5, 0.3, 0.2])


def make_mixture_of_three(seed=0):
    """Return (a mixture of three tables, their probabilities [3, S, A])."""
    policy = MixturePolicy(linear_policy(seed).float(), CategoricalHead(3))
    tables = []
    for shares in ([1.0], [0.5, 0.5], SHARES):
        policy.renew(np.array(shares))
        randomise(policy, seed + 10 + len(tables), 1.5)
        tables.append(probabilities(policy.newest))
    return policy, np.stack(tables)


def test_mixture_policy_distribution_matches_hand_computed_mixture():
    policy, tables = make_mixture_of_three()
    assert np.abs(tables[0] - tables[1]).max() > 0.3
    np.testing.assert_allclose(probabilities(policy), np.einsum("j,jsa->sa", SHARES, tables), atol=1e-6)


def test_mixture_policy_actor_draws_a_member_at_each_step():
    """8,000 roll-ins of the tiny MDP visit each s at each t as the mixture of the tables does, not as one table."""
    policy, tables = make_mixture_of_three()
    n = 8000
    visits = roll_in(TinyMdp(), RollInPolicy(None, policy.actor()), derive_seeds(0, SeedPurpose.ROLL_IN, 1, n))
    d = state_distributions(np.einsum("j,jsa->sa", SHARES, tables))
    shares = (visits.observations * visits.mask[..., None]).mean(axis=0)
    assert (np.abs(shares - d) < 4.5 * np.sqrt(d * (1 - d) / n)).all()
    drawn_once = np.einsum("j,jts->ts", SHARES, [state_distributions(table) for table in tables])
    assert (np.abs(drawn_once - d) > 9 * np.sqrt(d * (1 - d) / n)).any()  # the two differ measurably


def test_mixture_policy_members_keep_separate_memories():
    policy = MixturePolicy(randomise(RecurrentPolicy(3, CategoricalHead(3), 4), 1), CategoricalHead(3))
    policy.renew(np.ones(1))
    alone = [deepcopy(policy.newest)]
    policy.renew(np.array([0.6, 0.4]))
    randomise(policy, 2)
    alone.append(deepcopy(policy.newest))
    trajectories = roll_in(TinyMdp(), RollInPolicy(None, policy.actor()), np.arange(30))
    together = replay_hidden_states(policy.actor(), trajectories)
    np.testing.assert_array_equal(
        together, np.concatenate([replay_hidden_states(one.actor(), trajectories) for one in alone], axis=2)
    )
    assert together.shape[2] == 2 * alone[0].actor().memory(1).shape[1] > 0


def test_mixture_policy_members_are_blank_until_learned():
    policy = MixturePolicy(linear_policy(0).float(), CategoricalHead(3))
    blank = probabilities(policy)
    for count in (1, 2, 3):
        policy.renew(np.full(count, 1 / count))
        assert (len(policy.older), int(policy.learned)) == (count - 1, count)
        np.testing.assert_allclose(probabilities(policy), blank, atol=1e-6)  # all are blank


def test_mixture_policy_state_dict_restores_any_number_of_members():
    policy, _ = make_mixture_of_three()
    weights = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    restored = MixturePolicy(linear_policy(5).float(), CategoricalHead(3))
    restored.load_state_dict(weights)
    np.testing.assert_array_equal(probabilities(restored), probabilities(policy))
    policy.load_state_dict(MixturePolicy(linear_policy(5).float(), CategoricalHead(3)).state_dict())
    assert len(policy.shares) == 1  # and back
    for one in (policy, restored):
        one.renew(np.full(int(one.learned) + 1, 1 / (int(one.learned) + 1)))
    assert (int(policy.learned), int(restored.learned)) == (1, 4)
    assert weights["older"].shape == (2, 12) and weights["shares"].tolist() == SHARES.tolist()


def test_mixture_policy_refuses_weights_that_do_not_fit():
    policy, _ = make_mixture_of_three()
    other = MixturePolicy(FeedForwardPolicy(3, CategoricalHead(3), (4,)), CategoricalHead(3))
    with pytest.raises(RuntimeError):
        other.load_state_dict(policy.state_dict())


def test_mixture_policy_refuses_continuous_actions_in_one_sentence():
    with pytest.raises(UsageError, match="a mixture of policies needs a finite set of actions"):
        MixturePolicy(FeedForwardPolicy(3, GaussianHead(2)), GaussianHead(2))


def test_mixture_policy_trains_only_its_newest_member():
    policy, _ = make_mixture_of_three()
    older = policy.older.clone()
    assert sum(p.numel() for p in policy.parameters()) == older.shape[1]
    loss = policy.distribution(torch.eye(3)[None], torch.ones(1, 3)).probs[0, 0, 0]
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(loss, list(policy.parameters())))
    randomise(policy, 7)
    assert torch.equal(policy.older, older)
