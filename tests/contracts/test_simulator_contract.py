"""What every simulator must keep: a function of values, over a batch, in which no episode knows of another."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from aggrevated.parsing.parser import Parser
from aggrevated.parsing.transitions.systems import SYSTEMS
from aggrevated.simulators import Simulator, find_action_mask
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.mujoco import ROBOTS, MuJoCo
from aggrevated.simulators.partial_observation import PartialObservationSimulator
from aggrevated.simulators.tabular import TabularSimulator, make_random_mdps
from aggrevated.tasks.acrobot_partial import make_partial_acrobot
from aggrevated_experiments.where_it_pays.simulators.keys import Keys, MaskedKeys
from aggrevated_experiments.where_it_pays.simulators.packing import Packing
from helpers.parser_policies import corpus
from helpers.tiny_mdp import TinyMdp, Walk


def only_the_time(state):
    return (state[:, 1:2] / 3).astype(np.float32)


SIMULATORS = [CartPole(horizon=40), Acrobot(horizon=40), TinyMdp(), make_partial_acrobot(40), Walk()]
SIMULATORS += [Keys(horizon=40), MaskedKeys(horizon=40), Packing()]
SIMULATORS.append(TabularSimulator(*(array[0] for array in make_random_mdps(1, 4, 3, 0)), horizon=9))
SIMULATORS.append(PartialObservationSimulator(TinyMdp(), only_the_time, Box(0.0, 1.0, (1,)), "tiny, only the time"))
SIMULATORS += [MuJoCo(name, 40, threads=2) for name in ROBOTS]
SIMULATORS += [Parser(corpus(most=12), np.arange(5, 30), system=s, name=s.name) for s in SYSTEMS.values()]
SEEDS = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 2**63 + 9], dtype=np.uint64)

pytestmark = pytest.mark.parametrize("simulator", SIMULATORS, ids=lambda simulator: simulator.name)


def random_actions(simulator, state, seed=0):
    """One for each state, among those that are legal there."""
    generator = np.random.default_rng(seed)
    space = simulator.action_space
    n = len(state)
    if rules := find_action_mask(simulator):
        return np.where(rules.action_mask(state), generator.random((n, space.n)), -1.0).argmax(axis=1)
    if isinstance(space, Discrete):
        return generator.integers(space.n, size=n)
    return generator.uniform(space.low, space.high, (n, *space.shape)).astype(np.float32)


def visited(simulator, steps=2):
    """States after a few random steps, and the actions to take there."""
    state = simulator.reset(SEEDS)
    for t in range(steps):
        state, _, done = simulator.step(state, random_actions(simulator, state, t))
        state = state[~done]
    assert len(state) > 3
    return state, random_actions(simulator, state, 99)


def test_fits_the_protocol(simulator):
    assert isinstance(simulator, Simulator)
    assert simulator.horizon >= 1


def test_shapes_and_types(simulator):
    state, action = visited(simulator)
    following, cost, done = simulator.step(state, action)
    observation = simulator.observe(state)
    assert following.shape == state.shape and following.dtype == state.dtype
    assert cost.shape == done.shape == (len(state),)
    assert cost.dtype.kind == "f" and done.dtype == bool
    assert observation.shape == (len(state), *simulator.observation_space.shape)
    assert observation.dtype == np.float32
    assert np.isfinite(observation).all() and np.isfinite(cost).all()
    assert all(simulator.observation_space.contains(row) for row in observation)


def test_initial_states_are_a_function_of_the_seed(simulator):
    states = simulator.reset(SEEDS)
    np.testing.assert_array_equal(states, simulator.reset(SEEDS))
    np.testing.assert_array_equal(states[::-1], simulator.reset(SEEDS[::-1]))
    for seed, state in zip(SEEDS, states, strict=True):
        np.testing.assert_array_equal(simulator.reset(np.array([seed]))[0], state)
    assert len(np.unique(states, axis=0)) > 3


def test_neither_step_nor_observe_changes_its_input(simulator):
    state, action = visited(simulator)
    before = state.copy(), action.copy()
    following, _, _ = simulator.step(state, action)
    observation = simulator.observe(state)
    assert not np.shares_memory(following, state) and not np.shares_memory(observation, state)
    observation[:] = 0
    following[:] = 0
    np.testing.assert_array_equal(state, before[0])
    np.testing.assert_array_equal(action, before[1])


def test_stepping_twice_from_a_state_gives_the_same_twice(simulator):
    state, action = visited(simulator)
    for first, second in zip(simulator.step(state, action), simulator.step(state, action), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_batch_of_n_is_n_batches_of_one_bit_for_bit(simulator, order):
    """Also whichever way the batch lies in memory, since dropping finished lanes changes that."""
    state, action = visited(simulator)
    state = np.asarray(state, order=order)
    together = (*simulator.step(state, action), simulator.observe(state))
    for i in range(len(state)):
        alone = (
            *simulator.step(state[i : i + 1].copy(), action[i : i + 1]),
            simulator.observe(state[i : i + 1].copy()),
        )
        for all_of_them, one in zip(together, alone, strict=True):
            np.testing.assert_array_equal(all_of_them[i], one[0])


def test_the_state_is_the_snapshot(simulator):
    """Written out as bytes and read back, an episode goes on as if nothing had happened."""
    state, action = visited(simulator)
    restored = np.frombuffer(state.tobytes(), state.dtype).reshape(state.shape)
    for t in range(5):
        action = random_actions(simulator, state, t)
        going_on = simulator.step(state, action)
        restarted = simulator.step(restored, action)
        for first, second in zip(going_on, restarted, strict=True):
            np.testing.assert_array_equal(first, second)
        live = ~going_on[2]
        if simulator.name.startswith("tiny"):  # its state counts the steps, and there are only H of them
            break
        state = going_on[0][live]
        restored = restarted[0][live]
