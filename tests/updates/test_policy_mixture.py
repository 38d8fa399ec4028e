"""SEARN and SMILe: closed-form weights against the recursions of the papers, and learned policies."""

from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.core.errors import UsageError
from aggrevated.core.schedules import geometric_schedule
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.oracles.lols import LolsOracle
from aggrevated.oracles.zero_one import ZeroOneOracle
from aggrevated.policies.heads import CategoricalHead
from aggrevated.policies.mixture import MixturePolicy
from aggrevated.updates.policy_mixture import MixtureUpdate, searn_weights, smile_weights
from helpers.tiny_mdp import EXPERT, TinyExpert, TinyMdp, linear_policy, probabilities


def searn_recursion(n, beta):
    """Return weights of [π*, h_1, …, h_n] in π_{n+1} = (1 − β) π_n + β h_n, from π_1 = π*."""
    weights = [Fraction(1)]
    for _ in range(n):
        weights = [(1 - beta) * weight for weight in weights] + [beta]
    return weights


def smile_recursion(n, beta):
    """Return weights of [π*, h_1, …, h_n] in π_n = π_{n−1} + β (1 − β)^(n−1) (h_n − π*), from π_0 = π*."""
    weights = [Fraction(1)]
    for i in range(1, n + 1):
        new = beta * (1 - beta) ** (i - 1)
        weights = [weights[0] - new, *weights[1:], new]
    return weights


RULES = pytest.mark.parametrize(
    ("shares", "recursion"), [(searn_weights, searn_recursion), (smile_weights, smile_recursion)]
)


@RULES
@pytest.mark.parametrize("beta", [Fraction(1, 10), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_mixture_weights_equal_recursion_without_expert(shares, recursion, beta, n):
    expert, *learners = recursion(n, beta)
    assert sum(learners) + expert == 1 and expert == (1 - beta) ** n  # α_{n+1} of line 4
    if expert == 1 or not sum(learners):
        return
    expected = [float(weight / sum(learners)) for weight in learners]
    np.testing.assert_allclose(shares(n, float(beta)), expected, atol=1e-12)
    whole = float(1 - expert) * shares(n, float(beta))
    np.testing.assert_allclose([float(expert), *whole], [float(w) for w in recursion(n, beta)], atol=1e-12)


@RULES
def test_mixture_update_builds_weighted_mixture_of_all_rounds(shares, recursion):
    """h_1 … h_4 are recorded in each round; their mixture is computed by hand."""
    policy = MixturePolicy(linear_policy(None).float(), CategoricalHead(3))
    learner = Learner(policy, MixtureUpdate(shares, 0.25, steps=20))
    oracle = ZeroOneOracle(TinyExpert(), Discrete(3))
    loop = aggrevated(
        learner,
        TinyMdp(),
        TinyExpert(),
        oracle,
        best_action_nll_loss,
        k=8,
        alpha=geometric_schedule(1.0, 0.75),
        validation_episodes=4,
    )
    tables = [probabilities(policy.newest) for _ in islice(loop, 4)]
    _, *weights = recursion(4, Fraction(1, 4))
    weights = np.array([float(weight / sum(weights)) for weight in weights])
    np.testing.assert_allclose(policy.shares.numpy(), weights, atol=1e-12)
    np.testing.assert_allclose(probabilities(policy), np.einsum("j,jsa->sa", weights, tables), atol=1e-6)
    assert int(policy.learned) == 4 and len(policy.older) == 3


@pytest.mark.parametrize(
    ("shares", "loss", "oracle"),
    [
        (searn_weights, all_actions_loss, LolsOracle(TinyMdp(), TinyExpert(), None)),
        (smile_weights, best_action_nll_loss, ZeroOneOracle(TinyExpert(), Discrete(3))),
    ],
    ids=["SEARN", "SMILe"],
)
def test_mixture_update_learns_expert_policy_on_tiny_mdp(shares, loss, oracle):
    """The expert is optimal with a return of −1.375; the uniform policy's return is −3.73."""
    policy = MixturePolicy(linear_policy(None).float(), CategoricalHead(3))
    learner = Learner(policy, MixtureUpdate(shares, 0.2, learning_rate=0.3, steps=60))
    loop = aggrevated(
        learner, TinyMdp(), TinyExpert(), oracle, loss, k=40, alpha=geometric_schedule(1.0, 0.8), validation_episodes=64
    )
    iterations = list(islice(loop, 15))
    assert iterations[-1].best_return > -1.5 and iterations[-1].current_return > -1.6
    assert (probabilities(policy).argmax(axis=1) == EXPERT).all()


def test_mixture_methods_roll_in_with_expert_first_and_then_less():
    found = []

    def oracle(trajectories, policy):
        found.append(trajectories)
        return ZeroOneOracle(TinyExpert(), Discrete(3))(trajectories)

    policy = MixturePolicy(linear_policy(None).float(), CategoricalHead(3))
    learner = Learner(policy, MixtureUpdate(searn_weights, 0.5, steps=3))
    loop = aggrevated(
        learner,
        TinyMdp(),
        TinyExpert(),
        oracle,
        best_action_nll_loss,
        k=500,
        alpha=geometric_schedule(1.0, 0.5),
        validation_episodes=2,
    )
    list(islice(loop, 4))
    assert found[0].by_expert[found[0].mask].all()
    for n, trajectories in enumerate(found):
        alpha = 0.5**n
        steps = trajectories.steps
        share = trajectories.by_expert[trajectories.mask].mean()
        assert abs(share - alpha) <= 4 * np.sqrt(alpha * (1 - alpha) / steps)


def test_mixture_update_rejects_policy_that_is_not_a_mixture():
    with pytest.raises(UsageError, match="this update needs a MixturePolicy"):
        MixtureUpdate(searn_weights)(linear_policy(), all_actions_loss, None, None)
