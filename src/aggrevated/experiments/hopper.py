"""The paper's figure "Hopper": H = 100, K = 50, one layer of 64, supervised start, 5 trials."""

from functools import partial

from aggrevated.experiments import CONTINUOUS, ControlTask
from aggrevated.simulators.mujoco import MuJoCo

TASK = ControlTask(
    name="hopper",
    title="Hopper",
    simulator=partial(MuJoCo, "hopper"),
    horizon=100,
    floor=lambda horizon: 0.0,
    expert="hopper",
    seen_by_expert=partial(MuJoCo, "hopper"),
    policy="mlp",
    hidden=(64,),
    trajectories=50,
    iterations=40,
    validation_episodes=100,
    settings={
        "supervised": {"start_steps": 4000, "log_deviation": -2.0},
        "aggrevated": {"start": "supervised", "queried_steps": 10},
        "random/reinforce": {"learning_rate": 0.03},
        "random/tnpg": {"delta_kl": 0.1},
        "natural": {"delta_kl": 1e-2, "damping": 10.0},
        "regular": {"learning_rate": 3e-3},
    },
    figure=CONTINUOUS,
    oracles=("monte-carlo", "value-function"),
    packages=("mujoco",),
    trials=5,
)
