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
    "aggrevated.runs.run": ("Run",),
    "aggrevated.runs.executing": ("execute", "resume", "train"),
    "aggrevated.runs.records": ("Metrics", "Result"),
    "aggrevated.config": ("Config",),
    "aggrevated.config.resolving": ("resolve",),
    # tasks and worlds of one's own
    "aggrevated.tasks": ("Row", "Task", "Tuned", "find_task"),
    "aggrevated.worlds": ("EvaluationSettings", "Score", "World", "WorldSettings"),
    "aggrevated.worlds.control": ("Control", "no_step_saved"),
    "aggrevated.methods": ("ASKED", "METHODS", "OTHERS", "Method"),
    "aggrevated.settings": (
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
    "aggrevated.simulators.partial": ("Partial", "columns_of"),
    "aggrevated.simulators.tabular": ("Tabular", "TabularExpert"),
    "aggrevated.experts": ("ActionValueExpert", "CriticExpert", "Expert", "ValueExpert"),
    "aggrevated.experts.adapting": ("as_expert", "kind_of"),
    "aggrevated.experts.demonstrations": ("read_demonstrations",),
    "aggrevated.experts.loading": ("load_expert",),
    "aggrevated.experts.q_function": ("QFunction",),
    "aggrevated.experts.recorded": ("Demonstrations",),
    "aggrevated.experts.several": ("several",),
    # line 2: the policy, and its start
    "aggrevated.actors": ("Actor",),
    "aggrevated.policies": ("Policy", "PolicySettings"),
    "aggrevated.policies.convolutional": ("ConvolutionalPolicy",),
    "aggrevated.policies.feed_forward": ("FeedForwardPolicy",),
    "aggrevated.policies.mixture": ("MixturePolicy",),
    "aggrevated.policies.recurrent": ("RecurrentPolicy",),
    "aggrevated.policies.window": ("WindowPolicy",),
    "aggrevated.policies.saving": ("load",),
    "aggrevated.reports.pages": ("PageReader", "ParsedPage", "load_reader"),
    "aggrevated.exporting.onnx_files": ("export_onnx",),
    "aggrevated.policies.heads": ("CategoricalHead", "GaussianHead", "Head", "HeadSettings"),
    "aggrevated.starts": ("StartSettings",),
    "aggrevated.starts.supervised": ("supervised",),
    # lines 4 and 5: roll-ins
    "aggrevated.roll_in": ("Mixture", "memories"),
    "aggrevated.randomness": ("Purpose", "seeds"),
    "aggrevated.trajectories": ("Trajectories",),
    # where the work is done
    "aggrevated.engines": ("Engine", "InProcess"),
    "aggrevated.engines.processes": ("Processes",),
    "aggrevated.engines.ray": ("Ray",),
    # line 6: what a mistake costs, and the loss
    "aggrevated.cost_to_go": ("CostToGo", "Oracle", "OracleSettings", "Remembering", "Tells"),
    "aggrevated.cost_to_go.advantage": ("Advantage", "Taken"),
    "aggrevated.cost_to_go.critic": ("Critic",),
    "aggrevated.cost_to_go.disagreement": ("disagreement",),
    "aggrevated.cost_to_go.loki": ("Loki", "ReinforcementSettings"),
    "aggrevated.cost_to_go.lols": ("Lols",),
    "aggrevated.cost_to_go.lookahead": ("Lookahead",),
    "aggrevated.cost_to_go.monte_carlo": ("MonteCarlo",),
    "aggrevated.cost_to_go.q_of": ("QOfAction", "QOfEveryAction"),
    "aggrevated.cost_to_go.q_star": ("QStar",),
    "aggrevated.cost_to_go.realised": ("Realised",),
    "aggrevated.cost_to_go.entropy_bonus": ("EntropyBonus",),
    "aggrevated.cost_to_go.truncated": ("Truncated",),
    "aggrevated.cost_to_go.value_function": ("ValueFunction",),
    "aggrevated.losses": ("Loss", "LossSettings"),
    "aggrevated.losses.all_actions": ("all_actions",),
    "aggrevated.losses.likelihood": ("likelihood",),
    "aggrevated.losses.taken_action": ("taken_action",),
    # line 7: the step
    "aggrevated.updates": ("Step", "Update", "UpdateSettings", "loss_and_gradient"),
    "aggrevated.updates.safe_step": ("safe_step",),
    "aggrevated.updates.projected": ("Exponentiated",),
    "aggrevated.updates.follow_the_leader": ("FollowTheLeader",),
    "aggrevated.updates.mixture": ("PolicyMixture", "searn", "smile"),
    "aggrevated.updates.natural": ("Natural",),
    "aggrevated.updates.regular": ("Regular",),
    "aggrevated.schedules": ("constant", "exponential", "geometric", "inverse_sigmoid", "linear"),
    # line 9: validation
    "aggrevated.validation": ("OnEpisodes", "Validated", "mean_return"),
    # what can go wrong
    "aggrevated.health": ("Examined", "Health"),
    "aggrevated.parts": ("set_time_limit",),
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
