"""Contract of simulators: pure functions of a batch of states, in which no trajectory depends on another."""

import numpy as np
import pytest
from gymnasium.spaces import Discrete

from aggrevated.simulators import Simulator, find_action_mask

SEEDS = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 2**63 + 9], dtype=np.uint64)


def random_actions(simulator, state, seed=0):
    """Return a random legal action for each state."""
    generator = np.random.default_rng(seed)
    space = simulator.action_space
    n = len(state)
    if rules := find_action_mask(simulator):
        return np.where(rules.action_mask(state), generator.random((n, space.n)), -1.0).argmax(axis=1)
    if isinstance(space, Discrete):
        return generator.integers(space.n, size=n)
    return generator.uniform(space.low, space.high, (n, *space.shape)).astype(np.float32)


def visited_states(simulator, steps=2):
    """Return states after a few random steps, and actions for them."""
    state = simulator.reset(SEEDS)
    for t in range(steps):
        state, _, done = simulator.step(state, random_actions(simulator, state, t))
        state = state[~done]
    assert len(state) > 3
    return state, random_actions(simulator, state, 99)


class SimulatorContract:
    """Tests of one simulator; a subclass `Test...` parametrizes `simulator`."""

    def test_simulator_conforms_to_protocol(self, simulator):
        assert isinstance(simulator, Simulator)
        assert simulator.horizon >= 1

    def test_simulator_step_and_observe_return_declared_shapes_and_types(self, simulator):
        state, action = visited_states(simulator)
        following, cost, done = simulator.step(state, action)
        observation = simulator.observe(state)
        assert following.shape == state.shape and following.dtype == state.dtype
        assert cost.shape == done.shape == (len(state),)
        assert cost.dtype.kind == "f" and done.dtype == bool
        assert observation.shape == (len(state), *simulator.observation_space.shape)
        assert observation.dtype == np.float32
        assert np.isfinite(observation).all() and np.isfinite(cost).all()
        assert all(simulator.observation_space.contains(row) for row in observation)

    def test_simulator_reset_depends_on_seed_only(self, simulator):
        states = simulator.reset(SEEDS)
        np.testing.assert_array_equal(states, simulator.reset(SEEDS))
        np.testing.assert_array_equal(states[::-1], simulator.reset(SEEDS[::-1]))
        for seed, state in zip(SEEDS, states, strict=True):
            np.testing.assert_array_equal(simulator.reset(np.array([seed]))[0], state)
        assert len(np.unique(states, axis=0)) > 3

    def test_simulator_step_and_observe_do_not_modify_inputs(self, simulator):
        state, action = visited_states(simulator)
        before = state.copy(), action.copy()
        following, _, _ = simulator.step(state, action)
        observation = simulator.observe(state)
        assert not np.shares_memory(following, state) and not np.shares_memory(observation, state)
        observation[:] = 0
        following[:] = 0
        np.testing.assert_array_equal(state, before[0])
        np.testing.assert_array_equal(action, before[1])

    def test_simulator_step_is_deterministic(self, simulator):
        state, action = visited_states(simulator)
        for first, second in zip(simulator.step(state, action), simulator.step(state, action), strict=True):
            np.testing.assert_array_equal(first, second)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_simulator_batch_equals_single_states_bit_for_bit(self, simulator, order):
        """Check both memory orders, since dropping finished trajectories changes the order of the batch."""
        state, action = visited_states(simulator)
        state = np.asarray(state, order=order)
        together = (*simulator.step(state, action), simulator.observe(state))
        for i in range(len(state)):
            alone = (
                *simulator.step(state[i : i + 1].copy(), action[i : i + 1]),
                simulator.observe(state[i : i + 1].copy()),
            )
            for all_of_them, one in zip(together, alone, strict=True):
                np.testing.assert_array_equal(all_of_them[i], one[0])

    def test_simulator_state_round_trips_through_bytes(self, simulator):
        """A state written as bytes and read back continues the episode with the same bits."""
        state, action = visited_states(simulator)
        restored = np.frombuffer(state.tobytes(), state.dtype).reshape(state.shape)
        for t in range(5):
            action = random_actions(simulator, state, t)
            continued = simulator.step(state, action)
            restarted = simulator.step(restored, action)
            for first, second in zip(continued, restarted, strict=True):
                np.testing.assert_array_equal(first, second)
            live = ~continued[2]
            if simulator.name.startswith("tiny"):  # states that count steps end at the horizon
                break
            state = continued[0][live]
            restored = restarted[0][live]
