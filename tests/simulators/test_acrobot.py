"""Acrobot against Gymnasium's `Acrobot-v1`."""

import gymnasium
import numpy as np
import pytest

from aggrevated.simulators.acrobot import Acrobot

STEPS = 10_000


@pytest.fixture(scope="module")
def env():
    return gymnasium.make("Acrobot-v1", disable_env_checker=True).unwrapped


def sample_states(generator):
    """Return states: a third hanging, a third close to ±π and to upright, a third near the speed limits."""
    share = np.arange(STEPS) % 3
    states = generator.uniform(-1, 1, (STEPS, 4)) * [1.5, 1.5, 3.0, 6.0]
    close = share == 1
    sign = generator.choice([-1, 1], (STEPS, 2))
    states[close, :2] = (sign * generator.uniform(np.pi - 0.2, np.pi, (STEPS, 2)))[close]
    states[share == 2] = generator.uniform(-1, 1, ((share == 2).sum(), 4)) * [np.pi, np.pi, 4 * np.pi, 9 * np.pi]
    return states


def test_acrobot_simulator_resets_match_gymnasium_bit_for_bit(env):
    seeds = np.array([0, 1, 2, 12345, 2**32 + 7, 2**63 + 11], dtype=np.uint64)
    states = Acrobot().reset(seeds)
    for seed, state, observed in zip(seeds, states, Acrobot().observe(states), strict=True):
        observation, _ = env.reset(seed=int(seed))
        np.testing.assert_array_equal(state, env.state)
        np.testing.assert_allclose(observed, observation, rtol=0, atol=6e-8)
        assert observed.dtype == observation.dtype


def test_acrobot_simulator_steps_from_any_state_match_gymnasium(env):
    generator = np.random.default_rng(0)
    states = sample_states(generator)
    actions = generator.integers(3, size=STEPS)
    following, cost, done = Acrobot().step(states, actions)
    observed = Acrobot().observe(following)
    env.reset(seed=0)
    ended = 0
    for i in range(STEPS):
        env.state = states[i]
        observation, reward, terminated, _, _ = env.step(int(actions[i]))
        np.testing.assert_allclose(following[i], env.state, rtol=0, atol=1e-12)
        np.testing.assert_allclose(observed[i], observation, rtol=0, atol=1e-12)
        assert (-cost[i], done[i]) == (reward, terminated)
        ended += terminated
    assert 500 < ended < 9500  # both outcomes occurred
    limits = np.array([4 * np.pi, 9 * np.pi])
    assert (np.abs(following[:, 2:]) == limits).any(axis=0).all()  # both speeds were clipped
    assert (np.abs(following[:, :2]) <= np.pi).all()
    assert (np.abs(following[:, :2] - states[:, :2]) > np.pi).any(axis=0).all()  # both angles wrapped around


def test_acrobot_simulator_episode_matches_gymnasium(env):
    """60 steps without setting the state: Acrobot is chaotic, so each step must be right to the last bits."""
    state = Acrobot().reset(np.array([3]))
    generator = np.random.default_rng(0)
    env.reset(seed=3)
    for _ in range(60):
        action = generator.integers(3, size=1)
        state, _, done = Acrobot().step(state, action)
        env.step(int(action[0]))
        np.testing.assert_allclose(state[0], env.state, rtol=0, atol=1e-9)
        assert not done[0]


def test_acrobot_simulator_has_gymnasium_spaces_and_the_papers_horizon(env):
    assert Acrobot().observation_space == env.observation_space
    assert Acrobot().action_space == env.action_space
    assert Acrobot().horizon == 200
