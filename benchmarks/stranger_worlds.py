"""Environments and experts as users write them, for strangers.py, without knowledge of this library.

Each has a difficulty for an adapter, which its docstring names.
"""

import random

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple


class Warehouse(gymnasium.Env):
    """Fetch a parcel and bring it home, on 5 × 5. Dict observations, MultiDiscrete actions that start at −1."""

    observation_space = Dict(
        {"robot": Box(0, 4, (2,), np.int64), "parcel": MultiDiscrete([5, 5]), "carries": MultiBinary(1)}
    )
    action_space = MultiDiscrete([3, 3], start=[-1, -1])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.robot, self.parcel = self.np_random.integers(5, size=2), self.np_random.integers(5, size=2)
        self.carries = False
        return self.seen(), {}

    def step(self, action):
        self.robot = np.clip(self.robot + action, 0, 4)
        if (self.robot == self.parcel).all():
            self.carries = True
        home = self.carries and not self.robot.any()
        return self.seen(), 10.0 if home else -1.0, home, False, {}

    def seen(self):
        return {"robot": self.robot, "parcel": self.parcel, "carries": np.array([self.carries], np.int8)}


def fetch(observation):
    """Step towards the parcel, or home."""
    goal = np.zeros(2, int) if observation["carries"][0] else np.asarray(observation["parcel"])
    return np.sign(goal - observation["robot"])


class Nim(gymnasium.Env):
    """Take 1 to 3 of the stones; the last one wins. Tuple observations, action masks, short episodes."""

    observation_space = Tuple((Discrete(22), Box(0.0, 1.0, (1,), np.float32)))
    action_space = Discrete(3, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.stones = int(self.np_random.integers(8, 22))
        return self.seen(), self.info()

    def step(self, action):
        assert 1 <= action <= min(self.stones, 3)
        self.stones -= int(action)
        if self.stones == 0:
            return self.seen(), 1, True, False, self.info()
        clever = self.stones % 4 or self.np_random.integers(1, min(self.stones, 3) + 1)
        self.stones -= int(
            clever if self.np_random.random() < 0.5 else self.np_random.integers(1, min(self.stones, 3) + 1)
        )
        return self.seen(), -1 if self.stones == 0 else 0, self.stones == 0, False, self.info()

    def seen(self):
        return self.stones, np.array([self.stones / 21], np.float32)

    def info(self):
        return {"action_mask": np.arange(1, 4) <= max(self.stones, 1)}


class NimPlayer:
    """Expert that leaves a multiple of 4 where possible."""

    def act(self, observation):
        stones = int(np.asarray(observation[0]))
        return stones % 4 or 1


class Spot(gymnasium.Env):
    """Move the cross onto the square. Pictures of 16 × 16 bytes."""

    observation_space = Box(0, 255, (16, 16), np.uint8)
    action_space = Discrete(5)
    moves = np.array([[0, 0], [-2, 0], [2, 0], [0, -2], [0, 2]])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cross, self.square = (2 * self.np_random.integers(1, 7, size=2) for _ in range(2))
        self.t = 0
        return self.drawn(), {}

    def step(self, action):
        self.cross = np.clip(self.cross + self.moves[action], 2, 12)
        self.t += 1
        there = bool((self.cross == self.square).all())
        return self.drawn(), 5.0 * there - 1.0, there, self.t >= 20, {}

    def drawn(self):
        picture = np.zeros((16, 16), np.uint8)
        (y, x) = self.square
        (v, u) = self.cross
        picture[y - 1 : y + 2, x - 1 : x + 2] = 120
        picture[v - 2 : v + 3, u] = 255
        picture[v, u - 2 : u + 3] = 255
        return picture


def steer(picture):
    """Read the picture: the cross is white, the square grey."""
    white = np.argwhere(picture == 255)
    grey = np.argwhere(picture == 120)
    if not len(grey):
        return 0
    cross = (white.min(axis=0) + white.max(axis=0)) / 2
    away = grey.mean(axis=0) - cross
    axis = int(np.abs(away).argmax())
    return 0 if abs(away[axis]) < 0.5 else 1 + 2 * axis + int(away[axis] > 0)


class Treasury(gymnasium.Env):
    """Keep reserves of a million near a target by buying and selling. Huge and tiny scales, and Python lists."""

    observation_space = Box(-np.inf, np.inf, (3,), np.float64)
    action_space = Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.reserve = 1e6 + 3e5 * self.np_random.standard_normal()
        self.rate = 1e-6
        self.t = 0
        return [self.reserve, self.rate, 5], {}

    def step(self, action):
        self.t += 1
        self.rate = 0.8 * self.rate + 2e-7 * self.np_random.standard_normal()
        self.reserve *= 1 + 1e5 * self.rate * (self.np_random.random() - 0.5)
        self.reserve += (int(action) - 1) * 1e5
        return [self.reserve, self.rate, 5], -1e3 * abs(self.reserve / 1e6 - 1), False, self.t == 50, {}


class Banker:
    """Expert with the cost of the next step of each action, which is greedy and good."""

    def q(self, observations):
        after = observations[:, :1] + 1e5 * np.array([-1.0, 0.0, 1.0])
        return 1e3 * np.abs(after / 1e6 - 1)


class Machines(gymnasium.Env):
    """Repair the most worn machine. Another generator, hidden counters, random rewards, no time limit."""

    observation_space = MultiDiscrete([6, 6, 6])
    action_space = Discrete(4)

    def reset(self, *, seed=None, options=None):
        self.rng = random.Random(seed)
        self.wear = [self.rng.randrange(3) for _ in range(3)]
        self.hidden = 0
        return np.array(self.wear), {}

    def step(self, action):
        self.hidden += 1
        reward = 0.0
        for i in range(3):
            if self.rng.random() < 0.25 + 0.1 * (self.hidden % 7 == 0):
                self.wear[i] = min(self.wear[i] + 1, 5)
            reward += 1.0 if self.rng.random() < 1 - self.wear[i] / 5 else 0.0
        if action < 3:
            self.wear[action] = 0
            reward = reward - 0.5
        return np.array(self.wear), reward, False, False, {}


def repair(observation):
    """Repair the worst machine, if it is bad enough."""
    worst = int(np.argmax(observation))
    return worst if observation[worst] >= 2 else 3


class Lift(gymnasium.Env):
    """Go to the floor that calls. Integer observations; a reset without seeds."""

    observation_space = Box(0, 9, (2,), np.int32)
    action_space = Discrete(3)

    def reset(self):
        self.at, self.call = (int(self.np_random.integers(10)) for _ in range(2))
        self.served = 0
        return np.array([self.at, self.call], np.int32), {}

    def step(self, action):
        self.at = min(max(self.at + int(action) - 1, 0), 9)
        reward = -1.0
        if self.at == self.call:
            self.call = int(self.np_random.integers(10))
            reward = 5.0
            self.served = self.served + 1
        return np.array([self.at, self.call], np.int32), reward, self.served == 5, False, {}


def towards(observation):
    """Go up, down, or wait."""
    return int(np.sign(observation[1] - observation[0])) + 1


class Thermostat(gymnasium.Env):
    """Two heaters for two rooms. Actions of shape [1, 2] with asymmetric bounds."""

    observation_space = Box(-50.0, 50.0, (2, 2), np.float32)
    action_space = Box(np.array([[0.0, -1.0]], np.float32), np.array([[10.0, 3.0]], np.float32))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.rooms, self.wanted = self.np_random.uniform(5, 25, 2), self.np_random.uniform(18, 22, 2)
        return self.seen(), {}

    def step(self, action):
        heat = np.clip(action, self.action_space.low, self.action_space.high).ravel()
        self.rooms = self.rooms + 0.1 * (10 - self.rooms) + heat * [0.3, 0.8] + 0.1 * (self.rooms[::-1] - self.rooms)
        self.rooms = self.rooms + 0.1 * self.np_random.standard_normal(2)
        cost = np.abs(self.rooms - self.wanted).sum() + 0.01 * heat @ heat
        return self.seen(), -float(cost), False, False, {}

    def seen(self):
        return np.stack([self.rooms, self.wanted]).astype(np.float32)


class Heating(torch.nn.Module):
    """Network with the required heating: the next temperatures are linear in the observation."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        with torch.no_grad():
            self.layer.weight[:] = torch.tensor([[-0.8, -0.1, 1.0, 0.0], [-0.1, -0.8, 0.0, 1.0]])
            self.layer.weight /= torch.tensor([[0.3], [0.8]])
            self.layer.bias[:] = torch.tensor([-1.0 / 0.3, -1.0 / 0.8])

    def forward(self, observations):
        return self.layer(observations.reshape(len(observations), -1))


class Blind(gymnasium.ObservationWrapper):
    """CartPole without velocities, which a learner must compute from the last frames."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = Box(-np.inf, np.inf, (2,), np.float32)

    def observation(self, observation):
        return observation[[0, 2]]


def stacked():
    """Return CartPole with four stacked frames. Wrappers with state."""
    env = Blind(gymnasium.make("CartPole-v1", max_episode_steps=200))
    return gymnasium.wrappers.FrameStackObservation(gymnasium.wrappers.TimeAwareObservation(env), 4)


def balance(observation):
    """Balance by differences of the last two frames."""
    (x0, a0) = observation[-2, :2]
    (x, a) = observation[-1, :2]
    return int(a + 0.1 * x + 10 * (a - a0) + 5 * (x - x0) > 0)


class Tracker(gymnasium.Env):
    """Follow a target with a vector of three. No time limit, and unbounded float64 actions."""

    observation_space = Box(-np.inf, np.inf, (6,))
    action_space = Box(-np.inf, np.inf, (3,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.target = self.np_random.normal(size=3), self.np_random.normal(size=3)
        return self.seen(), {}

    def step(self, action):
        self.place = self.place + np.clip(action, -0.5, 0.5)
        self.target = self.target + 0.1 * self.np_random.normal(size=3)
        return self.seen(), -float(np.abs(self.place - self.target).sum()), False, False, {}

    def seen(self):
        return np.concatenate([self.place, self.target]).astype(np.float32)


# Environments that must be refused.


class Unseeded(gymnasium.Env):
    """Draws from NumPy's global generator."""

    observation_space = Box(-5.0, 5.0, (1,))
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.random.normal(size=1).clip(-5, 5).astype(np.float32), {}  # noqa: NPY002

    def step(self, action):
        return np.random.normal(size=1).clip(-5, 5).astype(np.float32), 1.0, False, False, {}  # noqa: NPY002


class Old(Unseeded):
    """Steps return four values, as in old Gym."""

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 1.0, False, {}


class Worded(Old):
    """Observations are text."""

    observation_space = Text(10)


class Composed(Old):
    """Actions are a choice and a vector at once."""

    action_space = Dict({"gear": Discrete(3), "throttle": Box(0.0, 1.0, (1,))})


class NotANumber(Unseeded):
    """Observations are NaN."""

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.array([np.nan], np.float32), 1.0, False, False, {}


class Many(Old):
    """Millions of combinations of actions."""

    action_space = MultiDiscrete([100, 100, 100])


class Crashing(Unseeded):
    """A programming error."""

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.zeros(1, np.float32), 1.0 / (7 - self.t), False, False, {}


class Learning(gymnasium.wrappers.NormalizeObservation):
    """Statistics persist from episode to episode."""

    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"))


def first(observation):
    """Return the first action."""
    return 0
