"""A controller by hand that swings a pendulum up, made into a small network that is not below it.

python pendulum.py [--seed N] [--out FOLDER] [--small]
"""

import argparse
import json
from pathlib import Path

import numpy as np

from aggrevated import train


def swing_up(observation):
    """Pump energy until the pendulum reaches the top, and balance it there. Its torque is from -2 to 2."""
    cos, sin, speed = observation
    angle = np.arctan2(sin, cos)  # 0 is upright
    if cos > 0.9:
        return np.array([-10.0 * angle - 2.0 * speed])
    energy = speed**2 / 2 + 15 * (cos - 1)  # 0 at rest at the top
    return np.array([-energy * np.sign(speed or 1.0)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="the run's folder")
    parser.add_argument("--small", action="store_true", help="to see that it runs, not what it learns")
    given = parser.parse_args()

    few = {"iterations": 2, "trajectories": 2, "horizon": 50, "validation_episodes": 4, "test_episodes": 8}
    run = train("Pendulum-v1", expert=swing_up, seed=given.seed, out=given.out, **(few if given.small else {}))

    result = run.result().to_dict()
    print(json.dumps({
        "seed": given.seed,
        "expert": [round(result["expert_return"], 1), round(result["expert_standard_error"], 1)],
        "first": round(result["initial_return"], 1),
        "chosen": [round(result["test_return"], 1), round(result["test_standard_error"], 1)],
        "simulator_steps": result["simulator_steps"],
        "validation_steps": result["validation_steps"],
        "seconds": round(result["seconds"]),
    }))  # fmt: skip
