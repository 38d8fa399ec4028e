"""Optional abilities of simulators are found in the simulators and through every wrapper."""

from dataclasses import dataclass

import numpy as np
import pytest

from aggrevated.core.errors import UsageError
from aggrevated.oracles.monte_carlo import MonteCarloOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators import (
    HasActionMask,
    Reseedable,
    Simulator,
    SimulatorWrapper,
    find_action_mask,
    find_reseedable,
)
from aggrevated.simulators.partial_observation import PartialObservationSimulator
from aggrevated.simulators.tabular import TabularExpert, TabularSimulator, make_random_mdps
from helpers.tiny_mdp import Lucky, TinyExpert, TinyMdp, linear_policy, randomise

SEEDS = np.arange(16, dtype=np.uint64)


class MaskedTinyMdp(Lucky):
    """The stochastic tiny MDP with action 0 illegal in state 0."""

    def action_mask(self, state):
        return np.column_stack([state[:, 0] != 0, np.ones((len(state), 2), bool)])


def wrap_in_view(simulator):
    return PartialObservationSimulator(simulator, simulator.observe, simulator.observation_space, "seen")


@dataclass(frozen=True)
class Plain:
    """Wrapper that implements the protocol of a simulator and nothing else."""

    simulator: Simulator

    @property
    def name(self):
        return self.simulator.name

    @property
    def horizon(self):
        return self.simulator.horizon

    @property
    def observation_space(self):
        return self.simulator.observation_space

    @property
    def action_space(self):
        return self.simulator.action_space

    def reset(self, seeds):
        return self.simulator.reset(seeds)

    def observe(self, state):
        return self.simulator.observe(state)

    def step(self, state, action):
        return self.simulator.step(state, action)


@dataclass(frozen=True)
class Forwarding:
    """Wrapper that forwards every attribute."""

    inner: Simulator

    def __getattr__(self, name):
        return getattr(self.inner, name)


WRAPPINGS = {
    "view": wrap_in_view,
    "view of a view": lambda simulator: wrap_in_view(wrap_in_view(simulator)),
    "user wrapper": Plain,
    "user wrapper around a view": lambda simulator: Plain(wrap_in_view(simulator)),
    "view of a user wrapper": lambda simulator: wrap_in_view(Plain(simulator)),
    "by __getattr__": Forwarding,
}
every_wrapping = pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=WRAPPINGS)


def test_find_action_mask_and_find_reseedable_return_the_able_simulator():
    simulator = MaskedTinyMdp()
    assert isinstance(simulator, HasActionMask) and isinstance(simulator, Reseedable)
    assert find_action_mask(simulator) is simulator and find_reseedable(simulator) is simulator
    assert find_action_mask(Lucky()) is None and find_reseedable(Lucky()) is not None


@every_wrapping
def test_wrappers_of_a_plain_simulator_have_no_optional_abilities(wrap):
    simulator = wrap(TinyMdp())
    assert find_action_mask(simulator) is None and find_reseedable(simulator) is None
    with pytest.raises(UsageError, match="is deterministic"):
        MonteCarloOracle(simulator, TinyExpert(), rollouts=2)
    assert roll_in(simulator, RollInPolicy(None, linear_policy().float().actor()), SEEDS).action_mask.shape[2] == 0


def test_simulator_wrapper_needs_no_optional_abilities():
    for wrap in (wrap_in_view, Plain):
        simulator = wrap(MaskedTinyMdp())
        assert isinstance(simulator, SimulatorWrapper) and isinstance(simulator, Simulator)
        assert not isinstance(simulator, HasActionMask | Reseedable)
    assert not isinstance(MaskedTinyMdp(), SimulatorWrapper)


def test_roll_in_uses_the_action_mask_of_the_outermost_wrapper():
    class MaskingWrapper(Plain):
        def action_mask(self, state):
            return np.tile([False, True, False], (len(state), 1))

    found = roll_in(MaskingWrapper(MaskedTinyMdp()), RollInPolicy(None, linear_policy().float().actor()), SEEDS)
    assert (found.actions[found.mask] == 1).all()


@every_wrapping
def test_roll_in_obeys_the_action_mask_behind_any_wrapper(wrap):
    mixture = RollInPolicy(None, linear_policy().float().actor())
    full = roll_in(MaskedTinyMdp(), mixture, SEEDS)
    found = roll_in(wrap(MaskedTinyMdp()), mixture, SEEDS)
    assert not full.action_mask[full.mask].all() and full.action_mask.shape == (16, 3, 3)
    np.testing.assert_array_equal(found.action_mask, full.action_mask)
    np.testing.assert_array_equal(found.actions, full.actions)


@every_wrapping
def test_monte_carlo_oracle_reseeds_identically_behind_any_wrapper(wrap):
    """A second rollout needs another seed: with a wrapper its costs equal those without one, bit for bit."""
    mdp = TabularSimulator(*(array[0] for array in make_random_mdps(1, 4, 3, 0)), horizon=6)
    policy = randomise(FeedForwardPolicy(24, CategoricalHead(3)), 1)
    trajectories = roll_in(mdp, RollInPolicy(None, policy.actor()), SEEDS)
    expected = MonteCarloOracle(mdp, TabularExpert(mdp), rollouts=2)(trajectories)
    found = MonteCarloOracle(wrap(mdp), TabularExpert(mdp), rollouts=2)(trajectories)
    once = MonteCarloOracle(mdp, TabularExpert(mdp))(trajectories)
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.simulator_steps == expected.simulator_steps and (once.values != expected.values).any()
