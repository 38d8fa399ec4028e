"""The practical limit of a roll-in on one core: one numba loop over episodes and time with simulator and policy.

It stores what `aggrevated.rollout.roll_in` stores (states, observations, actions, costs). Its numbers differ: it uses
another generator, float32 exponentials and fused multiply-adds.
"""

from math import ceil, cos, exp, pi, sin

import numpy as np
from numba import njit

GRAVITY = 9.8
TOTAL_MASS = 1.1
POLE_MASS = 0.1
POLE_MASS_LENGTH = 0.05
HALF_LENGTH = 0.5
FORCE = 10.0
TAU = 0.02
ANGLE_LIMIT = 12 * 2 * pi / 360
POSITION_LIMIT = 2.4
DT = 0.2
MOST_SPEED1 = 4 * pi
MOST_SPEED2 = 9 * pi

fast = njit(fastmath=True)


@fast
def choose(random, observation, w1, b1, w2, b2, layer, logits):
    """Sample from softmax(W₂ᵀ relu(W₁ᵀ o + b₁) + b₂) by inverting the cumulative distribution."""
    actions = len(b2)
    hidden = len(b1)
    layer[:] = b1
    for i in range(len(observation)):
        for j in range(hidden):
            layer[j] += observation[i] * w1[i, j]
    for a in range(actions):
        logits[a] = b2[a]
        for j in range(hidden):
            logits[a] += max(layer[j], np.float32(0.0)) * w2[a, j]
    top = logits.max()
    total = np.float32(0.0)
    for a in range(actions):
        total += np.float32(exp(logits[a] - top))
        logits[a] = total
    drawn = np.float32(random.random()) * total
    for a in range(actions - 1):
        if drawn < logits[a]:
            return a
    return actions - 1


@fast
def cartpole_roll_in(random, count, horizon, w1, b1, w2, b2):
    """Return (states, observations, actions, costs, lengths) of `count` episodes of CartPole."""
    states = np.zeros((count, horizon, 4))
    observations = np.zeros((count, horizon, 4), np.float32)
    actions = np.zeros((count, horizon), np.int64)
    costs = np.zeros((count, horizon))
    lengths = np.zeros(count, np.int64)
    layer = np.empty_like(b1)
    logits = np.empty_like(b2)
    for k in range(count):
        x, x_dot, theta, theta_dot = random.uniform(-0.05, 0.05, 4)
        for t in range(horizon):
            states[k, t, 0] = x
            states[k, t, 1] = x_dot
            states[k, t, 2] = theta
            states[k, t, 3] = theta_dot
            for i in range(4):
                observations[k, t, i] = states[k, t, i]
            action = choose(random, observations[k, t], w1, b1, w2, b2, layer, logits)
            actions[k, t] = action
            costs[k, t] = -1.0
            cosine = cos(theta)
            sine = sin(theta)
            push = (2 * action - 1) * FORCE
            temp = (push + POLE_MASS_LENGTH * theta_dot * theta_dot * sine) / TOTAL_MASS
            theta_acc = (GRAVITY * sine - cosine * temp) / (
                HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * cosine * cosine / TOTAL_MASS)
            )
            x_acc = temp - POLE_MASS_LENGTH * theta_acc * cosine / TOTAL_MASS
            x = x + TAU * x_dot
            x_dot = x_dot + TAU * x_acc
            theta = theta + TAU * theta_dot
            theta_dot = theta_dot + TAU * theta_acc
            lengths[k] = t + 1
            if abs(x) > POSITION_LIMIT or abs(theta) > ANGLE_LIMIT:
                break
    return states, observations, actions, costs, lengths


@fast
def slope(theta1, theta2, speed1, speed2, torque):
    """Return both angular accelerations: the equations of Sutton and Barto's book with all lengths and masses 1."""
    cosine2 = cos(theta2)
    sine2 = sin(theta2)
    d1 = 3.5 + cosine2
    d2 = 1.25 + 0.5 * cosine2
    phi2 = 0.5 * GRAVITY * sin(theta1 + theta2)
    phi1 = -0.5 * speed2 * speed2 * sine2 - speed2 * speed1 * sine2 + 1.5 * GRAVITY * sin(theta1) + phi2
    acceleration2 = (torque + d2 / d1 * phi1 - 0.5 * speed1 * speed1 * sine2 - phi2) / (1.25 - d2 * d2 / d1)
    return -(d2 * acceleration2 + phi1) / d1, acceleration2


@fast
def runge_kutta(p, q, u, v, torque):
    """Return the state after one step of 0.2 s from angles p, q and velocities u, v."""
    a1, b1 = slope(p, q, u, v, torque)
    u2 = u + DT / 2 * a1
    v2 = v + DT / 2 * b1
    a2, b2 = slope(p + DT / 2 * u, q + DT / 2 * v, u2, v2, torque)
    u3 = u + DT / 2 * a2
    v3 = v + DT / 2 * b2
    a3, b3 = slope(p + DT / 2 * u2, q + DT / 2 * v2, u3, v3, torque)
    u4 = u + DT * a3
    v4 = v + DT * b3
    a4, b4 = slope(p + DT * u3, q + DT * v3, u4, v4, torque)
    p += DT / 6 * (u + 2 * u2 + 2 * u3 + u4)
    q += DT / 6 * (v + 2 * v2 + 2 * v3 + v4)
    u += DT / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    v += DT / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
    p -= 2 * pi * ceil((p - pi) / (2 * pi))
    q -= 2 * pi * ceil((q - pi) / (2 * pi))
    return p, q, min(max(u, -MOST_SPEED1), MOST_SPEED1), min(max(v, -MOST_SPEED2), MOST_SPEED2)


@fast
def acrobot_roll_in(random, count, horizon, w1, b1, w2, b2):
    """Return (states, observations, actions, costs, lengths) of `count` episodes of Acrobot."""
    states = np.zeros((count, horizon, 4))
    observations = np.zeros((count, horizon, 6), np.float32)
    actions = np.zeros((count, horizon), np.int64)
    costs = np.zeros((count, horizon))
    lengths = np.zeros(count, np.int64)
    layer = np.empty_like(b1)
    logits = np.empty_like(b2)
    for k in range(count):
        p, q, u, v = random.uniform(-0.1, 0.1, 4)
        for t in range(horizon):
            states[k, t, 0] = p
            states[k, t, 1] = q
            states[k, t, 2] = u
            states[k, t, 3] = v
            seen = observations[k, t]
            seen[0] = cos(p)
            seen[1] = sin(p)
            seen[2] = cos(q)
            seen[3] = sin(q)
            seen[4] = u
            seen[5] = v
            action = choose(random, seen, w1, b1, w2, b2, layer, logits)
            p, q, u, v = runge_kutta(p, q, u, v, action - 1.0)
            done = -cos(p) - cos(p + q) > 1.0
            actions[k, t] = action
            costs[k, t] = 0.0 if done else 1.0
            lengths[k] = t + 1
            if done:
                break
    return states, observations, actions, costs, lengths
