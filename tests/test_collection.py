"""Lines 5 and 6 of Algorithm 1: results do not depend on blocks, also when simulations diverge."""

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

SEEDS = np.arange(24, dtype=np.uint64)


class DivergingMdp(TinyMdp):
    """The tiny MDP, where action 2 in state 1 diverges."""

    def step(self, state, action):
        following, cost, done = super().step(state, action)
        broken = (state[:, 0] == 1) & (action == 2)
        return following, np.where(broken, np.nan, cost), done | broken


class BrokenMdp(TinyMdp):
    """A simulator that always diverges."""

    def step(self, state, action):
        following, cost, done = super().step(state, action)
        return following, np.full(len(cost), np.nan), done


def collect(simulator, oracle, engine, seeds=SEEDS):
    policy = linear_policy().float()
    return RolloutCollector(simulator, TinyExpert(), oracle, engine)(
        RollInPolicy(TinyExpert(), policy.actor(), 0.2, 3), seeds, policy
    )


@pytest.mark.parametrize("block", [1, 5, 23, 50])
@pytest.mark.parametrize(
    ("simulator", "oracle"),
    [
        (DivergingMdp(), MonteCarloOracle(TinyMdp(), TinyExpert(), steps=2)),  # roll-ins diverge
        (TinyMdp(), MonteCarloOracle(DivergingMdp(), TinyExpert())),  # rollouts diverge
        (DivergingMdp(), AdvantageOracle(RewardToGoOracle())),  # this oracle needs all trajectories
    ],
    ids=["roll-ins", "roll-outs", "not alone"],
)
def test_rollout_collector_in_blocks_equals_one_batch(simulator, oracle, block):
    whole, costs = collect(simulator, oracle, IN_PROCESS)
    blocks, costs_of_blocks = collect(simulator, oracle, InProcessEngine(block))
    assert whole.diverged + costs.diverged > 0
    for name in (*ARRAYS, "seeds"):
        if name != "states":  # blocks do not return states
            np.testing.assert_array_equal(getattr(blocks, name), getattr(whole, name), err_msg=name)
    for name in ("n", "horizon", "alpha", "diverged", "unseen"):
        assert getattr(blocks, name) == getattr(whole, name), name
    for name, array in costs.arrays.items():
        np.testing.assert_array_equal(costs_of_blocks.arrays[name], array, err_msg=name)
    for name in ("queries", "simulator_steps", "diverged", "lost_trajectories", "advantage"):
        assert getattr(costs_of_blocks, name) == getattr(costs, name), name


@pytest.mark.parametrize("engine", [IN_PROCESS, InProcessEngine(1)])
def test_rollout_collector_raises_when_everything_diverged(engine):
    oracle = MonteCarloOracle(TinyMdp(), TinyExpert())
    with pytest.raises(DataError, match=r"^the simulator returned a cost that is not finite in all of 24 episodes"):
        collect(BrokenMdp(), oracle, engine)
    with pytest.raises(DataError, match=r"^every one of \d+ rollouts diverged; check the simulator"):
        collect(TinyMdp(), MonteCarloOracle(BrokenMdp(), TinyExpert()), engine)


def test_rollout_collector_returns_states_only_if_oracle_needs_whole_batch():
    independent, _ = collect(TinyMdp(), MonteCarloOracle(TinyMdp(), TinyExpert()), InProcessEngine(5))
    joint, _ = collect(TinyMdp(), AdvantageOracle(RewardToGoOracle()), InProcessEngine(5))
    assert independent.states.shape[2:] == (0,) and joint.states.shape[2:] != (0,)
