"""From a config to the pieces of Algorithm 1."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from aggrevated.algorithm import Learner
from aggrevated.cost_to_go import Oracle
from aggrevated.experiments import Task, tasks
from aggrevated.experts.loading import NetworkExpert, load_expert
from aggrevated.gradients import Loss
from aggrevated.recipes import GRADIENTS, METHODS, OPTIMISERS, SOLVERS
from aggrevated.runs.config import Config
from aggrevated.schedules import Schedule, geometric
from aggrevated.simulators import Simulator
from aggrevated.start import random_policy
from aggrevated.updates import Update
from aggrevated.updates.follow_the_leader import FollowTheLeader
from aggrevated.updates.natural import Natural
from aggrevated.updates.regular import Regular


@dataclass(frozen=True)
class Setup:
    """All that `aggrevated.algorithm.aggrevated` takes, and the task that it is for."""

    task: Task
    simulator: Simulator
    expert: NetworkExpert
    learner: Learner
    oracle: Oracle
    loss: Loss
    alpha: Schedule


UPDATES: dict[str, Callable[[Config], Update]] = {
    "regular": lambda config: Regular(config.learning_rate, OPTIMISERS[config.optimiser]),
    "natural": lambda config: Natural(config.delta_kl, config.damping, solver=SOLVERS[config.solver]),
    "follow-the-leader": lambda config: FollowTheLeader(config.learning_rate, seed=config.seed),
}


def set_up(config: Config) -> Setup:
    """The pieces, with a random policy; `aggrevated.start.STARTS` says what comes before iteration 1."""
    torch.set_num_threads(1)  # small networks are faster so, and the bits do not depend on the number of cores
    task = tasks()[config.task]
    simulator = task.simulator(config.horizon)
    expert = load_expert(config.expert, task.seen_by_expert(config.horizon))
    policy = random_policy(simulator, config.policy, config.hidden, config.seed, config.log_deviation)
    return Setup(
        task,
        simulator,
        expert,
        Learner(policy, UPDATES[config.update](config)),
        METHODS[config.method].cost_to_go(config, expert, simulator),
        GRADIENTS[config.gradient],
        geometric(config.mixing, config.mixing_decay),
    )
