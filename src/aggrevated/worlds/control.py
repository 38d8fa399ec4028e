"""Control: a simulator, a trained expert, fresh episodes for every purpose."""

from __future__ import annotations

import torch

from aggrevated.experiments import ControlTask, Task
from aggrevated.experts import Expert
from aggrevated.experts.loading import load_expert
from aggrevated.files import Facts
from aggrevated.policies import Policy
from aggrevated.randomness import Purpose, seeds
from aggrevated.runs.config import Config
from aggrevated.simulators import Simulator
from aggrevated.start import random_policy
from aggrevated.validation import OnEpisodes, mean_return
from aggrevated.worlds import World


def world(task: Task, config: Config) -> World:
    """The world of a control task."""
    assert isinstance(task, ControlTask)
    simulator = task.simulator(config.horizon)
    expert = load_expert(config.expert, task.seen_by_expert(config.horizon))
    weights = [w for network in expert.networks for w in (*network.weights, *network.biases)]
    return World(
        simulator,
        expert,
        blank_policy(task, config),
        validate=OnEpisodes(simulator, seeds(config.seed, Purpose.VALIDATION, 0, config.validation_episodes)),
        test=lambda policy: on_fresh_episodes(task, simulator, expert, policy, config.test_episodes, config.seed),
        monitor=lambda policy: {},
        fingerprint={str(i): torch.from_numpy(w) for i, w in enumerate(weights)},
    )


def blank_policy(task: Task, config: Config) -> Policy:
    """The random policy of that config."""
    assert isinstance(task, ControlTask)
    simulator = task.simulator(config.horizon)
    return random_policy(simulator, config.policy, config.hidden, config.seed, config.log_deviation)


def on_fresh_episodes(
    task: ControlTask,
    simulator: Simulator,
    expert: Expert,
    policy: Policy,
    episodes: int,
    seed: int,
    deterministic: bool = False,
) -> Facts:
    """The returns of policy and expert, and their ratio, on episodes that were used for nothing else."""
    fresh = seeds(seed, Purpose.TEST, 0, episodes)
    test = mean_return(policy, simulator, fresh, deterministic)
    of_expert = mean_return(expert, simulator, fresh)
    ratio = task.ratio(test, of_expert, simulator.horizon)
    return {"expert_return": of_expert, "test_return": test, "ratio": ratio}
