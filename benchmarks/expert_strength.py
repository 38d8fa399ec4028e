"""Eight experts from bad to best: checkpoints of the training of a task's builtin expert, chosen by a rule.

`python benchmarks/expert_strength.py acrobot` writes strength/acrobot-1 … -8, worst first, and the other results.
"""

import interleave

# isort: split
import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from aggrevated import __version__
from aggrevated.core.hardware import single_thread
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.experts.loading import BUILTIN_WEIGHTS
from aggrevated.experts.network_layouts import build_expert
from aggrevated.problems.control import require_control_problem
from aggrevated.problems.expert_training import EPISODES, extract_expert_weights, make_expert_card, make_sb3_model
from aggrevated.storage import save_checksummed, write_json
from aggrevated.tasks import find_task
from aggrevated.validation import evaluate_mean_return

EXPERTS = 8
EVERY = 500  # steps between checkpoints: half of the recipe's, because the first steps change most
RULE = (
    f"of those every {EVERY} steps, the ones nearest to {EXPERTS} lengths of an episode in equal ratios, from the "
    f"worst that reaches the goal at all to the best, by {EPISODES} episodes of their own"
)
WHY = "One of eight for docs/where-it-pays.md, from bad to best: what a learner gains over experts of any strength."


def trained(task: str, seed: int) -> tuple[list[int], list[float], list[dict[str, Tensor]]]:
    """Return (steps, mean return, weights) of every checkpoint of the task's recipe."""
    recipe = find_task(task).expert_recipe
    simulator = require_control_problem(find_task(task).problem, "this").simulator
    model = make_sb3_model(recipe, simulator, seed)
    episodes = derive_seeds(seed, SeedPurpose.VALIDATION, 0, EPISODES)
    steps: list[int] = []
    returns: list[float] = []
    weights: list[dict[str, Tensor]] = []

    def keep(scope: dict[str, Any], _: dict[str, Any]) -> bool:
        """Record a checkpoint; Stable-Baselines3 calls this after every step."""
        if model.num_timesteps % EVERY == 0:
            found = extract_expert_weights(model.policy.state_dict())
            steps.append(model.num_timesteps)
            weights.append(found)
            returns.append(
                evaluate_mean_return(build_expert(found, recipe.network, task, simulator), simulator, episodes)
            )
            print(f"{task}: {returns[-1]:.2f} after {steps[-1]:,} steps", flush=True)
        return True

    with single_thread():
        model.learn(recipe.steps, callback=keep)
    return steps, returns, weights


def chosen(returns: Sequence[float], lowest: float) -> list[int]:
    """Return the indices of distinct checkpoints, worst first, nearest to episode lengths in equal ratios."""
    lengths = -np.array(returns)
    reaching = lengths[lengths < -lowest]
    places: list[int] = []
    for wanted in np.geomspace(reaching.max(), reaching.min(), EXPERTS):
        order = np.argsort(np.abs(np.log(lengths / wanted)), kind="stable")
        places.append(next(int(i) for i in order if i not in places and lengths[i] < -lowest))
    return sorted(places, key=lambda i: returns[i])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["acrobot"], help="a task whose cost is the length of an episode")
    parser.add_argument("--seed", type=int, default=0, help="seed of the training (default: the builtin expert's)")
    parser.add_argument(
        "--folder", type=Path, default=BUILTIN_WEIGHTS / "strength", help="folder of TASK-1.safetensors and so on"
    )
    options = parser.parse_args()
    task = find_task(options.task)
    began = time.process_time()
    problem = require_control_problem(task.problem, "this")
    steps, returns, weights = trained(task.name, options.seed)
    command = f"python benchmarks/expert_strength.py {task.name} --seed {options.seed}"
    options.folder.mkdir(parents=True, exist_ok=True)
    places = chosen(returns, problem.worst_return(problem.horizon))
    for number, i in enumerate(places, 1):
        facts = make_expert_card(task.name, task.expert_recipe, problem.simulator, options.seed, steps[i], weights[i])
        facts = replace(facts, command=command, chosen=RULE, why=WHY)
        save_checksummed(options.folder / f"{task.name}-{number}.safetensors", weights[i], facts.to_dict())
        print(f"{number}: step {steps[i]:,}, {facts.mean_return:.2f} ± {facts.standard_error:.2f} on fresh episodes")
    versions = {name: found for name in interleave.PACKAGES if (found := interleave.installed(name))}
    record = {
        "command": command,
        "rule": RULE,
        "steps": steps,
        "returns": [round(returned, 3) for returned in returns],
        "chosen": [steps[i] for i in places],
        "cpu_seconds": round(time.process_time() - began, 1),
        "versions": versions | {"aggrevated": __version__},
    }
    write_json(options.folder / f"{task.name}.json", record)


if __name__ == "__main__":
    main()
