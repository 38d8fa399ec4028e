"""AggreVaTeD: differentiable imitation learning from an expert that knows what a mistake costs.

This page is the public face: what is not on it is not public. A name is imported from its module when it is first
used, so that `import aggrevated` costs next to nothing.
"""

from importlib import import_module
from typing import Any

from aggrevated.version import __version__

PUBLIC = {
    # the loop, and runs of it in folders
    "aggrevated.algorithm": ("Iteration", "Learner", "aggrevated"),
    "aggrevated.training.run_folder": ("Run",),
    "aggrevated.training.trainer": ("execute", "resume", "train"),
    "aggrevated.training.records": ("Metrics", "Result"),
    "aggrevated.config": ("Config",),
    "aggrevated.config.resolver": ("resolve",),
    # tasks and worlds of one's own
    "aggrevated.tasks": ("Row", "Task", "Tuned", "find_task"),
    "aggrevated.problems": ("EvaluationSettings", "Score", "World", "WorldSettings"),
    "aggrevated.problems.control": ("Control", "no_step_saved"),
    "aggrevated.methods": ("ASKED", "METHODS", "OTHERS", "Method"),
    "aggrevated.core.settings": (
        "COUNT",
        "NOT_NEGATIVE",
        "POSITIVE",
        "SEED",
        "Settings",
        "at_least",
        "between",
        "one_of",
        "setting",
    ),
    # what it acts in, and who knows better
    "aggrevated.simulators": ("Replaying", "Restricted", "Simulator", "Stochastic"),
    "aggrevated.simulators.acrobot": ("Acrobot",),
    "aggrevated.simulators.cartpole": ("CartPole",),
    "aggrevated.simulators.gymnasium": ("GymnasiumSimulator",),
    "aggrevated.simulators.mujoco": ("MuJoCo",),
    "aggrevated.simulators.partial_observation": ("Partial", "columns_of"),
    "aggrevated.simulators.tabular": ("Tabular", "TabularExpert"),
    "aggrevated.experts": ("ActionValueExpert", "CriticExpert", "Expert", "ValueExpert"),
    "aggrevated.experts.adapters": ("as_expert", "kind_of"),
    "aggrevated.experts.demonstration_files": ("read_demonstrations",),
    "aggrevated.experts.loading": ("load_expert",),
    "aggrevated.experts.q_function": ("QFunction",),
    "aggrevated.experts.demonstrations": ("Demonstrations",),
    "aggrevated.experts.ensemble": ("several",),
    # line 2: the policy, and its start
    "aggrevated.actors": ("Actor",),
    "aggrevated.policies": ("Policy", "PolicySettings"),
    "aggrevated.policies.convolutional": ("ConvolutionalPolicy",),
    "aggrevated.policies.feed_forward": ("FeedForwardPolicy",),
    "aggrevated.policies.mixture": ("MixturePolicy",),
    "aggrevated.policies.recurrent": ("RecurrentPolicy",),
    "aggrevated.policies.window": ("WindowPolicy",),
    "aggrevated.policies.serialization": ("load",),
    "aggrevated.export.onnx_files": ("export_onnx",),
    "aggrevated.policies.heads": ("CategoricalHead", "GaussianHead", "Head", "HeadSettings"),
    "aggrevated.starts": ("StartSettings",),
    "aggrevated.starts.supervised": ("supervised",),
    # lines 4 and 5: roll-ins
    "aggrevated.rollout.roll_in": ("Mixture", "memories"),
    "aggrevated.core.rng": ("Purpose", "seeds"),
    "aggrevated.rollout.trajectories": ("Trajectories",),
    # where the work is done
    "aggrevated.engines": ("Engine", "InProcess"),
    "aggrevated.engines.processes": ("Processes",),
    "aggrevated.engines.ray": ("Ray",),
    # line 6: what a mistake costs, and the loss
    "aggrevated.oracles": ("CostToGo", "Oracle", "OracleSettings", "Remembering", "Tells"),
    "aggrevated.oracles.advantage": ("Advantage", "Taken"),
    "aggrevated.oracles.critic": ("Critic",),
    "aggrevated.oracles.zero_one": ("disagreement",),
    "aggrevated.oracles.loki": ("Loki", "ReinforcementSettings"),
    "aggrevated.oracles.lols": ("Lols",),
    "aggrevated.oracles.one_step_lookahead": ("Lookahead",),
    "aggrevated.oracles.monte_carlo": ("MonteCarlo",),
    "aggrevated.oracles.q_of_action": ("QOfAction", "QOfEveryAction"),
    "aggrevated.oracles.q_star": ("QStar",),
    "aggrevated.oracles.reward_to_go": ("Realised",),
    "aggrevated.oracles.entropy_bonus": ("EntropyBonus",),
    "aggrevated.oracles.truncated_horizon": ("Truncated",),
    "aggrevated.oracles.value_function": ("ValueFunction",),
    "aggrevated.losses": ("Loss", "LossSettings"),
    "aggrevated.losses.all_actions": ("all_actions",),
    "aggrevated.losses.likelihood": ("likelihood",),
    "aggrevated.losses.taken_action": ("taken_action",),
    # line 7: the step
    "aggrevated.updates": ("Step", "Update", "UpdateSettings", "loss_and_gradient"),
    "aggrevated.updates.safe_step": ("safe_step",),
    "aggrevated.updates.exponentiated": ("Exponentiated",),
    "aggrevated.updates.follow_the_leader": ("FollowTheLeader",),
    "aggrevated.updates.policy_mixture": ("PolicyMixture", "searn", "smile"),
    "aggrevated.updates.natural": ("Natural",),
    "aggrevated.updates.regular": ("Regular",),
    "aggrevated.core.schedules": ("constant", "exponential", "geometric", "inverse_sigmoid", "linear"),
    # line 9: validation
    "aggrevated.validation": ("OnEpisodes", "Validated", "mean_return"),
    # what can go wrong
    "aggrevated.training.diagnostics": ("Examined", "Health"),
    "aggrevated.core.user_code": ("set_time_limit",),
    "aggrevated.errors": ("AggrevatedError", "DataError", "PartError", "StorageError", "UsageError"),
}
HOMES = {name: module for module, names in PUBLIC.items() for name in names}
__all__ = ["__version__", *HOMES]


def __getattr__(name: str) -> Any:
    """The public object of that name."""
    if name not in HOMES:
        raise AttributeError(f"module 'aggrevated' has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES})
