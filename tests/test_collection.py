"""Lines 5 and 6 in blocks: the same as all at once, also where simulations diverge."""

import numpy as np
import pytest

from aggrevated.collection import RolloutCollector
from aggrevated.core.errors import DataError
from aggrevated.engines import IN_PROCESS, InProcessEngine
from aggrevated.oracles.advantage import AdvantageOracle
from aggrevated.oracles.monte_carlo import MonteCarloOracle
from aggrevated.oracles.reward_to_go import RewardToGoOracle
from aggrevated.rollout.roll_in import RollInPolicy
from aggrevated.rollout.trajectories import ARRAYS
from helpers.tiny_mdp import TinyExpert, TinyMdp, linear_policy

LANES = np.arange(24, dtype=np.uint64)


class Diverging(TinyMdp):
    """The tiny MDP, of whose steps from state 1 those with action 2 break it."""

    def step(self, state, action):
        following, cost, done = super().step(state, action)
        broken = (state[:, 0] == 1) & (action == 2)
        return following, np.where(broken, np.nan, cost), done | broken


class Broken(TinyMdp):
    """One that always breaks."""

    def step(self, state, action):
        following, cost, done = super().step(state, action)
        return following, np.full(len(cost), np.nan), done


def gathered(simulator, oracle, engine, lanes=LANES):
    policy = linear_policy().float()
    return RolloutCollector(simulator, TinyExpert(), oracle, engine)(
        RollInPolicy(TinyExpert(), policy.actor(), 0.2, 3), lanes, policy
    )


@pytest.mark.parametrize("block", [1, 5, 23, 50])
@pytest.mark.parametrize(
    ("simulator", "oracle"),
    [
        (Diverging(), MonteCarloOracle(TinyMdp(), TinyExpert(), steps=2)),  # roll-ins diverge
        (TinyMdp(), MonteCarloOracle(Diverging(), TinyExpert())),  # roll-outs do
        (Diverging(), AdvantageOracle(RewardToGoOracle())),  # and this one looks at all trajectories
    ],
    ids=["roll-ins", "roll-outs", "not alone"],
)
def test_blocks_are_put_together_as_if_there_were_none(simulator, oracle, block):
    whole, told = gathered(simulator, oracle, IN_PROCESS)
    parts, told_parts = gathered(simulator, oracle, InProcessEngine(block))
    assert whole.diverged + told.diverged > 0
    for name in (*ARRAYS, "seeds"):
        if name != "states":  # they do not travel
            np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name), err_msg=name)
    for name in ("n", "horizon", "alpha", "diverged", "unseen"):
        assert getattr(parts, name) == getattr(whole, name), name
    for name, array in told.arrays.items():
        np.testing.assert_array_equal(told_parts.arrays[name], array, err_msg=name)
    for name in ("queries", "simulator_steps", "diverged", "lost_trajectories", "advantage"):
        assert getattr(told_parts, name) == getattr(told, name), name


@pytest.mark.parametrize("engine", [IN_PROCESS, InProcessEngine(1)])
def test_where_nothing_is_left_it_is_one_sentence(engine):
    oracle = MonteCarloOracle(TinyMdp(), TinyExpert())
    with pytest.raises(DataError, match=r"^the simulator returned a cost that is not finite in all of 24 episodes"):
        gathered(Broken(), oracle, engine)
    with pytest.raises(DataError, match=r"^every one of \d+ roll-outs diverged; check the simulator"):
        gathered(TinyMdp(), MonteCarloOracle(Broken(), TinyExpert()), engine)


def test_states_travel_only_to_an_oracle_that_stays_here():
    alone, _ = gathered(TinyMdp(), MonteCarloOracle(TinyMdp(), TinyExpert()), InProcessEngine(5))
    here, _ = gathered(TinyMdp(), AdvantageOracle(RewardToGoOracle()), InProcessEngine(5))
    assert alone.states.shape[2:] == (0,) and here.states.shape[2:] != (0,)
