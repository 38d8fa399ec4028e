"""Methods of other papers in the same loop, on the tiny MDP."""

from itertools import islice

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from aggrevated.algorithm import Learner, aggrevated
from aggrevated.config.resolver import resolve_config
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.likelihood import best_action_nll_loss
from aggrevated.oracles.lols import LolsOracle
from aggrevated.oracles.zero_one import ZeroOneOracle
from aggrevated.updates.regular import RegularUpdate
from helpers.tiny_mdp import EXPERT, TinyExpert, TinyMdp, linear_policy, probabilities


@pytest.mark.parametrize("schedule", ["linear", "exponential", "inverse-sigmoid"])
def test_scheduled_sampling_follows_alpha_schedule_and_learns_expert_policy(schedule):
    alpha = resolve_config("cartpole", "scheduled-sampling", alpha_schedule=schedule, alpha_scale=4.0).loop.alpha
    zero_one_oracle = ZeroOneOracle(TinyExpert(), Discrete(3))
    shares = []

    def oracle(trajectories, policy):
        shares.append((trajectories.by_expert[trajectories.mask].mean(), trajectories.steps, trajectories.alpha))
        return zero_one_oracle(trajectories, policy)

    learner = Learner(linear_policy(None).float(), RegularUpdate(0.3))
    loop = aggrevated(
        learner, TinyMdp(), TinyExpert(), oracle, best_action_nll_loss, k=300, alpha=alpha, validation_episodes=64
    )
    assert list(islice(loop, 12))[-1].best_return > -1.6  # the expert's is −1.375, the uniform policy's −3.73
    for n, (share, steps, mixing) in enumerate(shares, start=1):
        assert mixing == alpha(n)
        assert abs(share - mixing) <= 4 * np.sqrt(mixing * (1 - mixing) / steps)
    assert shares[0][0] > 0.75 and shares[-1][0] < 0.5
    assert (probabilities(learner.policy).argmax(axis=1) == EXPERT).all()


def test_scheduled_sampling_uses_likelihood_and_regular_update():
    config = resolve_config("cartpole", "scheduled-sampling")
    assert (config.oracle.name, config.loss.name, config.update.name) == ("zero-one", "likelihood", "regular")
    assert (config.loop.alpha_start, config.loop.alpha_schedule) == (1.0, "inverse-sigmoid")
    assert resolve_config("hopper", "scheduled-sampling").loss.name == "likelihood"
    assert resolve_config("algebra", "scheduled-sampling").loop.alpha(1 + 246) == pytest.approx(0.5, abs=0.01)


class CostliestExpert(TinyExpert):
    """An expert that takes the costliest action of each state."""

    def act(self, states, t):
        return np.array([1, 2, 1])[states[:, 0]]


@pytest.mark.parametrize(("beta", "expert"), [(1.0, TinyExpert()), (0.5, TinyExpert()), (0.0, CostliestExpert())])
def test_lols_learns_optimal_policy_even_with_bad_expert_at_beta_0(beta, expert):
    """Policy improvement of the learner itself gets to the optimum, −1.375; the uniform policy's return is −3.73."""
    learner = Learner(linear_policy(None).float(), RegularUpdate(0.1))
    oracle = LolsOracle(TinyMdp(), expert, beta)
    loop = aggrevated(learner, TinyMdp(), expert, oracle, all_actions_loss, k=40, validation_episodes=64)
    assert list(islice(loop, 50))[-1].best_return > -1.6
    assert (probabilities(learner.policy).argmax(axis=1) == EXPERT).all()


def test_resolve_config_chooses_loss_by_feedback_of_oracle():
    """Updates without --gradient get the loss of the oracle's feedback."""
    assert resolve_config("cartpole", oracle="monte-carlo").loss.name == "all-actions"
    for update in ("exponentiated", "natural"):
        one = resolve_config("cartpole", oracle="monte-carlo", update=update, all_actions=False)
        assert (one.loss.name, one.oracle.all_actions) == ("taken-action", False)


def test_lols_config_chooses_feedback_by_action_space():
    assert resolve_config("cartpole", "lols").loss.name == "all-actions"
    assert resolve_config("hopper", "lols").loss.name == "taken-action"
    one = resolve_config("cartpole", "lols", all_actions=False, gradient="taken-action", rollout_beta=0.0)
    assert one.oracle.get_feedback(finite=True).value == "what the action taken costs"
