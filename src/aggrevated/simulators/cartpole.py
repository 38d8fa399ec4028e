"""CartPole balancing: Gymnasium's `CartPole-v1`, step for step, over a batch."""

from dataclasses import dataclass
from math import pi

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.seeding import np_random

from aggrevated.arrays import Array

GRAVITY, CART_MASS, POLE_MASS, HALF_LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
TOTAL_MASS = POLE_MASS + CART_MASS
POLE_MASS_LENGTH = POLE_MASS * HALF_LENGTH
ANGLE_LIMIT, POSITION_LIMIT = 12 * 2 * pi / 360, 2.4
BOUNDS = np.array([2 * POSITION_LIMIT, np.inf, 2 * ANGLE_LIMIT, np.inf], np.float32)


@dataclass(frozen=True)
class CartPole:
    """State [n, 4] float64: position, velocity, angle, angular velocity. Cost −1 for each step the pole is up."""

    horizon: int = 500
    name: str = "cartpole"
    action_space = Discrete(2)
    observation_space = Box(-BOUNDS, BOUNDS)

    def initial(self, seeds: Array) -> Array:
        """The states of `CartPole-v1` after `reset(seed=seed)`, bit for bit."""
        return np.stack([np_random(int(seed))[0].uniform(-0.05, 0.05, 4) for seed in seeds])

    def observe(self, state: Array) -> Array:
        """[n, 4] float32: the whole state."""
        return state.astype(np.float32)

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """One Euler step of 20 ms with a push of ±10 N."""
        x, x_dot, theta, theta_dot = state.T
        force = (action * 2 - 1) * FORCE
        cosine, sine = np.cos(theta), np.sin(theta)
        temp = (force + POLE_MASS_LENGTH * np.square(theta_dot) * sine) / TOTAL_MASS
        theta_acc = (GRAVITY * sine - cosine * temp) / (
            HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * np.square(cosine) / TOTAL_MASS)
        )
        x_acc = temp - POLE_MASS_LENGTH * theta_acc * cosine / TOTAL_MASS
        following = np.empty_like(state)
        following[:, 0] = x + TAU * x_dot
        following[:, 1] = x_dot + TAU * x_acc
        following[:, 2] = theta + TAU * theta_dot
        following[:, 3] = theta_dot + TAU * theta_acc
        done = (np.abs(following[:, 0]) > POSITION_LIMIT) | (np.abs(following[:, 2]) > ANGLE_LIMIT)
        return following, np.full(len(state), -1.0), done
