"""Acrobot swing-up: Gymnasium's `Acrobot-v1`, step for step, over batches and inside compiled loops."""

from dataclasses import dataclass
from math import ceil, cos, pi, sin

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import njit_cached
from aggrevated.kernels.numpy_rng import sample_uniform, seed_pcg64

# Both links: length 1 m, mass 1 kg, center of mass at 0.5 m, moment of inertia 1 kg·m².
LENGTH = 1.0
MASS = 1.0
CENTER = 0.5
INERTIA = 1.0
GRAVITY = 9.8
DT = 0.2
HALF_DT = DT / 2
SIXTH_DT = DT / 6.0
TURN = 2 * pi
QUARTER_TURN = pi / 2
FASTEST1 = 4 * pi
FASTEST2 = 9 * pi
PULL2 = MASS * CENTER * GRAVITY
PULL1 = (MASS * CENTER + MASS * LENGTH) * GRAVITY
QUARTER = MASS * CENTER**2
FIVE_QUARTERS = MASS * CENTER**2 + INERTIA
BOUNDS = np.array([1, 1, 1, 1, FASTEST1, FASTEST2], np.float32)
# sizes of a state and of an observation
NUMBERS = 4
SEEN = 6


@dataclass(frozen=True)
class Acrobot:
    """The Acrobot swing-up as a batched simulator; each step with the tip below the line costs 1.

    A state is float64 [4]: both angles in rad, then both velocities in rad/s.

    Args:
        horizon: H, the number of steps after which an episode is cut.
        name: name in messages and files.

    Example:
        >>> simulator = Acrobot(horizon=100)
        >>> simulator.observe(simulator.reset(np.arange(2))).shape
        (2, 6)
    """

    horizon: int = 200
    name: str = "acrobot"
    action_space = Discrete(3)
    observation_space = Box(-BOUNDS, BOUNDS)

    def reset(self, seeds: Array) -> Array:
        """Return the states of `Acrobot-v1` after `reset(seed=seed)`, bit for bit.

        Args:
            seeds: one seed per episode, [n].

        Returns:
            States, float64 [n, 4], rounded to float32 as Gymnasium does.
        """
        states = np.empty((len(seeds), NUMBERS))
        _reset_states(np.asarray(seeds, np.uint64), states)
        return states

    def observe(self, state: Array) -> Array:
        """Return cosine and sine of both angles, and both velocities in rad/s.

        Args:
            state: states, float64 [n, 4].

        Returns:
            Observations, float32 [n, 6].
        """
        observation = np.empty((len(state), SEEN), np.float32)
        _observe_states(np.ascontiguousarray(state), observation)
        return observation

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Advance by one Runge–Kutta step of 0.2 s, with a torque of −1, 0 or +1 N·m between the links.

        Args:
            state: states, float64 [n, 4].
            action: 0, 1 or 2 for a torque of −1, 0 or +1, [n].

        Returns:
            (next states [n, 4], costs [n], done [n]).
        """
        next_state = np.array(state, order="C")
        done = np.empty(len(state), np.bool_)
        _step_states(next_state, action, done)
        return next_state, 1.0 - done, done


@njit_cached
def reset_row(seed, state):  # type: ignore[no-untyped-def]
    """Write the first state [4] of the episode with this seed."""
    generator = np.empty(4, np.uint64)
    seed_pcg64(seed, generator)
    for i in range(NUMBERS):
        state[i] = np.float32(sample_uniform(generator, -0.1, 0.1))


@njit_cached
def observe_row(state, observation):  # type: ignore[no-untyped-def]
    """Write the observation of a state, float32 [6]."""
    observation[0] = cos(state[0])
    observation[1] = sin(state[0])
    observation[2] = cos(state[1])
    observation[3] = sin(state[1])
    observation[4] = state[2]
    observation[5] = state[3]


@njit_cached
def step_row(state, action):  # type: ignore[no-untyped-def]
    """Overwrite a state [4] with the next one and return whether the episode has ended."""
    p, q, u, v = state
    torque = action - 1.0
    a1, b1 = compute_accelerations(p, q, u, v, torque)
    u2 = u + HALF_DT * a1
    v2 = v + HALF_DT * b1
    a2, b2 = compute_accelerations(p + HALF_DT * u, q + HALF_DT * v, u2, v2, torque)
    u3 = u + HALF_DT * a2
    v3 = v + HALF_DT * b2
    a3, b3 = compute_accelerations(p + HALF_DT * u2, q + HALF_DT * v2, u3, v3, torque)
    u4 = u + DT * a3
    v4 = v + DT * b3
    a4, b4 = compute_accelerations(p + DT * u3, q + DT * v3, u4, v4, torque)
    p += SIXTH_DT * (u + 2.0 * u2 + 2.0 * u3 + u4)
    q += SIXTH_DT * (v + 2.0 * v2 + 2.0 * v3 + v4)
    u += SIXTH_DT * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    v += SIXTH_DT * (b1 + 2.0 * b2 + 2.0 * b3 + b4)
    p -= TURN * ceil((p - pi) / TURN)
    q -= TURN * ceil((q - pi) / TURN)
    state[0] = p
    state[1] = q
    state[2] = min(max(u, -FASTEST1), FASTEST1)
    state[3] = min(max(v, -FASTEST2), FASTEST2)
    return -cos(p) - cos(q + p) > 1.0


@njit_cached
def compute_accelerations(theta1, theta2, speed1, speed2, torque):  # type: ignore[no-untyped-def]
    """Return the two angular accelerations by the equations of Sutton and Barto's book.

    Factors of 1 are left out. Sums keep Gymnasium's order, and so its bits.
    """
    cosine2 = cos(theta2)
    sine2 = sin(theta2)
    d1 = QUARTER + (FIVE_QUARTERS + cosine2) + 1.0 + 1.0
    d2 = QUARTER + CENTER * cosine2 + 1.0
    phi2 = PULL2 * cos(theta1 + theta2 - QUARTER_TURN)
    swing1 = CENTER * (speed1 * speed1) * sine2
    swing2 = CENTER * (speed2 * speed2) * sine2
    phi1 = PULL1 * cos(theta1 - QUARTER_TURN) - (swing2 + speed2 * speed1 * sine2) + phi2
    acceleration2 = (torque + d2 / d1 * phi1 - swing1 - phi2) / (FIVE_QUARTERS - d2 * d2 / d1)
    return -(d2 * acceleration2 + phi1) / d1, acceleration2


@njit_cached
def _reset_states(seeds, states):  # type: ignore[no-untyped-def]
    for i in range(len(seeds)):
        reset_row(seeds[i], states[i])


@njit_cached
def _observe_states(states, observations):  # type: ignore[no-untyped-def]
    for i in range(len(states)):
        observe_row(states[i], observations[i])


@njit_cached
def _step_states(states, actions, done):  # type: ignore[no-untyped-def]
    for i in range(len(states)):
        done[i] = step_row(states[i], actions[i])
