"""Natural and regular steps without tuning for the task against tuned ones: best return on validation.

`python benchmarks/untuned_steps.py acrobot-partial --policy lstm --trajectories 10 --iterations 30 --trials 2`
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from aggrevated import train

NATURAL: dict[str, Any] = {"update": "natural", "target_kl": 0.02, "cost_scale": "advantage-rms"}
STEPS: dict[str, dict[str, Any]] = {
    "natural, tuned for the task": {"update": "natural"},
    "natural, per state": {**NATURAL, "solver": "per-state"},
    "natural, held out": {**NATURAL, "solver": "held-out"},
    "natural, ten iterations, undamped": {**NATURAL, "solver": "conjugate-gradient", "damping": 0.0},
    "natural, damping 10": {**NATURAL, "damping": 10.0},
    "regular, tuned for the task": {"update": "regular"},
    "regular, rate 0.01": {"update": "regular", "learning_rate": 0.01, "cost_scale": "advantage-rms"},
    "regular, to the target": {
        "update": "regular",
        "learning_rate": 0.01,
        "target_kl": 0.02,
        "cost_scale": "advantage-rms",
    },
}


def curves(options: argparse.Namespace, step: dict[str, Any]) -> np.ndarray:
    """Return the best return so far, [trials, N]."""
    common = {"trajectories": options.trajectories, "iterations": options.iterations, "policy": options.policy}
    fast = {"validation_episodes": 100, "test_episodes": 1, "validate_every": 1}
    runs = []
    for seed in range(options.seed, options.seed + options.trials):
        with tempfile.TemporaryDirectory() as folder:
            run = train(options.task, out=Path(folder) / "run", seed=seed, **common, **fast, **step)
            runs.append([line.best_return for line in run.metrics()])
    return np.array(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("--policy")
    for name, default in (("trajectories", 10), ("iterations", 30), ("trials", 3), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    n = options.iterations
    print(f"| step | best after {n // 3} iterations | after {n} | ± |\n|---|---|---|---|")
    for name, step in STEPS.items():
        best = curves(options, step)
        early = best[:, n // 3 - 1]
        late = best[:, -1]
        print(f"| {name} | {early.mean():.1f} | {late.mean():.1f} | {late.std():.1f} |", flush=True)


if __name__ == "__main__":
    main()
