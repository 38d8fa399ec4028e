"""Partial observations: a function of the state hides parts from the learner and changes nothing else."""

from math import pi, sqrt

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from aggrevated.config.builder import build_algorithm_inputs
from aggrevated.config.resolver import resolve_config
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.experts.loading import load_expert
from aggrevated.oracles.q_star import QStarOracle
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.policies.window import WindowPolicy
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.partial_observation import PartialObservationSimulator
from aggrevated.tasks.acrobot_partial import make_partial_acrobot
from helpers.tiny_mdp import POLICIES, TinyMdp, linear_policy, random_policy, randomise

SEEDS = derive_seeds(0, SeedPurpose.ROLL_IN, 1, 20)
H = 150


def load_acrobot_expert():
    return load_expert("acrobot", Acrobot(H))


def test_partial_acrobot_shows_hand_computed_link_positions():
    """Cosine and sine of 0 and 90°, then of 180° and −45°, for any velocities."""
    state = np.array([[0.0, pi / 2, 1.0, 2.0], [pi, -pi / 4, -3.0, 4.0]])
    half = sqrt(0.5)
    seen = make_partial_acrobot(200).observe(state)
    np.testing.assert_allclose(seen, [[1, 0, 0, 1], [-1, 0, half, -half]], atol=1e-7)
    assert seen.dtype == np.float32


def test_partial_observation_simulator_changes_only_the_observations():
    full = Acrobot(H)
    partial = make_partial_acrobot(H)
    state = full.reset(SEEDS)
    np.testing.assert_array_equal(partial.reset(SEEDS), state)
    for t in range(10):
        np.testing.assert_array_equal(partial.observe(state), full.observe(state)[:, :4])
        action = np.arange(20) * (t + 1) % 3
        for one, other in zip(partial.step(state, action), full.step(state, action), strict=True):
            np.testing.assert_array_equal(one, other)
        state = full.step(state, action)[0]
    assert (partial.horizon, partial.action_space, partial.name) == (H, full.action_space, "acrobot-partial")
    assert partial.observation_space == Box(-1.0, 1.0, (4,), np.float32)
    np.testing.assert_array_equal(partial.observe(state * [1, 1, 9, -9]), partial.observe(state))  # no velocities


def make_velocity_blind_policies(kind):
    """Return two policies with the same weights: one has weight 0 on the velocities, the other does not see them."""
    head = CategoricalHead(3)
    makers = {
        "mlp": lambda n: FeedForwardPolicy(n, head),
        "window": lambda n: WindowPolicy(n, head),
        "lstm": lambda n: RecurrentPolicy(n, head, 8, "lstm"),
        "gru": lambda n: RecurrentPolicy(n, head, 8, "gru"),
    }
    full = randomise(makers[kind](6), 3, 0.8)
    partial = makers[kind](4)
    weights = {}
    with torch.no_grad():
        for name, parameter in full.named_parameters():
            if parameter.ndim == 2 and parameter.shape[1] % 6 == 0 and parameter.shape[1] in (6, 24):
                observed = parameter.view(len(parameter), -1, 6)
                observed[..., 4:] = 0.0
                weights[name] = observed[..., :4].flatten(1).clone()
            else:
                weights[name] = parameter.clone()
    partial.load_state_dict(weights)
    return full, partial


@pytest.mark.parametrize("kind", ["mlp", "window", "lstm", "gru"])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_roll_in_of_a_velocity_blind_policy_is_the_same_without_velocities(kind, alpha):
    full, partial = make_velocity_blind_policies(kind)
    one = roll_in(Acrobot(H), RollInPolicy(load_acrobot_expert(), full.actor(), alpha), SEEDS)
    other = roll_in(make_partial_acrobot(H), RollInPolicy(load_acrobot_expert(), partial.actor(), alpha), SEEDS)
    for name in ("states", "actions", "costs", "mask", "by_expert"):
        np.testing.assert_array_equal(getattr(other, name), getattr(one, name), err_msg=name)
    np.testing.assert_array_equal(other.observations, one.observations[..., :4])
    assert alpha == 0.0 or not one.mask.all()  # with the expert, episodes end at different times


def test_partial_observation_simulator_shows_the_expert_the_full_state():
    """The expert acts as on the full simulator and returns the same Q*; it needs the velocities."""
    alone = [
        roll_in(simulator, RollInPolicy(load_acrobot_expert(), None, 1.0), SEEDS)
        for simulator in (Acrobot(H), make_partial_acrobot(H))
    ]
    np.testing.assert_array_equal(alone[0].actions, alone[1].actions)
    assert alone[1].states.shape[2:] == (4,) and alone[1].observations.shape[2:] == (4,)
    q_full, q_partial = (QStarOracle(load_acrobot_expert())(trajectories).values for trajectories in alone)
    np.testing.assert_array_equal(q_full, q_partial)
    mask = alone[1].mask
    by_hand = -load_acrobot_expert().network(Acrobot().observe(alone[1].states[mask]))
    np.testing.assert_array_equal(q_partial[mask], by_hand)
    assert alone[1].returns.mean() > -110


def test_build_algorithm_inputs_shows_the_oracle_the_state_the_learner_the_view():
    setup = build_algorithm_inputs(resolve_config("acrobot-partial", "aggrevated", horizon=20))
    assert setup.problem.simulator.observation_space.shape == (4,)
    assert setup.problem.expert.network.weights[0].shape[0] == 6
    found = roll_in(
        setup.problem.simulator, RollInPolicy(setup.problem.expert, setup.learner.policy.actor(), 0.5), SEEDS
    )
    costs = setup.oracle(found)
    expected = -setup.problem.expert.network(Acrobot().observe(found.states[found.mask]))
    np.testing.assert_allclose(costs.values[found.mask], expected - expected.min(axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("kind", POLICIES)
def test_partial_acrobot_observations_fit_every_kind_of_policy(kind):
    policy = random_policy(make_partial_acrobot(H), kind, (8,), seed=0)
    found = roll_in(make_partial_acrobot(10), RollInPolicy(None, policy.actor()), SEEDS)
    assert found.observations.shape == (20, 10, 4)


def test_partial_observation_simulator_keeps_illegal_actions_illegal():
    """`roll_in` reads the action mask of the simulator: the wrapper must not make illegal actions legal."""

    class OnlyAction2(TinyMdp):
        def action_mask(self, state):
            return np.tile([False, False, True], (len(state), 1))

    simulator = OnlyAction2()
    policy = linear_policy().float()
    own = np.arange(16, dtype=np.uint64)
    full = roll_in(simulator, RollInPolicy(None, policy.actor()), own)
    assert (full.actions[full.mask] == 2).all()
    behind = PartialObservationSimulator(simulator, simulator.observe, simulator.observation_space, "seen")
    found = roll_in(behind, RollInPolicy(None, policy.actor()), own)
    np.testing.assert_array_equal(found.action_mask, full.action_mask)
    np.testing.assert_array_equal(found.actions, full.actions)


def test_partial_observation_simulator_adds_no_action_mask():
    found = roll_in(make_partial_acrobot(5), RollInPolicy(load_acrobot_expert(), None, 1.0), SEEDS)
    assert found.action_mask.shape == (20, 5, 0)
