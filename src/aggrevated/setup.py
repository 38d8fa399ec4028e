"""From a config to the pieces of Algorithm 1."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from aggrevated.algorithm import Learner
from aggrevated.cost_to_go import Oracle
from aggrevated.cost_to_go.softened import Softened
from aggrevated.experiments import tasks
from aggrevated.losses import Loss
from aggrevated.parsing.learners.kernel import SupportVectors
from aggrevated.policies import Policy
from aggrevated.recipes import GRADIENTS, METHODS, OPTIMISERS, SOLVERS
from aggrevated.runs.config import Config
from aggrevated.schedules import Schedule, geometric, linear
from aggrevated.updates import Update
from aggrevated.updates.follow_the_leader import FollowTheLeader
from aggrevated.updates.natural import Natural
from aggrevated.updates.regular import Regular
from aggrevated.worlds import World, control, parsing


@dataclass(frozen=True)
class Setup:
    """All that `aggrevated.algorithm.aggrevated` takes."""

    world: World
    learner: Learner
    oracle: Oracle
    loss: Loss
    alpha: Schedule


WORLDS = {"control": control.world, "parsing": parsing.world}
BLANK = {"control": control.blank_policy, "parsing": parsing.blank_policy}
UPDATES: dict[str, Callable[[Config], Update]] = {
    "regular": lambda config: Regular(annealed(config, config.learning_rate, to=0.0), OPTIMISERS[config.optimiser]),
    "natural": lambda config: Natural(
        annealed(config, config.delta_kl, to=0.0), config.damping, solver=SOLVERS[config.solver]
    ),
    "follow-the-leader": lambda config: FollowTheLeader(config.learning_rate, seed=config.seed),
    "support-vectors": lambda config: SupportVectors(seed=config.seed),
}


def set_up(config: Config) -> Setup:
    """The pieces, with a random policy; `aggrevated.start.STARTS` says what comes before iteration 1."""
    torch.set_num_threads(1)  # small networks are faster so, and the bits do not depend on the number of cores
    task = tasks()[config.task]
    world = WORLDS[task.world](task, config)
    oracle = METHODS[config.method].cost_to_go(config, world.expert, world.simulator)
    if config.entropy:
        oracle = Softened(oracle, annealed(config, config.entropy, to=config.entropy / 10))
    return Setup(
        world,
        Learner(world.policy, UPDATES[config.update](config)),
        oracle,
        GRADIENTS[config.gradient],
        geometric(config.mixing, config.mixing_decay),
    )


def blank_policy(config: Config) -> Policy:
    """A policy as the config asks for it, to load weights into."""
    task = tasks()[config.task]
    return BLANK[task.world](task, config)


def annealed(config: Config, value: float, to: float) -> float | Schedule:
    """The value, falling in a line over so many iterations as the config says."""
    return linear(value, to, config.annealed) if config.annealed else value
