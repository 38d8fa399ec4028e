"""Experts of several kinds for strangers.py: tables, planners, networks of Stable-Baselines3, recordings."""

import warnings
from functools import cache

import gymnasium
import numpy as np


@cache
def table(name, discount=0.999, **options):
    """Return Q of rewards [S, A] by value iteration on Gymnasium's transition table."""
    moves = gymnasium.make(name, **options).unwrapped.P
    q = np.zeros((len(moves), len(moves[0])))
    for _ in range(1000):
        v = q.max(axis=1)
        before = q.copy()
        for s, actions in moves.items():
            for a, outcomes in actions.items():
                q[s, a] = sum(p * (r + discount * v[to] * (not end)) for p, to, r, end in outcomes)
        if np.abs(q - before).max() < 1e-9:
            break
    return q


class Table:
    """Expert with the cost of every action."""

    def __init__(self, name, **options):
        self.costs = -table(name, **options)

    def q(self, observation):
        """Return the costs of all actions at one state."""
        return self.costs[observation]


class Worth:
    """Expert with the cost of a state, and actions."""

    def __init__(self, name, **options):
        self.costs = -table(name, **options)

    def v(self, observation):
        """Return the cost of one state."""
        return self.costs[observation].min()

    def act(self, observation):
        """Return the cheapest action."""
        return int(self.costs[observation].argmin())


def planner(simulator):
    """Return an expert that looks three steps ahead with the simulator, towards the goal of a frozen lake."""
    away = np.array([abs(3 - s // 4) + abs(3 - s % 4) for s in range(16)])

    def best(states, depth):
        n = len(states)
        count = int(simulator.action_space.n)
        rows = np.repeat(np.arange(n), count)
        following, cost, done = simulator.step(states[rows], np.tile(np.arange(count), n))
        left = away[simulator.observe(following).argmax(axis=1)] + 0.0
        left[done] = np.where(cost[done] < 0, 0.0, 50.0)
        if depth > 1 and (~done).any():
            left[~done] = 1.0 + best(following[~done], depth - 1).min(axis=1)
        return left.reshape(n, count)

    class Planner:
        name = "planner"

        def act(self, states, t):
            return best(states, 3).argmin(axis=1)

    return Planner()


def basic(observation):
    """Return the action of the simplest Blackjack strategy."""
    mine, dealer, ace = (int(np.asarray(part)) for part in observation)
    return int(mine < 18 if ace else mine < (12 if 4 <= dealer <= 6 else 17))


def push(observation):
    """Return the mountain car's push in the direction of its velocity."""
    return 0 if observation[1] < 0 else 2


def pump(observation):
    """Return the continuous mountain car's force in the direction of its velocity."""
    return np.array([1.0 if observation[1] >= 0 else -1.0], np.float32)


def land(observation):
    """Return the action of Gymnasium's controller of the lander."""
    from gymnasium.envs.box2d import lunar_lander

    return lunar_lander.heuristic(lander(False), observation)


def land_smoothly(observation):
    """Return the action of Gymnasium's controller for continuous engines."""
    from gymnasium.envs.box2d import lunar_lander

    return lunar_lander.heuristic(lander(True), observation)


@cache
def lander(continuous):
    """Return a stand-in lander: the controller only reads whether it is continuous."""
    from gymnasium.envs.box2d.lunar_lander import LunarLander

    return LunarLander(continuous=continuous)


def swim(observation):
    """Return torques with which each joint follows the previous one, a quarter of a turn later."""
    first = observation[1]
    second = observation[2]
    spin1 = observation[6]
    spin2 = observation[7]
    return np.clip([-4 * (second + 0.1 * spin1), 4 * (first + 0.1 * spin2)], -1.0, 1.0)


MODELS = {  # name: (class, environment, options of the environment, steps, settings)
    "acrobot-ppo": ("PPO", "Acrobot-v1", {}, 60_000, {"n_steps": 1024, "gamma": 0.99}),
    "cartpole-dqn": (
        "DQN", "CartPole-v1", {}, 40_000,
        {"learning_rate": 2e-3, "gradient_steps": 8, "train_freq": 16, "target_update_interval": 200,
         "exploration_fraction": 0.2, "learning_starts": 1000, "batch_size": 64, "gamma": 0.99},
    ),
    "lander-dqn": (
        "DQN", "LunarLander-v3", {}, 60_000,
        {"learning_rate": 6e-4, "train_freq": 4, "gradient_steps": 2, "batch_size": 64, "buffer_size": 50_000,
         "exploration_fraction": 0.2, "target_update_interval": 500, "policy_kwargs": {"net_arch": [128, 128]}},
    ),
    "pole-ppo": ("PPO", "InvertedPendulum-v5", {}, 50_000, {"n_steps": 1024}),
    "reacher-sac": ("SAC", "Reacher-v5", {}, 10_000, {"policy_kwargs": {"net_arch": [64, 64]}}),
    "cheetah-sac": ("SAC", "HalfCheetah-v5", {}, 15_000, {"policy_kwargs": {"net_arch": [64, 64]}}),
    "pendulum-td3": ("TD3", "Pendulum-v1", {}, 8_000, {"policy_kwargs": {"net_arch": [64, 64]}}),
}  # fmt: skip


def train_model(name, folder):
    """Train one of the models and save it as a zip."""
    import stable_baselines3
    import torch

    path = folder / f"{name}.zip"
    if path.exists():
        return path
    torch.set_num_threads(1)
    kind, environment, options, steps, settings = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = gymnasium.make(environment, **options)
        model = getattr(stable_baselines3, kind)("MlpPolicy", env, seed=0, device="cpu", **settings)
        model.learn(steps)
    folder.mkdir(parents=True, exist_ok=True)
    model.save(path)
    return path


def recorded(name, act, episodes=40):
    """Return demonstrations of a function: (observations, actions) of some episodes."""
    env = gymnasium.make(name)
    found = []
    for seed in range(episodes):
        observation = env.reset(seed=10_000 + seed)[0]
        done = False
        seen = []
        taken = []
        while not done:
            seen.append(observation)
            taken.append(act(observation))
            observation, _, terminated, truncated, _ = env.step(taken[-1])
            done = terminated or truncated
        found.append((np.array(seen), np.array(taken)))
    return found
