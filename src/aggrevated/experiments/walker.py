"""The paper's figure "Walker": as Hopper, with another robot and expert."""

from dataclasses import replace
from functools import partial

from aggrevated.experiments import hopper
from aggrevated.simulators.mujoco import MuJoCo

TASK = replace(
    hopper.TASK,
    name="walker",
    title="Walker",
    simulator=partial(MuJoCo, "walker"),
    expert="walker",
    seen_by_expert=partial(MuJoCo, "walker"),
    iterations=20,
    settings={
        "supervised": {"start_steps": 4000, "log_deviation": -1.5},
        "aggrevated": {"start": "supervised", "queried_steps": 10},
        "random/reinforce": {"learning_rate": 0.01},
        "random/tnpg": {"delta_kl": 0.1},
        "natural": {"delta_kl": 3e-3, "damping": 10.0},
        "regular": {"learning_rate": 3e-4},
    },
)
