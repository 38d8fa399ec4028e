"""From a config to the parts of Algorithm 1."""

from dataclasses import dataclass

from aggrevated.algorithm import Learner
from aggrevated.config import Config
from aggrevated.core.hardware import memory_errors
from aggrevated.core.schedules import Schedule
from aggrevated.losses import Loss
from aggrevated.oracles import Oracle, Tells
from aggrevated.oracles.advantage import Taken
from aggrevated.oracles.entropy_bonus import EntropyBonus
from aggrevated.oracles.expert_action import Advised
from aggrevated.policies import Policy
from aggrevated.problems import World


@dataclass(frozen=True)
class Setup:
    """All that `aggrevated.algorithm.aggrevated` takes."""

    world: World
    learner: Learner
    oracle: Oracle
    loss: Loss
    alpha: Schedule


def set_up(config: Config) -> Setup:
    """The parts, with a random policy; `config.start` says what comes before iteration 1."""
    with memory_errors(f"the world and the policy of {config.task.name}"):
        world, policy = config.built_world, blank_policy(config)
        world.prepare(policy)
        learner = Learner(policy, config.update.build(config.loop.seed))
    return Setup(world, learner, oracle_of(config), config.loss.build(), config.loop.alpha)


def oracle_of(config: Config) -> Oracle:
    """The oracle, telling just what the loss looks at, with what follows it and the entropy bonus if there are any."""
    oracle = config.oracle.build(config.built_world.simulator, config.built_world.expert)
    if config.oracle.tells(config.finite) is Tells.EVERY_ACTION and config.learned_from is Tells.TAKEN_ACTION:
        oracle = Taken(oracle)
    if config.update.advised and config.row.imitates and leaves_open(config):
        oracle = Advised(oracle, config.built_world.expert, config.built_world.simulator.action_space)
    oracle = config.reinforcement.build(oracle, config.loop.seed)
    if config.loss.entropy:
        oracle = EntropyBonus(oracle, config.update.schedule(config.loss.entropy, config.loss.entropy / 10))
    return oracle


def leaves_open(config: Config) -> bool:
    """Whether there are actions or steps of which the update hears nothing."""
    return config.learned_from is not Tells.EVERY_ACTION or config.oracle.leaves_open(config.finite)


def blank_policy(config: Config) -> Policy:
    """A random policy as the config asks for it, also to load weights into."""
    observations, actions = config.world.spaces()
    policy = config.policy.build(observations, config.head.build(actions), config.loop.seed)
    policy = config.update.around(policy, config.head.build(actions))
    policy.translation = config.world.translation
    return policy
