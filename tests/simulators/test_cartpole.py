"""CartPole against Gymnasium's `CartPole-v1`."""

import gymnasium
import numpy as np
import pytest

from aggrevated.simulators.cartpole import CartPole

STEPS = 10_000


@pytest.fixture(scope="module")
def env():
    return gymnasium.make("CartPole-v1", disable_env_checker=True).unwrapped


def sample_states(generator):
    """Return states: a third typical, a third close to a limit of position or angle, a third fast."""
    typical = generator.uniform(-1, 1, (STEPS, 4)) * [2.4, 2.0, 0.2095, 2.0]
    close = typical.copy()
    sign = generator.choice([-1, 1], STEPS)
    at_the_end = sign * generator.normal(2.4, 0.02, STEPS)
    at_the_angle = sign * generator.normal(0.2095, 0.01, STEPS)
    close[:, 0] = np.where(generator.random(STEPS) < 0.5, at_the_end, close[:, 0])
    close[:, 2] = np.where(generator.random(STEPS) < 0.5, at_the_angle, close[:, 2])
    fast = typical * [1, 50, 1, 50]
    return np.where(
        (np.arange(STEPS) % 3)[:, None] == 0, typical, np.where((np.arange(STEPS) % 3)[:, None] == 1, close, fast)
    )


def test_cartpole_simulator_resets_match_gymnasium_bit_for_bit(env):
    seeds = np.array([0, 1, 2, 12345, 2**32 + 7, 2**63 + 11], dtype=np.uint64)
    states = CartPole().reset(seeds)
    for seed, state, observed in zip(seeds, states, CartPole().observe(states), strict=True):
        observation, _ = env.reset(seed=int(seed))
        np.testing.assert_array_equal(state, env.state)
        np.testing.assert_array_equal(observed, observation)
        assert observed.dtype == observation.dtype


def test_cartpole_simulator_steps_from_any_state_match_gymnasium(env):
    generator = np.random.default_rng(0)
    states = sample_states(generator)
    actions = generator.integers(2, size=STEPS)
    following, cost, done = CartPole().step(states, actions)
    observed = CartPole().observe(following)
    env.reset(seed=0)
    ended = 0
    for i in range(STEPS):
        env.state = states[i]
        env.steps_beyond_terminated = None
        observation, reward, terminated, _, _ = env.step(int(actions[i]))
        np.testing.assert_allclose(following[i], env.state, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(observed[i], observation)
        assert (-cost[i], done[i]) == (reward, terminated)
        ended += terminated
    assert 1000 < ended < 9000  # both outcomes occurred


def test_cartpole_simulator_episodes_match_gymnasium(env):
    """Consecutive steps without setting the state: rounding errors do not build up."""
    for seed in range(20):
        state = CartPole().reset(np.array([seed]))
        generator = np.random.default_rng(seed)
        env.reset(seed=seed)
        for _ in range(500):
            action = generator.integers(2, size=1)
            state, cost, done = CartPole().step(state, action)
            _, reward, terminated, _, _ = env.step(int(action[0]))
            np.testing.assert_allclose(state[0], env.state, rtol=0, atol=1e-12)
            assert (-cost[0], done[0]) == (reward, terminated)
            if terminated:
                break
        assert terminated


def test_cartpole_simulator_has_gymnasium_spaces_and_horizon(env):
    assert CartPole().observation_space == env.observation_space
    assert CartPole().action_space == env.action_space
    assert CartPole().horizon == gymnasium.spec("CartPole-v1").max_episode_steps == 500
