"""Acrobot swing-up: Gymnasium's `Acrobot-v1`, step for step, over a batch."""

from dataclasses import dataclass
from math import pi

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.seeding import np_random

from aggrevated.arrays import Array

# Both links: length 1 m, mass 1 kg, centre of mass at 0.5 m, moment of inertia 1.
LENGTH, MASS, CENTRE, INERTIA, GRAVITY, DT = 1.0, 1.0, 0.5, 1.0, 9.8, 0.2
MAX_VELOCITY = np.array([4 * pi, 9 * pi])
BOUNDS = np.array([1, 1, 1, 1, *MAX_VELOCITY], np.float32)


@dataclass(frozen=True)
class Acrobot:
    """State [n, 4] float64: the two angles and their velocities. Cost 1 for each step the tip is below the line."""

    horizon: int = 200
    name: str = "acrobot"
    action_space = Discrete(3)
    observation_space = Box(-BOUNDS, BOUNDS)

    def initial(self, seeds: Array) -> Array:
        """The states of `Acrobot-v1` after `reset(seed=seed)`, bit for bit (it rounds them to float32)."""
        drawn = np.stack([np_random(int(seed))[0].uniform(-0.1, 0.1, 4) for seed in seeds])
        return drawn.astype(np.float32).astype(np.float64)

    def observe(self, state: Array) -> Array:
        """[n, 6] float32: cosine and sine of both angles, and both velocities."""
        observation = np.empty((len(state), 6), np.float32)
        observation[:, 0:4:2] = np.cos(state[:, :2])
        observation[:, 1:4:2] = np.sin(state[:, :2])
        observation[:, 4:] = state[:, 2:]
        return observation

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """One Runge–Kutta step of 0.2 s with a torque of −1, 0 or +1 on the joint between the links."""
        y, torque = state.T, action - 1.0
        k1 = derivative(y, torque)
        k2 = derivative(y + DT / 2 * k1, torque)
        k3 = derivative(y + DT / 2 * k2, torque)
        k4 = derivative(y + DT * k3, torque)
        following = (y + DT / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)).T
        angles = following[:, :2]
        angles -= 2 * pi * np.ceil((angles - pi) / (2 * pi))
        np.clip(following[:, 2:], -MAX_VELOCITY, MAX_VELOCITY, out=following[:, 2:])
        done = -np.cos(angles[:, 0]) - np.cos(angles[:, 1] + angles[:, 0]) > 1.0
        return following, 1.0 - done, done


def derivative(y: Array, torque: Array) -> Array:
    """The time derivative [4, n] of the state [4, n]: the equations of Sutton and Barto's book."""
    theta1, theta2, speed1, speed2 = y
    cosine2, sine2 = np.cos(theta2), np.sin(theta2)
    d1 = MASS * CENTRE**2 + MASS * (LENGTH**2 + CENTRE**2 + 2 * LENGTH * CENTRE * cosine2) + INERTIA + INERTIA
    d2 = MASS * (CENTRE**2 + LENGTH * CENTRE * cosine2) + INERTIA
    phi2 = MASS * CENTRE * GRAVITY * np.cos(theta1 + theta2 - pi / 2)
    phi1 = (
        -MASS * LENGTH * CENTRE * speed2**2 * sine2
        - 2 * MASS * LENGTH * CENTRE * speed2 * speed1 * sine2
        + (MASS * CENTRE + MASS * LENGTH) * GRAVITY * np.cos(theta1 - pi / 2)
        + phi2
    )
    acceleration2 = (torque + d2 / d1 * phi1 - MASS * LENGTH * CENTRE * speed1**2 * sine2 - phi2) / (
        MASS * CENTRE**2 + INERTIA - d2**2 / d1
    )
    slope = np.empty_like(y)
    slope[0], slope[1] = speed1, speed2
    slope[2], slope[3] = -(d2 * acceleration2 + phi1) / d1, acceleration2
    return slope
