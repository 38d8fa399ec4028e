"""The paper's figure "Acrobot": H = 200, K = 50, one layer of 16 ReLU, α = 0."""

from aggrevated.problems.control import ControlProblem, negative_horizon
from aggrevated.problems.expert_training import ExpertRecipe
from aggrevated.simulators.acrobot import Acrobot
from aggrevated.tasks import (
    BASELINE_ROWS,
    DISCRETE_ACTION_ROWS,
    FROM_SCRATCH_ROWS,
    INTERPOLATION_ROWS,
    PAPER_PRESETS,
    ComparisonProtocol,
    Preset,
    Task,
    make_aggrevated_rows,
)

PROBLEM = ControlProblem(make=Acrobot, worst_return=negative_horizon, horizon=200, expert="acrobot")
TASK = Task(
    name="acrobot",
    title="Acrobot",
    problem=PROBLEM,
    defaults=(Preset({"hidden": (16,)}),),
    presets=(
        *PAPER_PRESETS,
        Preset({"trajectories": 50, "validation_episodes": 500}),  # returns vary more than on CartPole
        Preset({"delta_kl": 3e-4, "damping": 10.0}, update="natural"),
        Preset({"learning_rate": 0.05}, update="regular"),
        Preset({"learning_rate": 0.01}, update="follow-the-leader"),
    ),
    figure_rows=(
        *make_aggrevated_rows(trials=20),
        *DISCRETE_ACTION_ROWS,
        *INTERPOLATION_ROWS,
        *BASELINE_ROWS,
        *FROM_SCRATCH_ROWS,
    ),
    protocol=ComparisonProtocol(budget=250_000),
    trials=5,
    expert_recipe=ExpertRecipe(
        algorithm="DQN",
        environment="Acrobot-v1",
        steps=80_000,
        checkpoint_every=1000,
        band=(-95.0, -90.0),
        why=(
            "Deliberately a checkpoint with room above it: DQN reaches -80 later. In development AggreVaTeD ended "
            "between -81 and -90 whatever its expert's return, so a gain like the paper's needs one of -90 or less."
        ),
        settings={
            "learning_rate": 6.3e-4,
            "batch_size": 128,
            "buffer_size": 50_000,
            "learning_starts": 1000,
            "gamma": 0.99,
            "target_update_interval": 250,
            "train_freq": 4,
            "gradient_steps": 4,
            "exploration_fraction": 0.12,
            "exploration_final_eps": 0.1,
            "policy_kwargs": {"net_arch": [64, 64]},
        },
    ),
)
