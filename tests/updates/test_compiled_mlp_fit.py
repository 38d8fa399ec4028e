"""The compiled fit takes the same steps as torch, up to float32 rounding."""

import copy

import numpy as np
import pytest
import torch

from aggrevated.kernels.adam import Adam
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.updates import exponentiated
from aggrevated.updates.compiled_mlp_fit import fit_mlp, supports_compiled_fit
from aggrevated.updates.exponentiated import ExponentiatedUpdate, clip_gradient_norm
from aggrevated.updates.projection_targets import CategoricalTarget, GaussianTarget

STEPS = 60
SEEN = 5
NO_ACTION_MASK = torch.zeros(STEPS, 1, 0, dtype=torch.bool)


def policy_and_target(kind: str, hidden: tuple[int, ...] = (9, 6)):
    """Return a policy, its observations, and a target, partly unknown and partly of weight 0."""
    generator = torch.Generator().manual_seed(3)
    seen = torch.randn(STEPS, 1, SEEN, generator=generator)
    weight = torch.rand(STEPS, 1, generator=generator) * (torch.rand(STEPS, 1, generator=generator) > 0.2)
    if kind == "means":
        deviation = torch.tensor([0.5, 2.0])
        target = GaussianTarget(torch.randn(STEPS, 1, 2, generator=generator), weight, deviation)
        policy = FeedForwardPolicy(SEEN, GaussianHead(2), hidden)
        policy.head.init_action_scale(np.array([0.5, -3.0], np.float32), np.array([0.5, 4.0], np.float32))
        return policy, seen, target
    known = torch.rand(STEPS, 1, 3, generator=generator) > (0.4 if kind == "some known" else -1.0)
    logits = 5 * torch.randn(STEPS, 1, 3, generator=generator)
    if kind == "some expert actions":  # only the expert action is known here
        best = torch.randint(3, (STEPS // 2,), generator=generator)
        logits[: STEPS // 2, 0] = torch.where(torch.arange(3) == best[:, None], 0.0, -torch.inf)
    target = CategoricalTarget(logits, known, weight, uniform_weight=0.2, scale=0.07, all_known=bool(known.all()))
    return FeedForwardPolicy(SEEN, CategoricalHead(3), hidden), seen, target


def fit_with_torch(policy, adam, seen, target, minibatches):
    for rows in minibatches:
        part_of_target = target.take(rows, 1)
        distance = part_of_target.compute_distance(
            policy.distribution(seen[rows], torch.ones(len(rows), 1, dtype=torch.bool))
        )
        adam.zero_grad()
        ((distance * part_of_target.weight).sum() / part_of_target.weight.sum()).backward()
        clip_gradient_norm(adam.weights)
        adam.step()


@pytest.mark.parametrize("hidden", [(), (16,), (9, 6)])
@pytest.mark.parametrize("kind", ["all known", "some known", "some expert actions", "means"])
def test_fit_mlp_steps_match_torch(kind, hidden):
    policy, seen, target = policy_and_target(kind, hidden)
    other = copy.deepcopy(policy)
    ours, theirs = (Adam(list(p.network.parameters()), lr=0.01) for p in (policy, other))
    assert supports_compiled_fit(policy, target, NO_ACTION_MASK)
    minibatches = torch.from_numpy(np.random.default_rng(0).integers(STEPS, size=(7, 20)))
    for part in (minibatches[:1], minibatches[1:3], minibatches[3:]):  # moments persist between fits
        fit_mlp(policy, ours, seen, target, part, max_norm=1.0)
        fit_with_torch(other, theirs, seen, target, part)
        for a, b in zip(policy.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-5)
    for i, moments in theirs.state.items():
        assert ours.state[i]["step"] == moments["step"] == 7
        for name in ("exp_avg", "exp_avg_sq"):
            torch.testing.assert_close(ours.state[i][name], moments[name], rtol=2e-3, atol=2e-6)


def test_fit_mlp_clips_long_gradients():
    policy, seen, target = policy_and_target("all known")
    steep = CategoricalTarget(1e3 * target.logits, target.known, target.weight, 0.2, 1.0, True)
    first = {}
    for longest in (1.0, 1e9):
        own = copy.deepcopy(policy)
        adam = Adam(list(own.network.parameters()), lr=0.01)
        fit_mlp(own, adam, seen, steep, torch.arange(STEPS)[None], longest)
        first[longest] = torch.cat([moments["exp_avg"].flatten() for moments in adam.state.values()]).norm().item()
    assert first[1.0] == pytest.approx(0.1, rel=1e-4) and first[1e9] > 10.0


def test_supports_compiled_fit_is_false_for_unsupported_policies():
    policy, _, target = policy_and_target("all known")
    assert not supports_compiled_fit(policy, target, torch.ones(STEPS, 1, 3, dtype=torch.bool))
    large = FeedForwardPolicy(SEEN, CategoricalHead(3), (99, 99))
    assert not supports_compiled_fit(large, target, NO_ACTION_MASK)
    assert not supports_compiled_fit(copy.deepcopy(policy).double(), target, NO_ACTION_MASK)
    assert not supports_compiled_fit(RecurrentPolicy(SEEN, CategoricalHead(3)), target, NO_ACTION_MASK)


def test_exponentiated_update_with_compiled_fit_matches_torch(monkeypatch):
    from aggrevated.experts.loading import load_expert
    from aggrevated.losses.all_actions import all_actions_loss
    from aggrevated.oracles.advantage import AdvantageOracle
    from aggrevated.oracles.q_star import QStarOracle
    from aggrevated.rollout.roll_in import RollInPolicy, roll_in
    from aggrevated.simulators.cartpole import CartPole

    simulator = CartPole(60)
    oracle = AdvantageOracle(QStarOracle(load_expert("cartpole", simulator)))
    found = []
    for small in (True, False):
        policy = FeedForwardPolicy(4, CategoricalHead(2), (16,))
        if not small:
            monkeypatch.setattr(exponentiated, "supports_compiled_fit", lambda *_: False)
        update = ExponentiatedUpdate(steps=20)
        trajectories = roll_in(simulator, RollInPolicy(None, policy.actor()), np.arange(8, dtype=np.uint64))
        update(policy, all_actions_loss, trajectories, oracle(trajectories))
        found.append(torch.nn.utils.parameters_to_vector(policy.parameters()).detach())
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-4)
