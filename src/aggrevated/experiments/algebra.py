"""Section 6.2 of the paper, dependency parsing of handwritten algebra: Table 1 and "UAS versus iterations"."""

from aggrevated.experiments import TO_THE_END, Row, Task

TASK = Task(
    name="algebra",
    title="Handwritten algebra",
    world="parsing",
    horizon=1,  # not used: a parse ends by itself
    expert="gold",
    policy="contextual",
    policies=("contextual", "lstm", "reactive", "kernel-svm"),
    hidden=(128,),
    trajectories=16,
    iterations=1500,
    validation_episodes=1,  # not used: all validation pages, always
    settings={
        "always": {"annealed": TO_THE_END, "dropout": 0.3, "warps": 8, "validate_every": 25, "checkpoint_every": 100},
        "reactive": {"hidden": (1000,)},
        "contextual": {"geometry": True},
        "kernel-svm": {  # one fit for each iteration: few, with more pages
            "update": "support-vectors",
            "iterations": 8,
            "trajectories": 64,
            "mixing": 1.0,
            "validate_every": 1,
            "checkpoint_every": 1,
        },
        "supervised": {"start_steps": 500, "demonstrations": 2000, "start_rate": 2e-3},
        "aggrevated": {"start": "supervised", "update": "regular", "entropy": 0.2},
        "regular": {"learning_rate": 2e-3},
        "natural": {"delta_kl": 1e-3, "damping": 10.0},
        "dagger": {"update": "regular"},
        "sl": {"update": "regular"},
        "sl-rl": {"update": "regular"},
    },
    figure=(Row("aggrevated", "regular"),),
    oracles=("gold", "monte-carlo"),
    trials=3,
    measured="UAS",
    packages=("defusedxml",),
)
