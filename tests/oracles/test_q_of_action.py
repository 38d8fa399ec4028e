"""Oracles of experts with `q_of` agree with those of experts that know Q of every action."""

from dataclasses import dataclass

import numpy as np
import pytest

from aggrevated.core.errors import UsageError, UserCodeError
from aggrevated.oracles import Feedback
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle
from aggrevated.oracles.q_of_action import PerActionQOracle, StateActionQOracle, StateActionQSettings
from aggrevated.oracles.q_star import QStarOracle
from helpers.tiny_mdp import Home, TinyExpert, TinyMdp, Walk


class TinyQExpert(TinyExpert):
    """Expert with Q* of the tiny MDP, one action at a time."""

    def q_of(self, states, actions):
        return self.q(states)[np.arange(len(states)), actions]


@dataclass(frozen=True)
class WalkQExpert(Home):
    """Expert of the walk with an arbitrary Q."""

    def q_of(self, states, actions):
        return states[:, 0] + actions[:, 0] + 10 * actions[:, 1]


def test_per_action_q_oracle_equals_q_star_oracle(two_trajectories):
    per_action = PerActionQOracle(TinyQExpert(), TinyMdp.action_space)
    np.testing.assert_array_equal(
        per_action(two_trajectories).values, QStarOracle(TinyExpert())(two_trajectories).values
    )
    assert (
        per_action(two_trajectories).has_all_actions and per_action(two_trajectories).queries == two_trajectories.steps
    )


def test_state_action_q_oracle_equals_q_star_of_taken_action(two_trajectories):
    taken = StateActionQOracle(TinyQExpert(), TinyMdp.action_space, advantage=False)(two_trajectories)
    np.testing.assert_array_equal(taken.values, TakenActionOracle(QStarOracle(TinyExpert()))(two_trajectories).values)
    with_advantage = StateActionQOracle(TinyQExpert(), TinyMdp.action_space)(two_trajectories)
    np.testing.assert_array_equal(
        with_advantage.values, TakenActionOracle(AdvantageOracle(QStarOracle(TinyExpert())))(two_trajectories).values
    )
    assert with_advantage.advantage and not taken.advantage


def test_state_action_q_settings_choose_oracle_by_action_space():
    settings = StateActionQSettings()
    assert (
        settings.get_feedback(finite=True) is Feedback.ALL_ACTIONS
        and settings.get_feedback(finite=False) is Feedback.TAKEN_ACTION
    )
    assert settings.build(TinyMdp(), TinyQExpert()) == AdvantageOracle(
        PerActionQOracle(TinyQExpert(), TinyMdp.action_space)
    )
    assert settings.build(Walk(), WalkQExpert()) == StateActionQOracle(WalkQExpert(), Walk.action_space)
    with pytest.raises(UsageError, match="with the method q_of, which tiny-expert does not have"):
        settings.build(TinyMdp(), TinyExpert())


def test_state_action_q_oracles_report_place_of_invalid_values(two_trajectories):
    class Broken(TinyQExpert):
        def q_of(self, states, actions):
            return np.where(states[:, 1] == 2, np.nan, 0.0)

    with pytest.raises(UserCodeError, match=r"not finite \(nan\) in step 2 of the episode of seed 1"):
        StateActionQOracle(Broken(), TinyMdp.action_space)(two_trajectories)

    class Wide(TinyQExpert):
        def q_of(self, states, actions):
            return self.q(states)

    with pytest.raises(UserCodeError, match=r"shape \(5, 3\); they must be of shape \(5,\): fix its q_of"):
        PerActionQOracle(Wide(), TinyMdp.action_space)(two_trajectories)
