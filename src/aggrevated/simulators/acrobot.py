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
LIMITS = MAX_VELOCITY[:, None]
# The constants of `step` and `derivative` as arrays without axes: NumPy takes 0.3 µs for an operation with one, 0.5
# with a float, and there are a hundred in a step.
STEP = [np.array(c) for c in (DT, DT / 2, DT / 6.0, 1.0, 2.0, pi, 2 * pi)]
PULL2 = MASS * CENTRE * GRAVITY
PULL1 = (MASS * CENTRE + MASS * LENGTH) * GRAVITY
SLOPE = [np.array(c) for c in (INERTIA, CENTRE, MASS * CENTRE**2, MASS * CENTRE**2 + INERTIA, PULL1, PULL2, pi / 2)]
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
        dt, half_dt, sixth_dt, one, two, half_turn, turn = STEP
        y, torque = np.ascontiguousarray(state.T), action - one
        k1 = derivative(y, torque)
        k2 = derivative(y + half_dt * k1, torque)
        k3 = derivative(y + half_dt * k2, torque)
        k4 = derivative(y + dt * k3, torque)
        following = y + sixth_dt * (k1 + two * k2 + two * k3 + k4)
        angles, velocities = following[:2], following[2:]
        angles -= turn * np.ceil((angles - half_turn) / turn)
        np.minimum(np.maximum(velocities, -LIMITS, out=velocities), LIMITS, out=velocities)
        done = -np.cos(angles[0]) - np.cos(angles[1] + angles[0]) > one
        return np.ascontiguousarray(following.T), one - done, done


def derivative(y: Array, torque: Array) -> Array:
    """The time derivative [4, n] of the state [4, n]: the equations of Sutton and Barto's book.

    Factors of 1 are left out; sums keep Gymnasium's order, and so its bits.
    """
    one, half, quarter, five_quarters, pull1, pull2, quarter_turn = SLOPE
    theta1, theta2, speed1, speed2 = y
    cosine2, sine2 = np.cos(theta2), np.sin(theta2)
    d1 = quarter + (five_quarters + cosine2) + one + one
    d2 = quarter + half * cosine2 + one
    phi2 = pull2 * np.cos(theta1 + theta2 - quarter_turn)
    swing1, swing2 = half * y[2:] ** 2 * sine2
    phi1 = pull1 * np.cos(theta1 - quarter_turn) - (swing2 + speed2 * speed1 * sine2) + phi2
    slope = np.empty_like(y)
    slope[:2] = y[2:]
    slope[3] = acceleration2 = (torque + d2 / d1 * phi1 - swing1 - phi2) / (five_quarters - d2 * d2 / d1)
    slope[2] = -(d2 * acceleration2 + phi1) / d1
    return slope
