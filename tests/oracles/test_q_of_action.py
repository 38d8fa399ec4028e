"""Q* of actions that the expert is asked about: as an expert that knows every action tells it."""

from dataclasses import dataclass

import numpy as np
import pytest

from aggrevated.core.errors import UsageError, UserCodeError
from aggrevated.oracles import Feedback
from aggrevated.oracles.advantage import AdvantageOracle, TakenActionOracle
from aggrevated.oracles.q_of_action import PerActionQOracle, StateActionQOracle, StateActionQSettings
from aggrevated.oracles.q_star import QStarOracle
from helpers.tiny_mdp import Home, TinyExpert, TinyMdp, Walk


class Asked(TinyExpert):
    """Q* of the tiny MDP, of one action at a time."""

    def q_of(self, states, actions):
        return self.q(states)[np.arange(len(states)), actions]


@dataclass(frozen=True)
class Vectors(Home):
    """The walk's expert, with a Q* of its own invention."""

    def q_of(self, states, actions):
        return states[:, 0] + actions[:, 0] + 10 * actions[:, 1]


def test_every_action_is_what_q_tells(two):
    every = PerActionQOracle(Asked(), TinyMdp.action_space)
    np.testing.assert_array_equal(every(two).values, QStarOracle(TinyExpert())(two).values)
    assert every(two).all_actions and every(two).queries == two.steps


def test_of_the_action_taken_it_is_that_one(two):
    taken = StateActionQOracle(Asked(), TinyMdp.action_space, advantage=False)(two)
    np.testing.assert_array_equal(taken.values, TakenActionOracle(QStarOracle(TinyExpert()))(two).values)
    less = StateActionQOracle(Asked(), TinyMdp.action_space)(two)
    np.testing.assert_array_equal(
        less.values, TakenActionOracle(AdvantageOracle(QStarOracle(TinyExpert())))(two).values
    )
    assert less.advantage and not taken.advantage


def test_the_settings_build_what_fits_the_actions():
    settings = StateActionQSettings()
    assert (
        settings.feedback(finite=True) is Feedback.ALL_ACTIONS
        and settings.feedback(finite=False) is Feedback.TAKEN_ACTION
    )
    assert settings.build(TinyMdp(), Asked()) == AdvantageOracle(PerActionQOracle(Asked(), TinyMdp.action_space))
    assert settings.build(Walk(), Vectors()) == StateActionQOracle(Vectors(), Walk.action_space)
    with pytest.raises(UsageError, match="by its method q_of, which tiny-expert does not have"):
        settings.build(TinyMdp(), TinyExpert())


def test_a_wrong_answer_is_told_with_its_place(two):
    class Broken(Asked):
        def q_of(self, states, actions):
            return np.where(states[:, 1] == 2, np.nan, 0.0)

    with pytest.raises(UserCodeError, match=r"not finite \(nan\) in step 2 of the episode of seed 1"):
        StateActionQOracle(Broken(), TinyMdp.action_space)(two)

    class Wide(Asked):
        def q_of(self, states, actions):
            return self.q(states)

    with pytest.raises(UserCodeError, match=r"shape \(5, 3\); they must be of shape \(5,\): mend its q_of"):
        PerActionQOracle(Wide(), TinyMdp.action_space)(two)
