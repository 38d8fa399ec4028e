"""Environments and experts that are unknown to the library: whether they work, and the results at default settings.

    python benchmarks/strangers.py experts           # trains the models of Stable-Baselines3, some minutes
    python benchmarks/strangers.py try               # all cases for two iterations, then the cases to refuse
    python benchmarks/strangers.py run [--only "Taxi-v4;nim"] [--methods "aggrevated;dagger"] [--seeds 2]
    python benchmarks/strangers.py report

`run` makes the missing runs one at a time, each a JSON file in the folder of runs; `report` reads them and writes
docs/results/strangers.{json,md,png}.
"""

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import stranger_experts as experts
import stranger_worlds as worlds

RESULTS = Path(__file__).parent.parent / "docs" / "results"
RUNS = Path("runs") / "strangers"
TESTED = 400  # fresh episodes
ITERATIONS = 30  # the default is 100: the comparison is of the early results


@dataclass(frozen=True)
class Case:
    """An environment and an expert."""

    environment: Any
    expert: Callable[[], Any]
    kind: str  # of expert
    settings: dict[str, Any] = field(default_factory=dict)


def model(name):
    """Return the path of a model's zip."""
    return lambda: str(RUNS / "experts" / f"{name}.zip")


def options(**given):
    """Return options of an environment."""
    return {"environment_options": json.dumps(given)}


def thing(given):
    """Return the expert unchanged."""
    return lambda: given


CASES = {
    "Taxi-v4": Case("Taxi-v4", lambda: experts.Table("Taxi-v4"), "q"),
    "CliffWalking-v1": Case("CliffWalking-v1", lambda: experts.Worth("CliffWalking-v1"), "v", {"horizon": 100}),
    "FrozenLake-v1": Case("FrozenLake-v1", lambda: experts.Table("FrozenLake-v1", is_slippery=True), "q"),
    "FrozenLake-v1, not slippery": Case("FrozenLake-v1", thing(experts.planner), "planner", options(is_slippery=False)),
    "Blackjack-v1": Case("Blackjack-v1", thing(experts.basic), "function", {"horizon": 12}),
    "MountainCar-v0": Case("MountainCar-v0", thing(experts.push), "function"),
    "MountainCarContinuous-v0": Case("MountainCarContinuous-v0", thing(experts.pump), "function"),
    "Acrobot-v1": Case("Acrobot-v1", model("acrobot-ppo"), "PPO zip"),
    "CartPole-v1": Case("CartPole-v1", model("cartpole-dqn"), "DQN zip"),
    "LunarLander-v3": Case("LunarLander-v3", thing(experts.land), "function"),
    "LunarLander-v3, DQN": Case("LunarLander-v3", model("lander-dqn"), "DQN zip"),
    "LunarLanderContinuous-v3": Case("LunarLanderContinuous-v3", thing(experts.land_smoothly), "function"),
    "InvertedPendulum-v5": Case("InvertedPendulum-v5", model("pole-ppo"), "PPO zip", {"horizon": 300}),
    "Reacher-v5": Case("Reacher-v5", model("reacher-sac"), "SAC zip"),
    "HalfCheetah-v5": Case("HalfCheetah-v5", model("cheetah-sac"), "SAC zip", {"horizon": 100}),
    "Pendulum-v1": Case("Pendulum-v1", model("pendulum-td3"), "TD3 zip"),
    "Swimmer-v5": Case("Swimmer-v5", thing(experts.swim), "function", {"horizon": 200}),
    "MountainCar-v0, recorded": Case(
        "MountainCar-v0", lambda: experts.recorded("MountainCar-v0", experts.push), "demonstrations"
    ),
    "warehouse": Case(worlds.Warehouse, thing(worlds.fetch), "function", {"horizon": 40}),
    "nim": Case(worlds.Nim, lambda: worlds.NimPlayer(), "object with act", {"horizon": 12}),
    "spot": Case(worlds.Spot, thing(worlds.steer), "function", {"horizon": 20}),
    "treasury": Case(worlds.Treasury, lambda: worlds.Banker(), "q", {"horizon": 50}),
    "machines": Case(worlds.Machines, thing(worlds.repair), "function", {"horizon": 60}),
    "lift": Case(worlds.Lift, thing(worlds.towards), "function", {"horizon": 60}),
    "thermostat": Case(worlds.Thermostat, lambda: worlds.Heating(), "nn.Module", {"horizon": 40}),
    "stacked": Case(worlds.stacked, thing(worlds.balance), "function"),
    "tracker": Case(worlds.Tracker, thing(lambda o: o[3:] - o[:3]), "function", {"horizon": 50}),
}


def wrong_expert(expert, environment="CartPole-v1", **settings):
    """Return a case with an expert that cannot teach in the environment."""
    return environment, thing(expert), settings


REFUSED = {
    "draws from a global generator": (worlds.Unseeded, thing(worlds.first), {}),
    "gives four things as a step": (worlds.Old, thing(worlds.first), {}),
    "shows text": (worlds.Worded, thing(worlds.first), {}),
    "takes a Dict of actions": (worlds.Composed, thing(worlds.first), {}),
    "shows NaN": (worlds.NotANumber, thing(worlds.first), {}),
    "has a million actions": (worlds.Many, thing(worlds.first), {}),
    "divides by zero": (worlds.Crashing, thing(worlds.first), {}),
    "keeps statistics": (worlds.Learning, thing(worlds.first), {}),
    "large pictures": ("CarRacing-v3", thing(worlds.first), {}),
    "an id that is none": ("LunarLandr-v3", thing(worlds.first), {}),
    "a version that is gone": ("Taxi-v3", thing(worlds.first), {}),
    "no expert": ("CartPole-v1", thing(None), {}),
    "a zip of another environment": ("MountainCar-v0", model("cartpole-dqn"), {}),
    "a zip that is none": wrong_expert(__file__),
    "a function of three things": wrong_expert(lambda a, b, c: 0),
    "an action out of range": wrong_expert(lambda observation: 7),
    "no action": wrong_expert(lambda observation: None),
    "a vector for a choice": wrong_expert(lambda observation: observation),
    "a function that raises": wrong_expert(lambda observation: observation["angle"]),
    "q of another size": wrong_expert(type("Q", (), {"q": lambda self, observations: observations[:, :3]})()),
    "q with NaN": wrong_expert(type("Q", (), {"q": lambda self, observations: observations[:, :2] * float("nan")})()),
    "recordings of another size": wrong_expert([([[0.0, 1.0]] * 5, [0, 1, 0, 1, 0])]),
    "an empty recording": wrong_expert([]),
    "a class": wrong_expert(worlds.Heating, worlds.Thermostat),
    "a number": wrong_expert(5),
}


def trained(case, method, seed, folder, **settings):
    """Train one run of a case."""
    from aggrevated import train

    given = dict(case.settings) | settings
    return train(
        case.environment, method, expert=case.expert(), out=folder, say=lambda _: None, warn=lambda _: None,
        seed=seed, **given,
    )  # fmt: skip


def try_all(only):
    """Run all cases for two iterations, then the cases to refuse, with one line each."""
    from aggrevated.core.errors import AggrevatedError

    small = {"iterations": 2, "validation_episodes": 4, "test_episodes": 8}
    jobs = [(name, method, case) for name, case in CASES.items() for method in ("aggrevated", "dagger")]
    jobs += [(name, "refused", Case(env, expert, "", more)) for name, (env, expert, more) in REFUSED.items()]
    for name, method, case in jobs:
        if only and name not in only:
            continue
        scratch = Path(mkdtemp())
        began = time.monotonic()
        try:
            with_method = "aggrevated" if method == "refused" else method
            result = trained(case, with_method, 0, scratch / "run", **small).result().more
            outcome = f"works: {result['test_return']:.2f} against the expert's {result['expert_return']:.2f}"
        except AggrevatedError as error:
            outcome = f"{type(error).__name__}: {error}"
        except Exception:
            outcome = f"BROKEN: {traceback.format_exc()}"
        finally:
            rmtree(scratch, ignore_errors=True)
        print(f"{name}; {method}; {time.monotonic() - began:.1f} s; {outcome}", flush=True)


def measured(name, method, seed):
    """Make one run and return its facts."""
    case = CASES[name]
    scratch = Path(mkdtemp())
    began = time.monotonic()
    try:
        run = trained(case, method, seed, scratch / "run", iterations=ITERATIONS, test_episodes=TESTED)
        lines = [line.to_dict() for line in run.metrics()]
        keys = ("n", "simulator_steps", "oracle_queries", "current_return", "best_return")
        config = run.config
        return {
            "result": {k: v for k, v in run.result().to_dict().items() if k != "run_folder"},
            "points": [[line.get(key) for key in keys] for line in lines],
            "oracle": config.oracle.name,
            "policy": config.policy.name,
            "seconds": time.monotonic() - began,
        }
    finally:
        rmtree(scratch, ignore_errors=True)


def run_missing(only, methods, seeds):
    """Make the missing runs."""
    RUNS.mkdir(parents=True, exist_ok=True)
    for seed in range(seeds):
        for name in only:
            for method in methods:
                path = RUNS / f"{name}; {method}; {seed}.json"
                if path.exists():
                    continue
                facts = measured(name, method, seed)
                path.write_text(json.dumps(facts))
                result = facts["result"]
                returns = f"{result['test_return']:.3f} against {result['expert_return']:.3f}"
                print(f"{name}, {method}, seed {seed}: {returns}, {facts['seconds']:.0f} s", flush=True)


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("experts", "try", "run", "report"))
    parser.add_argument("--only", default="", help="cases, separated by semicolons (default: all)")
    parser.add_argument("--methods", default="aggrevated;dagger")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    only, methods = ([part for part in text.split(";") if part] for text in (options.only, options.methods))
    if options.what == "experts":
        for name in experts.MODELS:
            began = time.monotonic()
            path = experts.train_model(name, RUNS / "experts")
            print(f"{path}: {time.monotonic() - began:.0f} s", flush=True)
    elif options.what == "try":
        try_all(only)
    elif options.what == "run":
        run_missing(only or [*CASES], methods, options.seeds)
    else:
        from strangers_report import report

        report(CASES, RUNS, RESULTS)


if __name__ == "__main__":
    sys.exit(main())
