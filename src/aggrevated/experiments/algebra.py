"""Section 6.2 of the paper, dependency parsing of handwritten algebra: Table 1 and "UAS versus iterations"."""

from aggrevated.experiments import TO_THE_END, Row, Task

CURVES = (Row("aggrevated", "regular", "lstm", paper=0.924), Row("aggrevated", "natural", "lstm", paper=0.915))
BEYOND = (Row("aggrevated", "regular", "contextual"), Row("sl", "regular", "contextual"))
ONE_WRITER = tuple(
    Row("aggrevated", "regular", policy, settings={"single_writer": True}) for policy in ("lstm", "contextual")
)
TABLE1 = (
    *CURVES,
    Row("sl", "regular", "lstm", paper=0.813),
    Row("dagger", "regular", "lstm"),
    Row("dagger", "support-vectors", "kernel-svm", paper=0.832),
    Row("sl-rl", "regular", "lstm", paper=0.826),
    Row("sl-rl", "natural", "lstm", paper=0.824),
    Row("reinforce", "regular", "lstm", paper=0.256),
    Row("tnpg", "natural", "lstm", paper=0.237),
    Row("aggrevated", "regular", "reactive", paper=0.851),
    Row("aggrevated", "natural", "reactive", paper=0.800),
    Row("sl", "regular", "reactive", paper=0.325),
    Row("sl-rl", "regular", "reactive", paper=0.386),
    Row("sl-rl", "natural", "reactive", paper=0.345),
    Row("reinforce", "regular", "reactive", paper=0.227),
    Row("tnpg", "natural", "reactive", paper=0.241),
    *BEYOND,
    *ONE_WRITER,
)
REAL_INK = (
    Row("aggrevated", "regular", "contextual"),
    Row("aggrevated", "regular", "lstm", settings={"iterations": 1000}),
)
# Reinforcement learning hears of its costs at the end of a page only: more pages for each step.
OF_THE_END = {"trajectories": 64, "iterations": 300}
WIDE = {"trajectories": 32, "iterations": 100}  # a reactive network has 1.5 million weights, and steps are slow
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
    iterations=2000,
    validation_episodes=1,  # not used: all validation pages, always
    settings={
        "always": {"annealed": TO_THE_END, "dropout": 0.3, "warps": 8, "validate_every": 25, "checkpoint_every": 100},
        "supervised": {"start_steps": 300, "demonstrations": 2000, "start_rate": 2e-3},
        "reactive": {"hidden": (1000,), "iterations": 800, "start_rate": 5e-4},
        "contextual": {"geometry": True, "iterations": 600},
        "kernel-svm": {  # one fit for each iteration: few, with more pages
            "update": "support-vectors",
            "iterations": 8,
            "trajectories": 64,
            "mixing": 1.0,
            "validate_every": 1,
            "checkpoint_every": 1,
        },
        "aggrevated": {"start": "supervised", "update": "regular", "entropy": 0.4},
        "dagger": {"update": "regular"},
        "sl": {"update": "regular"},
        "sl-rl": {"update": "regular", "start_steps": 2000},  # as long as SL itself
        "regular": {"learning_rate": 2e-3},
        "natural": {"delta_kl": 1e-3, "damping": 1.0, "trajectories": 64, "iterations": 400},
        "sl-rl/natural": {"iterations": 200},
        "tnpg/natural": {"iterations": 200},
        "sl-rl/regular": OF_THE_END | {"learning_rate": 1e-3},
        "reinforce/regular": OF_THE_END | {"learning_rate": 1e-3},
        "aggrevated/regular/reactive": {"learning_rate": 5e-4},
        "sl/regular/reactive": {"learning_rate": 5e-4},
        "sl-rl/regular/reactive": WIDE | {"learning_rate": 3e-4, "start_steps": 800},
        "reinforce/regular/reactive": WIDE | {"learning_rate": 3e-4},
        "aggrevated/natural/reactive": WIDE,
        "sl-rl/natural/reactive": WIDE | {"start_steps": 800},
        "tnpg/natural/reactive": WIDE,
    },
    figure=CURVES,
    oracles=("gold", "monte-carlo"),
    trials=3,
    measured="UAS",
    digits=3,
)
