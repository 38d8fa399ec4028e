"""Heads: densities by hand, the samplers' frequencies and moments, and actions that must never be taken."""

from math import log

import numpy as np
import pytest
import torch
from torch.distributions import kl_divergence

from aggrevated.core.rng import make_generator
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead, GaussianHead

LOG_ROOT_2_PI = 0.9189385332046727


def make_gaussian_head(log_deviations):
    head = GaussianHead(len(log_deviations))
    with torch.no_grad():
        head.log_deviation.copy_(torch.tensor(log_deviations))
    return head


def distribution_from_outputs(head, outputs, legal=None):
    """Return the distribution given by network outputs."""
    return head.distribution(head.complete(torch.tensor(outputs)), None if legal is None else torch.tensor(legal))


class FixedGenerator:
    """Generator that returns given numbers."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def random(self, shape, dtype):
        return np.tile(np.array(self.numbers, dtype), (*shape[:-1], 1))


# Gaussian.


def test_gaussian_head_density_matches_hand_computed_value():
    """μ = (1, −2), σ = (1/2, 3) at a = (2, 1): z = (2, 1), so −½(4 + 1) − ln ½ − ln 3 − ln 2π."""
    distribution = distribution_from_outputs(make_gaussian_head([log(0.5), log(3.0)]), [[[1.0, -2.0]]])
    assert distribution.batch_shape == (1, 1) and distribution.event_shape == (2,)
    expected = -2.5 - log(1.5) - 2 * LOG_ROOT_2_PI
    assert distribution.log_prob(torch.tensor([[[2.0, 1.0]]])).item() == pytest.approx(expected, abs=1e-6)


def test_gaussian_head_with_action_scale_is_in_the_units_of_its_actions():
    """Outputs (1, −2), center (100, 0), unit (50, 0.01), σ = (1/2, 3): N(150, 25²) and N(−0.02, 0.03²)."""
    head = make_gaussian_head([log(0.5), log(3.0)])
    head.init_action_scale(np.array([100.0, 0.0], np.float32), np.array([50.0, 0.01], np.float32))
    one = distribution_from_outputs(head, [[[1.0, -2.0]]])
    np.testing.assert_allclose(one.mean.detach(), [[[150.0, -0.02]]], rtol=1e-6)
    np.testing.assert_allclose(one.stddev.detach(), [[[25.0, 0.03]]], rtol=1e-6)
    sampler = head.sampler()
    outputs = np.float32([[1.0, -2.0]])
    noise = np.float32([[2.0, -1.0]])
    np.testing.assert_allclose(sampler.choose(outputs, 0.0, None), [[150.0, -0.02]], rtol=1e-6)
    np.testing.assert_allclose(sampler.choose(outputs, noise, None), [[200.0, -0.05]], rtol=1e-6)


def test_gaussian_head_gradient_matches_hand_computed_value():
    """∂/∂μ = z/σ and ∂/∂ ln σ = z² − 1, with z = (2, 1) and σ = (1/2, 3)."""
    head = make_gaussian_head([log(0.5), log(3.0)])
    mean = torch.tensor([1.0, -2.0], requires_grad=True)
    head.distribution(head.complete(mean)).log_prob(torch.tensor([2.0, 1.0])).backward()
    torch.testing.assert_close(mean.grad, torch.tensor([4.0, 1 / 3]))
    torch.testing.assert_close(head.log_deviation.grad, torch.tensor([3.0, 0.0]), atol=1e-6, rtol=0)


def test_gaussian_head_kl_matches_hand_computed_value():
    """KL(N(0, 1) ‖ N(1, 4)) = ln 2 + (1 + 1)/8 − ½ in one dimension, 0 in the other: a sum over dimensions."""
    one = distribution_from_outputs(make_gaussian_head([0.0, 0.3]), [[[0.0, 5.0]]])
    other = distribution_from_outputs(make_gaussian_head([log(2.0), 0.3]), [[[1.0, 5.0]]])
    assert kl_divergence(one, other).tolist() == [[pytest.approx(log(2.0) - 0.25, abs=1e-6)]]


def test_gaussian_head_deviation_is_constant_and_starts_as_configured():
    head = GaussianHead(2, log_deviation=-1.0)
    completed = head.complete(torch.zeros(3, 4, 2))
    assert completed.shape == (3, 4, 4) and head.outputs == 2
    torch.testing.assert_close(head.distribution(completed).stddev, torch.full((3, 4, 2), 0.36787944))
    torch.testing.assert_close(GaussianHead(1).log_deviation.detach().exp(), torch.tensor([0.60653066]))


def test_gaussian_sampler_matches_the_moments_of_the_density():
    """100,000 draws: means within 4 σ/√n, deviations within 4 σ/√(2n), no correlation beyond 4/√n."""
    sampler = make_gaussian_head([log(0.5), log(3.0)]).sampler()
    n = 100_000
    noise = sampler.noise([make_generator(7)], n)[0]
    drawn = sampler.choose(np.tile(np.array([1.0, -2.0], np.float32), (n, 1)), noise, None).astype(np.float64)
    deviation = np.array([0.5, 3.0])
    assert (np.abs(drawn.mean(axis=0) - [1.0, -2.0]) < 4 * deviation / np.sqrt(n)).all()
    assert (np.abs(drawn.std(axis=0) - deviation) < 4 * deviation / np.sqrt(2 * n)).all()
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 4 / np.sqrt(n)
    assert np.abs(np.mean(((drawn - [1.0, -2.0]) / deviation) ** 4, axis=0) - 3).max() < 4 * np.sqrt(96 / n)


def test_gaussian_sampler_scales_noise_per_dimension_and_0_gives_the_mean():
    sampler = make_gaussian_head([log(0.5), log(3.0)]).sampler()
    means = np.array([[1.0, -2.0], [0.0, 7.0]], np.float32)
    np.testing.assert_array_equal(sampler.choose(means, 0.0, None), means)
    np.testing.assert_array_equal(sampler.choose(means, np.zeros((2, 1), np.float32), None), means)  # as in roll_in
    np.testing.assert_allclose(sampler.choose(means, np.array([[2.0, -1.0]] * 2), None), [[2.0, -5.0], [1.0, 4.0]])


def test_gaussian_sampler_is_a_copy_of_its_head():
    head = make_gaussian_head([0.0, 0.0])
    sampler = head.sampler()
    with torch.no_grad():
        head.log_deviation.add_(1.0)
    np.testing.assert_array_equal(sampler.choose(np.zeros((1, 2)), 1.0, None), [[1.0, 1.0]])


def test_gaussian_head_refuses_illegal_actions():
    head = make_gaussian_head([0.0])
    legal = torch.ones(1, 1, 1, dtype=torch.bool)
    with pytest.raises(AssertionError, match="a Gaussian policy has no illegal actions"):
        head.distribution(head.complete(torch.zeros(1, 1, 1)), legal)
    with pytest.raises(AssertionError, match="a Gaussian policy has no illegal actions"):
        head.sampler().choose(np.zeros((1, 1)), 0.0, np.ones((1, 1), bool))


# Categorical, with illegal actions.


def test_categorical_head_softmax_over_legal_actions_matches_hand_computation():
    """Logits ln 1, ln 2, ln 3, ln 4 without the third: 1/7, 2/7, 0, 4/7."""
    logits = [[[0.0, log(2.0), log(3.0), log(4.0)]]]
    distribution = distribution_from_outputs(CategoricalHead(4), logits, [[[True, True, False, True]]])
    torch.testing.assert_close(distribution.probs, torch.tensor([[[1 / 7, 2 / 7, 0.0, 4 / 7]]]))
    assert distribution.probs[0, 0, 2] == 0.0
    for action, share in ((0, 1 / 7), (1, 2 / 7), (3, 4 / 7)):
        actual = distribution.log_prob(torch.tensor([[action]])).item()
        assert actual == pytest.approx(log(share), abs=1e-6)


def test_categorical_head_is_unchanged_by_a_mask_that_allows_all():
    logits = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
    head = CategoricalHead(4)
    with_mask = head.distribution(logits, torch.ones(3, 5, 4, dtype=torch.bool))
    assert torch.equal(with_mask.logits, head.distribution(logits).logits)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_categorical_head_gives_illegal_actions_probability_0(scale):
    distribution = distribution_from_outputs(CategoricalHead(3), [[[-scale, 0.0, scale]]], [[[True, True, False]]])
    assert distribution.probs[0, 0, 2] == 0.0
    torch.testing.assert_close(distribution.probs.sum(-1), torch.ones(1, 1))


def test_categorical_head_gradient_reaches_legal_actions_only():
    """∂ log π(0)/∂ logit = 1[a = 0] − π(a): (3/4, −3/4, 0) for π = (1/4, 3/4, 0)."""
    logits = torch.tensor([[[0.0, log(3.0), 9.0]]], requires_grad=True)
    distribution = CategoricalHead(3).distribution(logits, torch.tensor([[[True, True, False]]]))
    distribution.log_prob(torch.tensor([[0]])).backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[[0.75, -0.75, 0.0]]]))


@pytest.mark.parametrize("action", [0, 1, 2])
@pytest.mark.parametrize("legal", [(False, False, False), (True, False, False), (False, True, True)])
def test_categorical_head_is_never_nan_even_without_legal_actions(action, legal):
    """Padding has no legal action, and its action 0 may be illegal: with weight 0, 0 · x must be 0."""
    logits = torch.tensor([[[1.0, -2.0, 3.0]]], requires_grad=True)
    head = CategoricalHead(3)
    mask = torch.tensor([[legal]])
    distribution = head.distribution(logits, mask)
    log_probability = distribution.log_prob(torch.tensor([[action]]))
    assert torch.isfinite(log_probability).all() and torch.isfinite(distribution.probs).all()
    assert (0.0 * log_probability).item() == 0.0
    other = head.distribution(logits.detach() + torch.tensor([0.0, 1.0, -1.0]), mask)
    kl = kl_divergence(distribution, other)
    assert torch.isfinite(kl).all() and kl.item() >= -1e-7
    for value in (log_probability, kl, distribution.probs.sum(), distribution.entropy()):
        (gradient,) = torch.autograd.grad(value.sum(), logits, retain_graph=True)
        assert torch.isfinite(gradient).all()
        assert not gradient[~mask].any()


def test_categorical_head_kl_with_an_illegal_action_matches_hand_computation():
    """KL((1/4, 3/4, 0) ‖ (1/2, 1/2, 0)) = ¼ ln ½ + ¾ ln 3/2."""
    mask = [[[True, True, False]]]
    one = distribution_from_outputs(CategoricalHead(3), [[[0.0, log(3.0), 5.0]]], mask)
    other = distribution_from_outputs(CategoricalHead(3), [[[1.0, 1.0, -5.0]]], mask)
    assert kl_divergence(one, other).item() == pytest.approx(log(0.5) / 4 + 3 * log(1.5) / 4, abs=1e-6)


def test_categorical_sampler_matches_the_softmax_over_legal_actions():
    """Two masks, 50,000 samples each: χ² with 2 degrees of freedom exceeds 13.82 with probability 1/1000."""
    sampler = CategoricalHead(4).sampler()
    n = 50_000
    logits = np.tile(np.log(np.array([1.0, 2.0, 3.0, 4.0], np.float32)), (2 * n, 1))
    legal = np.repeat(np.array([[True, True, False, True], [False, True, True, True]]), n, axis=0)
    drawn = sampler.choose(logits, sampler.noise([make_generator(7)], 2 * n)[0], legal)
    for half, shares in ((drawn[:n], [1, 2, 0, 4]), (drawn[n:], [0, 2, 3, 4])):
        counts = np.bincount(half, minlength=4)
        expected = np.array(shares) * n / sum(shares)
        possible = expected > 0
        assert not counts[~possible].any()
        assert ((counts - expected)[possible] ** 2 / expected[possible]).sum() < 13.82


def test_categorical_sampler_mode_is_the_best_legal_action():
    sampler = CategoricalHead(3).sampler()
    legal = np.array([[True, True, False], [False, True, True]])
    np.testing.assert_array_equal(sampler.choose(np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]]), 0.0, legal), [1, 2])


@pytest.mark.parametrize("only", [0, 1, 2])
def test_categorical_sampler_takes_the_only_legal_action_at_a_zero_draw(only):
    """One float32 sample in 2²⁴ is 0, with Gumbel noise −∞, below that of illegal actions; a legal action must win."""
    sampler = CategoricalHead(3).sampler()
    noise = sampler.noise([FixedGenerator(*[0.0 if a == only else 0.5 for a in range(3)])], 4)[0]
    legal = np.tile(np.arange(3) == only, (4, 1))
    np.testing.assert_array_equal(sampler.choose(np.zeros((4, 3), np.float32), noise, legal), [only] * 4)


def test_categorical_sampler_never_takes_an_illegal_action_at_a_draw_near_1():
    sampler = CategoricalHead(2).sampler()
    noise = sampler.noise([FixedGenerator(1e-7, 1.0 - 2.0**-24)], 3)[0]
    assert np.isfinite(noise).all()
    legal = np.tile([True, False], (3, 1))
    np.testing.assert_array_equal(sampler.choose(np.tile([-50.0, 50.0], (3, 1)), noise, legal), [0, 0, 0])


def test_gaussian_policy_predict_clips_actions_and_its_actor_does_not():
    """As in Stable-Baselines3: the environment gets clipped actions, the likelihood is of the sampled ones."""
    policy = FeedForwardPolicy(2, GaussianHead(3, 3.0, low=np.array([-1.0, -2.0, -0.5]), high=0.5))
    seen = np.zeros((500, 2), np.float32)
    actions, _ = policy.predict(seen)
    assert (actions >= [-1.0, -2.0, -0.5]).all() and (actions <= 0.5).all()
    assert (actions == 0.5).any(axis=0).all() and (actions == [-1.0, -2.0, -0.5]).any(axis=0).all()
    actor = policy.actor()
    noise = actor.noise([np.random.default_rng(0)], 500)[0]
    assert np.abs(actor.choose(actor.parameters(seen, actor.memory(500))[0], noise)).max() > 10
