"""AggreVaTeD: differentiable imitation learning from an expert that knows the cost-to-go of actions.

`PUBLIC` lists the public API. A name is imported from its module when it is first used, so that `import
aggrevated` is fast.
"""

from importlib import import_module
from typing import Any

__version__ = "0.3.0"

# fmt: off
PUBLIC = {
    # the loop, runs and configs
    "aggrevated.algorithm": ("Iteration", "Learner", "aggrevated"),
    "aggrevated.training.run_folder": ("Run", "list_runs"),
    "aggrevated.training.trainer": ("Trainer", "resume", "train"),
    "aggrevated.training.records": ("Metrics", "Result"),
    "aggrevated.training.evaluation": ("evaluate_run",),
    "aggrevated.config": ("Config",),
    "aggrevated.config.resolver": ("resolve_config",),
    # tasks and problems
    "aggrevated.tasks": ("FigureRow", "Task", "Preset", "iter_tasks", "find_task"),
    "aggrevated.problems": ("EvaluationSettings", "Score", "Problem", "ProblemSettings"),
    "aggrevated.problems.control": ("ControlProblem", "negative_horizon"),
    "aggrevated.methods": ("EXPERT_ORACLE", "METHODS", "ANY_COMPATIBLE", "Method"),
    "aggrevated.core.settings": (
        "COUNT", "UNIT_INTERVAL", "SelectedComponents", "check_setting", "to_flag", "NON_NEGATIVE", "POSITIVE",
        "SEED", "Settings", "at_least", "between", "one_of", "setting",
    ),
    # simulators and experts
    "aggrevated.simulators": ("HasReplayedSteps", "HasActionMask", "Simulator", "Reseedable"),
    "aggrevated.simulators.acrobot": ("Acrobot",),
    "aggrevated.simulators.cartpole": ("CartPole",),
    "aggrevated.simulators.gymnasium": ("GymnasiumSimulator",),
    "aggrevated.simulators.mujoco": ("MuJoCo",),
    "aggrevated.simulators.partial_observation": ("PartialObservationSimulator", "select_columns"),
    "aggrevated.simulators.tabular": ("TabularSimulator", "TabularExpert"),
    "aggrevated.experts": ("StateActionQExpert", "StateValueExpert", "Expert", "DiscreteQExpert"),
    "aggrevated.experts.adapters": ("as_expert", "get_expert_capability"),
    "aggrevated.experts.loading": ("load_expert",),
    "aggrevated.experts.q_function": ("QFunction",),
    "aggrevated.experts.demonstrations": ("Demonstrations", "read_demonstrations"),
    "aggrevated.experts.ensemble": ("make_expert_ensemble",),
    # line 2: policies and their starts
    "aggrevated.actors": ("Actor",),
    "aggrevated.policies": ("HiddenSettings", "Policy", "PolicySettings"),
    "aggrevated.policies.convolutional": ("ConvolutionalPolicy",),
    "aggrevated.policies.feed_forward": ("FeedForwardPolicy",),
    "aggrevated.policies.mixture": ("MixturePolicy",),
    "aggrevated.policies.recurrent": ("RecurrentPolicy",),
    "aggrevated.policies.window": ("WindowPolicy",),
    "aggrevated.policies.serialization": ("load_policy",),
    "aggrevated.export.onnx_files": ("export_onnx",),
    "aggrevated.policies.heads": ("CategoricalHead", "GaussianHead", "Head", "HeadSettings"),
    "aggrevated.starts": ("StartSettings",),
    "aggrevated.starts.supervised": ("SupervisedStartSettings", "pretrain_policy"),
    # lines 4 and 5: roll-ins
    "aggrevated.rollout.roll_in": ("RollInPolicy", "replay_hidden_states", "roll_in"),
    "aggrevated.core.rng": ("SeedPurpose", "derive_seeds"),
    "aggrevated.rollout.trajectories": ("Trajectories",),
    # engines
    "aggrevated.engines": ("Engine", "InProcessEngine"),
    "aggrevated.engines.processes": ("ProcessEngine",),
    "aggrevated.engines.ray": ("RayEngine",),
    # line 6: cost-to-go oracles and losses
    "aggrevated.oracles": ("CostToGo", "Oracle", "OracleSettings", "Stateful", "Feedback"),
    "aggrevated.oracles.advantage": ("AdvantageOracle", "TakenActionOracle"),
    "aggrevated.oracles.critic": ("CriticOracle",),
    "aggrevated.oracles.zero_one": ("make_zero_one_oracle",),
    "aggrevated.oracles.loki": ("LokiOracle", "ReinforcementSettings"),
    "aggrevated.oracles.lols": ("LolsOracle",),
    "aggrevated.oracles.one_step_lookahead": ("LookaheadOracle",),
    "aggrevated.oracles.monte_carlo": ("MonteCarloOracle",),
    "aggrevated.oracles.q_of_action": ("StateActionQOracle", "PerActionQOracle"),
    "aggrevated.oracles.q_star": ("QStarOracle",),
    "aggrevated.oracles.reward_to_go": ("RewardToGoOracle",),
    "aggrevated.oracles.entropy_bonus": ("EntropyBonusOracle",),
    "aggrevated.oracles.truncated_horizon": ("TruncatedHorizonOracle",),
    "aggrevated.oracles.value_function": ("ValueFunctionOracle",),
    "aggrevated.losses": ("Loss", "LossSettings"),
    "aggrevated.losses.all_actions": ("all_actions_loss",),
    "aggrevated.losses.likelihood": ("best_action_nll_loss",),
    "aggrevated.losses.taken_action": ("taken_action_loss",),
    # line 7: the update
    "aggrevated.updates": (
        "TO_THE_END", "UpdateResult", "Update", "UpdateSettings", "compute_gradient_norm", "compute_loss_and_gradient",
    ),
    "aggrevated.updates.safe_step": ("take_safe_step",),
    "aggrevated.updates.exponentiated": ("ExponentiatedUpdate",),
    "aggrevated.updates.follow_the_leader": ("FollowTheLeaderUpdate",),
    "aggrevated.updates.policy_mixture": ("MixtureUpdate", "searn_weights", "smile_weights"),
    "aggrevated.updates.natural": ("NaturalUpdate",),
    "aggrevated.updates.regular": ("RegularSettings", "RegularUpdate"),
    "aggrevated.core.schedules": (
        "constant_schedule", "exponential_schedule", "geometric_schedule", "inverse_sigmoid_schedule",
        "linear_schedule",
    ),
    # line 9: validation
    "aggrevated.validation": ("evaluate_returns", "EpisodeEvaluator", "ValidationScore", "evaluate_mean_return"),
    # arrays, JSON, and one thread for small networks
    "aggrevated.core.arrays": ("Array",),
    "aggrevated.storage": ("JsonDict",),
    "aggrevated.core.hardware": ("single_thread",),
    # errors and diagnostics
    "aggrevated.training.diagnostics": ("UpdateWithDiagnostics", "TrainingMonitor"),
    "aggrevated.core.user_code": ("set_time_limit",),
    "aggrevated.core.errors": (
        "AggrevatedError", "DataError", "UserCodeError", "StorageError", "UnusedSettingError", "UsageError",
    ),
}
# fmt: on
HOMES = {name: module for module, names in PUBLIC.items() for name in names}
__all__ = ["__version__", *HOMES]


def __getattr__(name: str) -> Any:
    """Return the public object of that name."""
    if name not in HOMES:
        raise AttributeError(f"module 'aggrevated' has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *HOMES})
