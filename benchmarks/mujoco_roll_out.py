"""MuJoCo robots in control steps per second: whole episodes of a policy of 64 ReLU that imitates the expert."""

import interleave

# isort: split
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from time import perf_counter

import gymnasium
import numpy as np
import torch
from mujoco.rollout import rollout
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.experts.loading import load_expert
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import GaussianHead
from aggrevated.rollout.roll_in import RollInPolicy, roll_in
from aggrevated.simulators.mujoco import MuJoCo

ROBOTS = ("hopper", "walker")
# episodes at once
FEW = 50
MANY = 500
VECTOR_STEPS = 20  # of the vector environments in one call
LOG_DEVIATION = -1.5

Work = Callable[[], int]


@dataclass(frozen=True)
class Task:
    """A robot, stepped by one thread and by two, and a good policy."""

    name: str
    policy: FeedForwardPolicy
    one_thread: MuJoCo
    two_threads: MuJoCo

    def environments(self, count: int) -> list[Callable[[], gymnasium.Env]]:
        """Return `count` Gymnasium environments with our horizon, without the wrapper that checks their output."""
        simulator = self.one_thread
        make = partial(
            gymnasium.make,
            simulator.robot.environment,
            max_episode_steps=simulator.horizon,
            disable_env_checker=True,
        )
        return [make] * count


def task(name: str) -> Task:
    """Return the task with the expert's actor as policy, with some deviation."""
    simulator = MuJoCo(name, threads=1)
    actor = load_expert(name, simulator).actor
    assert actor.activation == "relu" and [len(b) for b in actor.biases[:-1]] == [64], "no layer of 64 ReLU"
    policy = FeedForwardPolicy(len(actor.weights[0]), GaussianHead(len(actor.biases[-1]), LOG_DEVIATION), (64,))
    with torch.no_grad():
        for layer, weight, bias in zip(policy.network[::2], actor.weights, actor.biases, strict=True):
            layer.weight.copy_(torch.from_numpy(weight.T))
            layer.bias.copy_(torch.from_numpy(bias))
    return Task(name, policy, simulator, MuJoCo(name, threads=2))


@dataclass
class Ours:
    """`aggrevated.rollout.roll_in`, from θ to trajectories, and the share of its time in the simulator."""

    simulator: MuJoCo
    policy: FeedForwardPolicy
    episodes: int
    inside: float = 0.0  # seconds, in the present call
    shares: list[float] = field(default_factory=list)  # one for each call
    iteration: count = field(default_factory=count)

    def __call__(self) -> int:
        chosen = derive_seeds(0, SeedPurpose.ROLL_IN, next(self.iteration), self.episodes)
        physics = self.simulator.physics
        self.inside = 0.0
        advance = physics.advance
        physics.advance = self.timed(physics.advance)
        began = perf_counter()
        steps = roll_in(self.simulator, RollInPolicy(None, self.policy.actor()), chosen).steps
        self.shares.append(self.inside / (perf_counter() - began))
        physics.advance = advance
        return steps

    def timed(self, advance: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        def advance_and_count(state: np.ndarray, control: np.ndarray) -> np.ndarray:
            began = perf_counter()
            following = advance(state, control)
            self.inside += perf_counter() - began
            return following

        return advance_and_count


def open_loop(task: Task) -> Work:
    """The limit: `mujoco.rollout` in C on one thread, with recorded actions of 50 episodes and no policy.

    Episodes of the same length share one call, so no step is simulated after an end.
    """
    simulator = task.one_thread
    physics = task.one_thread.physics
    found = roll_in(simulator, RollInPolicy(None, task.policy.actor()), derive_seeds(0, SeedPurpose.ROLL_IN, 0, FEW))
    # without the warm start
    data = physics.datas[0]
    full = physics.size - physics.model.nv
    lengths = found.mask.sum(axis=1)
    calls = []
    low = simulator.action_space.low
    high = simulator.action_space.high
    for length in np.unique(lengths):
        selected = lengths == length
        actions = np.clip(found.actions[selected, :length], low, high).astype(np.float64)
        start = found.states[selected, 0]
        calls.append((start[:, :full].copy(), start[:, full:].copy(), np.repeat(actions, physics.frames, axis=1)))
    buffers = [(np.empty((*control.shape[:2], full)), np.empty((*control.shape[:2], 0))) for *_, control in calls]

    def work() -> int:
        for (initial, warm, control), (states, _) in zip(calls, buffers, strict=True):
            rollout(physics.model, data, initial, control, initial_warmstart=warm, state=states)
        return found.steps

    work()
    for length, (states, _) in zip(np.unique(lengths), buffers, strict=True):
        before_last = states[:, physics.frames * (length - 1) - 1]
        np.testing.assert_array_equal(before_last, found.states[lengths == length, length - 1, :full])
    return work


def peer(task: Task, environments: VecEnv) -> PPO:
    """Return a PPO agent with our policy's weights."""
    layout = {"net_arch": [64], "activation_fn": torch.nn.ReLU}
    model = PPO("MlpPolicy", environments, policy_kwargs=layout, device="cpu")
    model.policy.mlp_extractor.policy_net[0].load_state_dict(task.policy.network[0].state_dict())
    model.policy.action_net.load_state_dict(task.policy.network[2].state_dict())
    with torch.no_grad():
        model.policy.log_std.copy_(task.policy.head.log_deviation)
    observation = torch.from_numpy(environments.reset()).float()
    expected = task.policy(observation[:, None], torch.ones(len(observation), 1))
    found = model.policy.get_distribution(observation).distribution
    torch.testing.assert_close((found.mean, found.stddev), (expected.mean[:, 0], expected.stddev[:, 0]))
    return model


def refilled(task: Task, environments: VecEnv) -> Work:
    """`predict` and a vector environment that restarts ended episodes at once."""
    model = peer(task, environments)
    observation = environments.reset()

    def work() -> int:
        nonlocal observation
        for _ in range(VECTOR_STEPS):
            action, _ = model.predict(observation, deterministic=False)
            observation, _, _, _ = environments.step(action)
        return VECTOR_STEPS * environments.num_envs

    return work


def whole_episodes(task: Task, environments: VecEnv) -> Work:
    """`predict` and whole episodes, our product: one per environment; steps after its end do not count."""
    model = peer(task, environments)

    def work() -> int:
        observation = environments.reset()
        live = np.ones(environments.num_envs, bool)
        steps = 0
        while live.any():
            action, _ = model.predict(observation, deterministic=False)
            observation, _, done, _ = environments.step(action)
            steps += int(live.sum())
            live &= ~done
        return steps

    return work


def contenders_for(task: Task) -> dict[str, Work]:
    """Return all contenders by name."""
    return {
        "aggrevated, 50 episodes": Ours(task.one_thread, task.policy, FEW),
        "aggrevated, 500 episodes": Ours(task.one_thread, task.policy, MANY),
        "aggrevated, 50 episodes, two threads": Ours(task.two_threads, task.policy, FEW),
        "aggrevated, 500 episodes, two threads": Ours(task.two_threads, task.policy, MANY),
        "mujoco.rollout, open loop": open_loop(task),
        "stable-baselines3, DummyVecEnv(50)": refilled(task, DummyVecEnv(task.environments(FEW))),
        "stable-baselines3, DummyVecEnv(50), whole episodes": whole_episodes(task, DummyVecEnv(task.environments(FEW))),
        "stable-baselines3, SubprocVecEnv(2)": refilled(task, SubprocVecEnv(task.environments(2))),
    }


def main() -> None:
    options = interleave.arguments(__doc__, rounds=5, seconds=0.3)
    cases = {name: contenders_for(task(name)) for name in ROBOTS}
    contenders = {(case, name): work for case, group in cases.items() for name, work in group.items()}
    spent = interleave.interleave(contenders, options.rounds, options.seconds)
    rows = []
    targets = []
    for (case, name), seconds in spent.items():
        rows.append(interleave.summary(case, name, "steps/s", [1 / s for s in seconds]))
    for case, group in cases.items():
        for episodes, least in ((FEW, 0.88), (MANY, 0.95)):
            name = f"aggrevated, {episodes} episodes"
            shares = group[name].shares[1:]  # the first call loads the model
            rows.append(interleave.summary(case, f"{name}: time in the simulator", "share", shares))
            targets.append(
                interleave.at_least(case, f"share of time in the simulator, {episodes} episodes", least, shares)
            )
            ratio = interleave.ratios(spent[case, name], spent[case, f"{name}, two threads"])
            targets.append(interleave.at_least(case, f"speed, two threads / one, {episodes} episodes", 1.5, ratio))
            ratio = interleave.ratios(spent[case, "mujoco.rollout, open loop"], spent[case, name])
            rows.append(interleave.summary(case, f"{name} / mujoco.rollout", "×", ratio))
    interleave.report("MuJoCo roll-in speed", rows, targets, options)


if __name__ == "__main__":
    main()
