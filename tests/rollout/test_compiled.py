"""Compiled episodes equal those run step by step, bit for bit."""

import numpy as np
import pytest
import torch

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.rollout import roll_in as module
from aggrevated.rollout.compiled import run_compiled_episodes
from aggrevated.rollout.roll_in import RollInPolicy, collect_episode_returns, roll_in
from aggrevated.rollout.trajectories import ARRAYS
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.compiled import find_compiled_form
from aggrevated.simulators.partial_observation import PartialObservationSimulator, select_columns
from aggrevated.tasks.acrobot_partial import make_partial_acrobot

SIMULATORS = {
    "cartpole": CartPole(60),
    "acrobot": Acrobot(60),
    "acrobot-partial": make_partial_acrobot(60),
    "columns in another order": select_columns(CartPole(61), (2, 0), "some"),
}
POLICIES = {
    "16": lambda seen, head: FeedForwardPolicy(seen, head, (16,)),
    "linear": lambda seen, head: FeedForwardPolicy(seen, head, ()),
    "19, 8, 5": lambda seen, head: FeedForwardPolicy(seen, head, (19, 8, 5)),
    "lstm": lambda seen, head: RecurrentPolicy(seen, head, 11),
    "lstm that observes actions": lambda seen, head: RecurrentPolicy(seen, head, 11, observe_actions=True),
}
SEEDS = derive_seeds(3, SeedPurpose.ROLL_IN, 1, 9)


def random_roll_in_policy(simulator, policy) -> RollInPolicy:
    built = POLICIES[policy](simulator.observation_space.shape[0], CategoricalHead(int(simulator.action_space.n)))
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.mul_(3)  # makes the policy prefer some actions
    return RollInPolicy(None, built.actor(), n=4)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", SIMULATORS)
def test_compiled_episodes_equal_stepwise_roll_in_bit_for_bit(name, policy, deterministic, monkeypatch):
    simulator = SIMULATORS[name]
    roll_in_policy = random_roll_in_policy(SIMULATORS[name], policy)
    assert run_compiled_episodes(simulator, roll_in_policy.learner, SEEDS, deterministic) is not None
    fast = roll_in(simulator, roll_in_policy, SEEDS, deterministic)
    returns_and_steps = collect_episode_returns(simulator, roll_in_policy, SEEDS, deterministic)
    monkeypatch.setattr(module, "run_compiled_episodes", lambda *_, **__: None)
    slow = roll_in(simulator, roll_in_policy, SEEDS, deterministic)
    for field in (*ARRAYS, "seeds"):
        a = getattr(fast, field)
        b = getattr(slow, field)
        assert a.dtype == b.dtype, field
        np.testing.assert_array_equal(a, b, err_msg=field)
    assert (fast.horizon, fast.alpha, fast.n, fast.simulator_steps) == (slow.horizon, 0.0, 4, slow.simulator_steps)
    np.testing.assert_array_equal(returns_and_steps[0], slow.returns)
    assert returns_and_steps[1] == slow.steps


def test_find_compiled_form_returns_none_for_subclasses_and_unknown_views():
    class CartPoleSubclass(CartPole):
        """A subclass whose steps may differ from those of CartPole."""

    assert find_compiled_form(CartPoleSubclass()) is None
    view = select_columns(CartPole(), (0, 2), "some").view
    partial = PartialObservationSimulator(CartPoleSubclass(), view, CartPole().observation_space, "x")
    assert find_compiled_form(partial) is None
    assert (
        find_compiled_form(
            PartialObservationSimulator(CartPole(), lambda s: s.astype("float32"), CartPole().observation_space, "x")
        )
        is None
    )


def test_roll_in_steps_actors_without_compiled_form():
    head = CategoricalHead(2)
    for policy in (WindowPolicy(4, head), RecurrentPolicy(4, head, cell="gru"), FeedForwardPolicy(4, head).double()):
        assert run_compiled_episodes(CartPole(), policy.actor(), SEEDS, False) is None
    assert roll_in(CartPole(30), RollInPolicy(None, WindowPolicy(4, head).actor()), SEEDS).count == 9


def test_episode_returns_rejects_zero_episodes():
    from aggrevated.core.errors import UsageError

    with pytest.raises(UsageError, match="0 episodes of at most 60 steps"):
        collect_episode_returns(SIMULATORS["cartpole"], random_roll_in_policy(SIMULATORS["cartpole"], "16"), SEEDS[:0])
