"""The paper's figure "Walker": Hopper's settings with another robot and expert."""

from dataclasses import replace
from functools import partial

from aggrevated.problems.expert_training import ExpertRecipe
from aggrevated.simulators.mujoco import MuJoCo
from aggrevated.tasks import ComparisonProtocol, Preset, hopper

TASK = replace(
    hopper.TASK,
    name="walker",
    title="Walker",
    problem=replace(hopper.PROBLEM, make=partial(MuJoCo, "walker"), expert="walker"),
    presets=(
        *hopper.TASK.presets,
        Preset({"iterations": 20}),
        Preset({"log_deviation": -1.5}, start="supervised"),
        Preset({"delta_kl": 3e-3}, update="natural"),
        Preset({"learning_rate": 3e-4}, update="regular"),
        Preset({"learning_rate": 0.01}, method="reinforce", start="random"),
        Preset({"delta_kl": 0.1}, method="tnpg", start="random"),
    ),
    protocol=ComparisonProtocol(budget=100_000, tuning_seeds=(100,), tuning_budget=50_000),
    expert_recipe=ExpertRecipe(
        algorithm="TRPO",
        environment="Walker2d-v5",
        steps=800_000,
        checkpoint_every=10_240,
        band=(180.0, 190.0),
        why=(
            "Deliberately a checkpoint with room above it: TRPO reaches 203 within 600,000 steps. The paper's learner "
            "surpasses its expert by 5.4 %."
        ),
        settings=hopper.TRPO_SETTINGS,
    ),
)
