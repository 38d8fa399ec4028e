"""The paper's figure "Cartpole": H = 500, K = 50, one layer of 16 ReLU, α = 0."""

from aggrevated.problems.control import ControlProblem
from aggrevated.problems.expert_training import ExpertRecipe
from aggrevated.simulators.cartpole import CartPole
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

TASK = Task(
    name="cartpole",
    title="CartPole",
    problem=ControlProblem(make=CartPole, horizon=500, expert="cartpole"),
    defaults=(Preset({"hidden": (16,)}),),
    presets=(
        *PAPER_PRESETS,
        Preset({"trajectories": 50, "validation_episodes": 200}),
        Preset({"delta_kl": 1e-4, "damping": 10.0}, update="natural"),
        Preset({"learning_rate": 0.03}, update="regular"),
        Preset({"learning_rate": 0.01}, update="follow-the-leader"),
        Preset({"learning_rate": 0.1}, method="reinforce", update="regular"),
    ),
    figure_rows=(
        *make_aggrevated_rows(trials=20),
        *DISCRETE_ACTION_ROWS,
        *INTERPOLATION_ROWS,
        *BASELINE_ROWS,
        *FROM_SCRATCH_ROWS,
    ),
    protocol=ComparisonProtocol(budget=400_000),
    trials=5,
    expert_recipe=ExpertRecipe(
        algorithm="DQN",
        environment="CartPole-v1",
        steps=50_000,
        checkpoint_every=512,
        band=(350.0, 400.0),
        why=(
            "Deliberately not the best checkpoint: others, shortly before and after, reach 500 of 500. The paper's "
            "learner surpasses its expert by 25 %, which can only be seen with an expert of at most 400."
        ),
        settings={
            "learning_rate": 2.3e-3,
            "batch_size": 64,
            "buffer_size": 100_000,
            "learning_starts": 1000,
            "gamma": 0.99,
            "target_update_interval": 10,
            "train_freq": 256,
            "gradient_steps": 128,
            "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
            "policy_kwargs": {"net_arch": [64, 64]},
        },
    ),
)
