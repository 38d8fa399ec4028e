"""Tasks as new users write them, for untuned.py: a tagger, a T-maze, a pendulum, a lunar lander; nothing is tuned."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated import ControlProblem, GymnasiumSimulator, Task

WORDS = 30
TAGS = 5
LONGEST = 12
SHORTEST = 4
RULE = np.random.default_rng(0).integers(TAGS, size=(WORDS, TAGS))  # the tag of a word and the previous tag


class Tagger:
    """Every seed is a new sentence. State: words, gold tags, length, position, previous tag."""

    name = "tagger"
    horizon = LONGEST
    action_space = Discrete(TAGS)
    observation_space = Box(0.0, 1.0, (2 * WORDS + TAGS + 1,))

    def reset(self, seeds):
        """Return sentences of random words with their gold tags."""
        generators = [np.random.default_rng(int(seed)) for seed in seeds]
        words = np.stack([own.integers(WORDS, size=LONGEST) for own in generators])
        lengths = np.array([own.integers(SHORTEST, LONGEST + 1) for own in generators])
        gold = np.zeros_like(words)
        before = np.zeros(len(seeds), int)
        for i in range(LONGEST):
            gold[:, i] = before = RULE[words[:, i], before]
        position = np.stack([lengths, 0 * lengths, TAGS + 0 * lengths], axis=1)
        return np.concatenate([words, gold, position], axis=1)

    def observe(self, state):
        """Return the word, the next word and the previous tag."""
        rows = np.arange(len(state))
        (length, t, before) = state[:, -3:].T
        one_hot = np.eye(WORDS, dtype=np.float32)
        after = one_hot[state[rows, np.minimum(t + 1, LONGEST - 1)]] * (t + 1 < length)[:, None]
        tags = np.eye(TAGS + 1, dtype=np.float32)[before]
        return np.concatenate([one_hot[state[rows, t]], after, tags], axis=1).astype(np.float32)

    def step(self, state, action):
        """A wrong tag costs 1."""
        following = state.copy()
        (length, t, _) = state[:, -3:].T
        following[:, -2] = t + 1
        following[:, -1] = action
        return following, (action != gold_of(state)).astype(float), t + 1 >= length


def gold_of(state):
    """Return the gold tag of the current word."""
    return state[np.arange(len(state)), LONGEST + state[:, -2]]


class Gold:
    """Expert that knows the gold tags."""

    name = "gold"

    def q(self, states):
        """A wrong tag costs 1, and nothing later."""
        return (np.arange(TAGS) != gold_of(states)[:, None]).astype(float)

    def act(self, states, t):
        """Return the gold tag."""
        return gold_of(states)


class TMaze:
    """Only the first observation has the side; 6 steps later the turn pays 1 or −1; any other step costs 0.1."""

    name = "t-maze"
    horizon = 20
    end = 6
    # ahead, left, right
    observation_space = Box(-1.0, 1.0, (2,))
    action_space = Discrete(3)

    def reset(self, seeds):
        """Return states at the beginning of the corridor, with the side left or right."""
        side = [2 * np.random.default_rng(int(seed)).integers(2) - 1 for seed in seeds]
        return np.stack([side, np.zeros(len(seeds), int)], axis=1)

    def observe(self, state):
        """Return the side at the beginning, and whether this is the end."""
        side, x = state.T
        return np.stack([np.where(x == 0, side, 0), x == self.end], axis=1).astype(np.float32)

    def step(self, state, action):
        """Step ahead, or turn."""
        (side, x) = state.T
        following = state.copy()
        turned = (x == self.end) & (action > 0)
        following[:, 1] += (x < self.end) & (action == 0)
        return following, np.where(turned, np.where((action == 1) == (side < 0), -1.0, 1.0), 0.1), turned


class Guide:
    """Expert that always knows the side."""

    name = "guide"

    def q(self, states):
        """Return the cost to the end of each action."""
        side, x = states.T
        v = 0.1 * (TMaze.end - np.arange(TMaze.end + 2)) - 1.0
        here = v[x]
        at_end = x == TMaze.end
        ahead = 0.1 + np.where(at_end, here, v[x + 1])
        turns = [np.where(at_end, np.where(right == (side < 0), -1.0, 1.0), 0.1 + here) for right in (True, False)]
        return np.stack([ahead, *turns], axis=1)

    def act(self, states, t):
        """Return the cheapest action."""
        return self.q(states).argmin(axis=1)


class Pendulum:
    """The physics of Gymnasium's Pendulum-v1, batched."""

    name = "pendulum"
    horizon = 200
    observation_space = Box(-8.0, 8.0, (3,))
    action_space = Box(-2.0, 2.0, (1,))

    def reset(self, seeds):
        """Return states with any angle and a small velocity."""
        return np.stack([np.random.default_rng(int(s)).uniform([-np.pi, -1.0], [np.pi, 1.0]) for s in seeds])

    def observe(self, state):
        """Return cosine, sine and velocity."""
        return np.stack([np.cos(state[:, 0]), np.sin(state[:, 0]), state[:, 1]], axis=1).astype(np.float32)

    def step(self, state, action):
        """Advance by a twentieth of a second."""
        torque = np.clip(action[:, 0], -2.0, 2.0)
        (angle, speed) = state.T
        cost = ((angle + np.pi) % (2 * np.pi) - np.pi) ** 2 + 0.1 * speed**2 + 0.001 * torque**2
        speed = np.clip(speed + (15.0 * np.sin(angle) + 3.0 * torque) * 0.05, -8.0, 8.0)
        return np.stack([angle + speed * 0.05, speed], axis=1), cost, np.zeros(len(state), bool)


class Energy:
    """Hand-written controller that first adds energy and then balances."""

    name = "energy"

    def act(self, states, t):
        """Return the torque."""
        angle = (states[:, 0] + np.pi) % (2 * np.pi) - np.pi
        speed = states[:, 1]
        energy = speed**2 / 6 + 5 * (np.cos(angle) - 1)
        pump = -np.sign(speed + 1e-9) * energy * 2.0
        balance = -(12.0 * angle + 2.5 * speed)
        return np.clip(np.where(np.cos(angle) > 0.8, balance, pump), -2.0, 2.0)[:, None]


class Heuristic:
    """Gymnasium's controller of the lander."""

    name = "heuristic"

    def __init__(self, simulator):
        """Store the simulator, as the controller needs observations."""
        from gymnasium.envs.box2d import lunar_lander

        self._simulator = simulator
        self._act = lunar_lander.heuristic
        self._environment = lunar_lander.LunarLander()

    def act(self, states, t):
        """Return the actions, state by state."""
        seen = self._simulator.observe(states)
        return np.array([self._act(self._environment, one) for one in seen], int)


def task(make, expert, **settings):
    """Return a task with the simulator, the expert and these settings."""
    problem = ControlProblem(make=make, make_expert=expert, horizon=settings.pop("horizon"))
    name = settings.pop("name")
    return Task(name=name, title=name, problem=problem, **settings)


TASKS = {
    "tagger": lambda: task(lambda h: Tagger(), lambda s: Gold(), horizon=LONGEST, name="tagger"),
    "t-maze": lambda: task(lambda h: TMaze(), lambda s: Guide(), horizon=20, name="t-maze", policy="gru"),
    "pendulum": lambda: task(
        lambda h: Pendulum(), lambda s: Energy(), horizon=200, name="pendulum", oracle="monte-carlo"
    ),
    "lunar-lander": lambda: task(
        lambda h: GymnasiumSimulator("LunarLander-v3", h), Heuristic, horizon=1000, name="lunar-lander",
        oracle="monte-carlo",
    ),
}  # fmt: skip
