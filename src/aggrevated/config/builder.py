"""Build the inputs of Algorithm 1 from a config."""

from dataclasses import dataclass

from aggrevated.algorithm import Learner
from aggrevated.config import Config
from aggrevated.core.hardware import reraise_memory_errors
from aggrevated.core.schedules import Schedule
from aggrevated.losses import Loss
from aggrevated.oracles import Feedback, Oracle
from aggrevated.oracles.advantage import TakenActionOracle
from aggrevated.oracles.entropy_bonus import EntropyBonusOracle
from aggrevated.oracles.expert_action import ExpertLabeledOracle
from aggrevated.policies import Policy
from aggrevated.problems import Problem


@dataclass(frozen=True)
class AlgorithmInputs:
    """The inputs of `aggrevated.algorithm.aggrevated`."""

    problem: Problem
    learner: Learner
    oracle: Oracle
    loss: Loss
    alpha: Schedule


def build_algorithm_inputs(config: Config) -> AlgorithmInputs:
    """Return the inputs with a random policy, before its start (line 2)."""
    with reraise_memory_errors(f"the problem and the policy of {config.task.name}"):
        problem = config.built_problem
        policy = build_policy(config)
        problem.prepare(policy)
        learner = Learner(policy, config.update.build(config.loop.seed))
    return AlgorithmInputs(problem, learner, build_oracle(config), config.loss.build(), config.loop.alpha)


def build_oracle(config: Config) -> Oracle:
    """Return the oracle with the feedback that the loss accepts, the reinforcement and the entropy bonus."""
    oracle = config.oracle.build(config.built_problem.simulator, config.built_problem.expert)
    if (
        config.oracle.get_feedback(config.has_discrete_actions) is Feedback.ALL_ACTIONS
        and config.loss_feedback is Feedback.TAKEN_ACTION
    ):
        oracle = TakenActionOracle(oracle)
    if config.update.wants_expert_actions and config.method_spec.queries_expert and has_unqueried_actions(config):
        oracle = ExpertLabeledOracle(oracle, config.built_problem.expert, config.built_problem.simulator.action_space)
    oracle = config.reinforcement.build(oracle, config.loop.seed)
    if config.loss.entropy:
        oracle = EntropyBonusOracle(oracle, config.update.schedule(config.loss.entropy, config.loss.entropy / 10))
    return oracle


def has_unqueried_actions(config: Config) -> bool:
    """Return whether the update gets no cost for some actions or steps."""
    return config.loss_feedback is not Feedback.ALL_ACTIONS or config.oracle.is_partial(config.has_discrete_actions)


def build_policy(config: Config) -> Policy:
    """Return a random policy of the config, also to load weights into."""
    observations, actions = config.problem.spaces()
    policy = config.policy.build(observations, config.head.build(actions), config.loop.seed)
    policy = config.update.wrap_policy(policy, config.head.build(actions))
    policy.space_adapter = config.problem.space_adapter
    return policy
