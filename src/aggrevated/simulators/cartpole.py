"""CartPole balancing: Gymnasium's `CartPole-v1`, step for step, over batches and inside compiled loops."""

from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import njit_cached
from aggrevated.kernels.numpy_rng import sample_uniform, seed_pcg64

GRAVITY = 9.8
CART_MASS = 1.0
POLE_MASS = 0.1
HALF_LENGTH = 0.5
FORCE = 10.0
TAU = 0.02
TOTAL_MASS = POLE_MASS + CART_MASS
POLE_MASS_LENGTH = POLE_MASS * HALF_LENGTH
ANGLE_LIMIT = 12 * 2 * pi / 360
POSITION_LIMIT = 2.4
FOUR_THIRDS = 4.0 / 3.0
BOUNDS = np.array([2 * POSITION_LIMIT, np.inf, 2 * ANGLE_LIMIT, np.inf], np.float32)
# sizes of a state and of an observation
NUMBERS = 4
SEEN = 4


@dataclass(frozen=True)
class CartPole:
    """CartPole balancing as a batched simulator; each step with the pole up costs −1.

    A state is float64 [4]: position in m, velocity in m/s, angle in rad, angular velocity in rad/s.

    Args:
        horizon: H, the number of steps after which an episode is cut.
        name: name in messages and files.

    Example:
        >>> simulator = CartPole(horizon=200)
        >>> simulator.observe(simulator.reset(np.arange(2))).shape
        (2, 4)
    """

    horizon: int = 500
    name: str = "cartpole"
    action_space = Discrete(2)
    observation_space = Box(-BOUNDS, BOUNDS)

    def reset(self, seeds: Array) -> Array:
        """Return the states of `CartPole-v1` after `reset(seed=seed)`, bit for bit.

        Args:
            seeds: one seed per episode, [n].

        Returns:
            States, float64 [n, 4].
        """
        states = np.empty((len(seeds), NUMBERS))
        _reset_states(np.asarray(seeds, np.uint64), states)
        return states

    def observe(self, state: Array) -> Array:
        """Return the whole states as observations.

        Args:
            state: states, float64 [n, 4].

        Returns:
            Observations, float32 [n, 4].
        """
        return state.astype(np.float32)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Advance by one Euler step of 20 ms with a force of −10 or +10 N on the cart.

        Args:
            state: states, float64 [n, 4].
            action: 0 or 1 for a force of −10 or +10 N, [n].

        Returns:
            (next states [n, 4], costs [n], done [n]).
        """
        next_state = np.array(state, order="C")
        done = np.empty(len(state), np.bool_)
        _step_states(next_state, action, done)
        return next_state, np.full(len(state), -1.0), done


@njit_cached
def reset_row(seed, state):  # type: ignore[no-untyped-def]
    """Write the first state [4] of the episode with this seed."""
    generator = np.empty(4, np.uint64)
    seed_pcg64(seed, generator)
    for i in range(NUMBERS):
        state[i] = sample_uniform(generator, -0.05, 0.05)


@njit_cached
def observe_row(state, observation):  # type: ignore[no-untyped-def]
    """Write the observation of a state, float32 [4]."""
    for i in range(NUMBERS):
        observation[i] = state[i]


@njit_cached
def step_row(state, action):  # type: ignore[no-untyped-def]
    """Overwrite a state [4] with the next one and return whether the episode has ended."""
    x, x_dot, theta, theta_dot = state
    cosine = cos(theta)
    sine = sin(theta)
    force = FORCE if action == 1 else -FORCE
    temp = (force + POLE_MASS_LENGTH * (theta_dot * theta_dot) * sine) / TOTAL_MASS
    theta_acc = (GRAVITY * sine - cosine * temp) / (
        HALF_LENGTH * (FOUR_THIRDS - POLE_MASS * (cosine * cosine) / TOTAL_MASS)
    )
    x_acc = temp - POLE_MASS_LENGTH * theta_acc * cosine / TOTAL_MASS
    state[0] = x + TAU * x_dot
    state[1] = x_dot + TAU * x_acc
    state[2] = theta + TAU * theta_dot
    state[3] = theta_dot + TAU * theta_acc
    return abs(state[0]) > POSITION_LIMIT or abs(state[2]) > ANGLE_LIMIT


@njit_cached
def _reset_states(seeds, states):  # type: ignore[no-untyped-def]
    for i in range(len(seeds)):
        reset_row(seeds[i], states[i])


@njit_cached
def _step_states(states, actions, done):  # type: ignore[no-untyped-def]
    for i in range(len(states)):
        done[i] = step_row(states[i], actions[i])
