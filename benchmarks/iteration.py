"""Iterations of `train`, and the Monte-Carlo oracle alone, against an older version: seconds of CPU on one thread.

The older version is a checkout: `git worktree add ../old COMMIT`, then `--old ../old`. It must be 0.3.0 or later, as
`iterating.py` imports modules by their names since then.
"""

import interleave

# isort: split
import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from aggrevated.config.resolver import resolve_config
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.rollout.roll_in import RollInPolicy, roll_in

HERE = Path(__file__).parent
SAME = {  # every setting that changes the work of an iteration: defaults may change
    "trajectories": 50, "seed": 0, "alpha_start": 0.0, "validate_every": 1, "checkpoint_every": 10, "advantage": True,
    "entropy": 0.0, "anneal_iterations": 0, "target_kl": 0.0, "cost_scale": "raw", "solver": "closed-form",
}  # fmt: skip
ACROBOT = {"horizon": 200, "validation_episodes": 500}


@dataclass(frozen=True)
class Case:
    """The same work for both versions, or the default of each."""

    name: str
    task: str
    choices: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    units: int = 5  # of work in a slice
    before: int = 20  # units before the measurement: the work changes while a policy learns
    target: float | None = None  # ratio of the new version's seconds to the old one's
    work: str = "iterations"


def learning(task: str, policy: str, target: float, **settings: Any) -> Case:
    """Return iterations of AggreVaTeD with the natural update, as in the paper's figures."""
    choices = {"method": "aggrevated", "update": "natural", "policy": policy, "start": "random"}
    return Case(f"{task}, natural, K = 50", task, choices, SAME | settings, target=target)


ORACLE = {"trajectories": 50, "query_steps": 2, "horizon": 100, "advantage": True, "query_rollouts": 1}
CASES = (
    learning("cartpole", "mlp", 2.4, horizon=500, validation_episodes=200, hidden=[16], delta_kl=1e-4, damping=10.0),
    learning("acrobot", "mlp", 3.5, **ACROBOT, hidden=[16], delta_kl=3e-4, damping=10.0),
    learning("acrobot-partial", "lstm", 2.5, **ACROBOT, hidden=[32], delta_kl=1e-3, damping=1.0),
    *(Case(f"{task}, each its default", task) for task in ("cartpole", "acrobot", "acrobot-partial")),
    Case("hopper's oracle, K = 50, 2 steps", "hopper", {"oracle": "monte-carlo"}, ORACLE, 3, 2, 1.3, "answers"),
)


class Child:
    """A process with one of the versions that works on request."""

    def __init__(self, source: Path, case: Case, given: str) -> None:
        """Start the process and wait for its first unit of work."""
        command = [sys.executable, str(HERE / "iterating.py"), case.work]
        argument = json.dumps([case.task, dict(case.choices), dict(case.settings), given])
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        surroundings = {**os.environ, "PYTHONPATH": str(source.resolve()), "AGGREVATED_THREADS": "1"}
        self.process = subprocess.Popen([*command, argument], text=True, env=surroundings, **pipes)
        self.answer()

    def seconds(self, units: int) -> float:
        """Return the seconds of CPU per unit, over `units` units of work."""
        self.process.stdin.write(f"go {units}\n")
        self.process.stdin.flush()
        return self.answer() / units

    def answer(self) -> float:
        """Return the next printed number; exit if the process ended."""
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of {self.process.args[1]} ended with {self.process.wait()}; see above why")
        return float(line)

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait()


def measured(case: Case, sources: Mapping[str, Path], rounds: int) -> dict[str, list[float]]:
    """Return seconds of CPU per unit, one number per round; the versions take turns while the other one waits."""
    spent: dict[str, list[float]] = {name: [] for name in sources}
    with TemporaryDirectory() as folder, ExitStack() as children:
        given = {name: str(Path(folder) / name) for name in sources}
        if case.work == "answers":
            given = dict.fromkeys(sources, expert_trajectories(case, Path(folder)))
        running = {n: children.enter_context(Child(source, case, given[n])) for n, source in sources.items()}
        for child in running.values():
            child.seconds(case.before)
        for turn in range(rounds):
            for name in list(running)[:: 1 if turn % 2 else -1]:
                spent[name].append(running[name].seconds(case.units))
    return spent


def expert_trajectories(case: Case, folder: Path) -> str:
    """Write the expert's trajectories to a file, with actions close to the expert's; return its path."""
    config = resolve_config(case.task, **case.choices, **case.settings)
    problem = config.problem.build(0)
    seeds = derive_seeds(0, SeedPurpose.ROLL_IN, 1, config.loop.trajectories)
    found = roll_in(problem.simulator, RollInPolicy(problem.expert, None, alpha=1.0), seeds)
    noise = np.random.default_rng(0).normal(0.0, 0.1, found.actions.shape)
    arrays = {name: getattr(found, name) for name in ("states", "observations", "costs", "mask", "seeds")}
    learners = {"actions": (found.actions + noise).astype(found.actions.dtype), "by_expert": np.zeros_like(found.mask)}
    np.savez(folder / "trajectories.npz", **arrays, **learners)
    return str(folder / "trajectories.npz")


def commit(source: Path) -> str:
    """Return the commit of a checkout."""
    found = subprocess.run(["git", "-C", str(source), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or "no commit"


def options() -> argparse.Namespace:
    """Return the common options, and the path of the older version."""
    parser = interleave.parser(__doc__, rounds=9)
    parser.add_argument("--old", type=Path, required=True, help="a checkout of the older version")
    parser.add_argument("--only", default="", help="only the cases whose names start with this")
    return parser.parse_args()


def main() -> None:
    given = options()
    rows = []
    targets = []
    sources = {"old": given.old / "src", "new": HERE.parent / "src"}
    if not (sources["old"] / "aggrevated").is_dir():
        raise SystemExit(f"{given.old} is not a checkout; make one by `git worktree add {given.old} COMMIT`")
    for case in CASES:
        if not case.name.startswith(given.only):
            continue
        spent = measured(case, sources, given.rounds)
        for name, seconds in spent.items():
            contender = f"{name}, {commit(sources[name])}"
            rows.append(interleave.summary(case.name, contender, "CPU ms", [1000 * s for s in seconds]))
        faster = interleave.ratios(spent["old"], spent["new"])
        rows.append(interleave.summary(case.name, "old / new", "ratio", faster))
        if case.target is not None:
            targets.append(interleave.at_least(case.name, "old / new", case.target, faster))
    interleave.report("Whole iterations", rows, targets, given)


if __name__ == "__main__":
    main()
