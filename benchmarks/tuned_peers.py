"""Environment steps that tuned peers need to reach our experts, and 1.05 times the expert's return.

A peer chooses from the same few settings on two tuning seeds. The one that reaches the expert first, by the median, is
run on the seeds 0 and up: `python benchmarks/tuned_peers.py --peer ppo --task cartpole`. A run ends at the goal or with
its budget. Finished runs are not repeated.
"""

import interleave

# isort: split
import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

import peers
from aggrevated import __version__
from aggrevated.algorithm import aggrevated
from aggrevated.config.builder import build_algorithm_inputs
from aggrevated.config.resolver import resolve_config
from aggrevated.core.arrays import Array
from aggrevated.core.hardware import describe_machine
from aggrevated.core.rng import SeedPurpose, derive_seeds
from aggrevated.experts.loading import read_builtin_expert_cards
from aggrevated.policies import Policy
from aggrevated.problems.control import require_control_problem
from aggrevated.storage import JsonDict, read_json, write_json
from aggrevated.tasks import find_task
from as_environment import AsEnvironment, mean_return_seen

FOLDER = peers.FOLDER / "tuned"
TUNING_SEEDS = (100, 101)
BEYOND = 1.05
Settings = Mapping[str, Any]


class Enough(Exception):
    """The peer has reached the goal or used its budget."""


@dataclass(frozen=True)
class Contest:
    """A peer on a task: its grid of settings and its limits."""

    train: Callable[[str, int, Settings, "Contest", peers.Report], None]
    grid: Mapping[str, Settings]  # by name; the peer's defaults are the first
    budget: int  # of environment steps
    every: int = 1  # steps between points; later a tenth of the steps so far
    episodes: int = 100  # of each point
    seeds: int = 5
    tuning_budget: int | None = None  # of each tuning run; None: the same


# ---- training of peers


def when_due(contest: Contest, report: peers.Report) -> Callable[[int, Callable[[], peers.Choose]], None]:
    """Return a function that reports only when the next point is due."""
    due = 0.0

    def point(taken: int, mode: Callable[[], peers.Choose]) -> None:
        nonlocal due
        if taken >= due:
            due = max(taken + contest.every, 1.1 * taken)
            report(taken, mode())

    return point


class Points(BaseCallback):
    """Callback that reports after each update, at the start of a rollout, when a point is due."""

    def __init__(self, contest: Contest, report: peers.Report) -> None:
        super().__init__()
        self.point = when_due(contest, report)

    def _on_rollout_start(self) -> None:
        self.point(self.num_timesteps, lambda: peers.mode_of(self.model))

    def _on_step(self) -> bool:
        return True


def by_gradients(
    kind: Callable[..., Any],
) -> Callable[[str, int, Settings, Contest, peers.Report], None]:
    """Return the training function of an algorithm of Stable-Baselines3."""

    def train(task: str, seed: int, settings: Settings, contest: Contest, report: peers.Report) -> None:
        given = {name: peers.scheduled(value) for name, value in settings.items()}
        # schedules end with the steps of the settings' author
        n_envs = given.pop("n_envs", 1)
        normalise = given.pop("normalize", False)
        steps = given.pop("n_timesteps", 10**6)
        frames = given.pop("frames", 1)
        if "activation_fn" in given.get("policy_kwargs", {}):
            relu = {"activation_fn": torch.nn.ReLU}
            given["policy_kwargs"] = {**given["policy_kwargs"], **relu}
        environment = lanes_of(task, n_envs, seed, frames)
        if normalise:
            environment = VecNormalize(environment, gamma=given["gamma"])
        model = kind("MlpPolicy", environment, seed=seed, device="cpu", **given)
        model.learn(steps, callback=Points(contest, report))

    return train


def lanes_of(task: str, n_envs: int, seed: int, frames: int) -> VecEnv:
    """Return Gymnasium's environments, or ours where it has none."""
    simulator = peers.simulator_of(task)
    if find_task(task).expert_recipe is None:
        return make_vec_env(lambda: AsEnvironment(simulator, frames), n_envs, seed=seed)
    return make_vec_env(
        peers.environment_of(task), n_envs, seed=seed, env_kwargs={"max_episode_steps": simulator.horizon}
    )


def trpo(task: str, seed: int, settings: Settings, contest: Contest, report: peers.Report) -> None:
    """Train TRPO of sb3-contrib, which is not installed together with `imitation`."""
    by_gradients(import_module("sb3_contrib").TRPO)(task, seed, settings, contest, report)


def dagger(task: str, seed: int, settings: Settings, contest: Contest, report: peers.Report) -> None:
    """Train DAgger of `imitation`, which is installed in a separate environment."""
    simulator = peers.simulator_of(task)
    in_gymnasium = task in ("cartpole", "acrobot")  # equal in all versions of Gymnasium
    frames = settings.get("frames", 1)
    environment = peers.environment_of(task) if in_gymnasium else AsEnvironment(simulator, frames)
    import_module("imitation_dagger").train(simulator, environment, seed, settings, contest.budget, report)


def of_ours(method: str) -> Callable[[str, int, Settings, Contest, peers.Report], None]:
    """Return the training function of one of our methods, measured like peers: by its mode, after an update."""

    def train(task: str, seed: int, settings: Settings, contest: Contest, report: peers.Report) -> None:
        config = resolve_config(task, method, seed=seed, **settings)
        if config.start.name != "random":
            raise SystemExit(f"{method} on {task} has a {config.start.name} start, which would be on no bill here")
        setup = build_algorithm_inputs(config)
        learner = setup.learner
        problem = setup.problem
        loop = {"seed": seed, "k": config.loop.trajectories, "alpha": setup.alpha}
        no_validation = {"validate": lambda policy: 0.0, "validate_every": 2**31}  # as for peers
        point = when_due(contest, report)
        point(0, lambda: mode_of_ours(learner.policy))
        for _ in aggrevated(
            learner, problem.simulator, problem.expert, setup.oracle, setup.loss, **loop, **no_validation
        ):
            point(learner.simulator_steps, lambda: mode_of_ours(learner.policy))

    return train


def mode_of_ours(policy: Policy) -> peers.Choose:
    """Return the mode of our policy, in episodes that all begin with the first call."""
    memory = None

    def choose(observations: Array) -> Array:
        nonlocal memory
        actions, memory = policy.predict(observations, memory, deterministic=True)
        return actions

    return choose


# ---- measurement


def curve(task: str, seed: int, settings: Settings, contest: Contest, ratio: float, budget: int) -> JsonDict:
    """Return the points of one run until its return is `ratio` times the expert's, or its budget is used."""
    problem = require_control_problem(find_task(task).problem, "this")
    episodes = derive_seeds(peers.TEST_SEED, SeedPurpose.TEST, 0, contest.episodes)
    enough = goal(task, ratio)
    frames = settings.get("frames", 1)
    steps: list[int] = []
    returns: list[float] = []
    began = time.process_time()
    measuring = 0.0

    def report(taken: int, choose: peers.Choose) -> None:
        nonlocal measuring
        since = time.process_time()
        steps.append(taken)
        returns.append(round(mean_return_seen(problem.simulator, choose, episodes, frames), 3))
        measuring += time.process_time() - since
        if returns[-1] >= enough or taken >= budget:
            raise Enough

    with suppress(Enough):
        contest.train(task, seed, settings, contest, report)
    seconds = round(time.process_time() - began - measuring, 1)
    print(f"{task}, seed {seed}: {max(returns):.1f} at best within {steps[-1]:,} steps, {seconds:.0f} s", flush=True)
    return {"steps": steps, "returns": returns, "cpu_seconds": seconds, "measuring_seconds": round(measuring, 1)}


def goal(task: str, ratio: float) -> float:
    """Return the return that is `ratio` times the expert's, counted from the worst possible return."""
    problem = require_control_problem(find_task(task).problem, "this")
    expert = read_builtin_expert_cards()[problem.expert].mean_return
    lowest = problem.worst_return(problem.horizon)
    return lowest + ratio * (expert - lowest)


def steps_to(level: float, found: JsonDict) -> int | None:
    """Return the environment steps at which the return first reached the level; None: never."""
    return next((n for n, r in zip(found["steps"], found["returns"], strict=True) if r >= level), None)


def middle(values: list[int | None]) -> float | None:
    """Return the median, with None (never reached) above all numbers."""
    found = statistics.median_low([inf if value is None else value for value in values])
    return None if found == inf else found


def tuned(task: str, contest: Contest, done: JsonDict, save: Callable[[JsonDict], None]) -> str:
    """Return the setting that reaches the expert first, by the median of its seeds, or else earns most."""
    level = goal(task, 1.0)
    most = contest.tuning_budget or contest.budget
    for name, settings in contest.grid.items():
        tried = done.setdefault(name, {"settings": dict(settings), "curves": {}})
        for seed in TUNING_SEEDS:
            if str(seed) not in tried["curves"]:
                print(f"tuning, {name}: ", end="", flush=True)
                tried["curves"][str(seed)] = curve(task, seed, settings, contest, 1.0, most)
                save(done)
        curves = tried["curves"].values()
        tried["steps_to_expert"] = [steps_to(level, one) for one in curves]
        tried["mean_best_return"] = round(statistics.mean(max(one["returns"]) for one in curves), 3)

    def order(name: str) -> tuple[float, float]:
        late = statistics.median(inf if n is None else n for n in done[name]["steps_to_expert"])
        return late, -done[name]["mean_best_return"]

    return min(done, key=order)


# ---- files


def about(peer: str, task: str, contest: Contest) -> JsonDict:
    """Return the metadata of a file."""
    versions = {name: found for name in peers.PACKAGES if (found := interleave.installed(name))}
    return {
        "peer": peer,
        "label": LABELS[peer],
        "task": task,
        "command": f"python benchmarks/tuned_peers.py --peer {peer} --task {task}",
        "horizon": peers.simulator_of(task).horizon,
        "expert": goal(task, 1.0),
        "beyond": goal(task, BEYOND),
        "budget": contest.budget,
        "tuning_budget": contest.tuning_budget or contest.budget,
        "episodes": contest.episodes,
        "rule": "the setting with the fewest steps to the expert (median of the tuning seeds), then the highest return",
        "ends": f"a tuning run at the expert, another at {BEYOND} times it, each at its budget at the latest",
        "machine": describe_machine(),
        "versions": versions | {"aggrevated": __version__},
    }


def run(peer: str, task: str, folder: Path) -> None:
    """Tune, and run the chosen setting on all seeds; write the file after each run."""
    contest = CONTESTS[peer, task]
    path = folder / f"{peer}-{task}.json"
    facts = about(peer, task, contest)
    record = read_json(path) if path.exists() else {}
    for name in ("versions", "episodes", "budget", "expert"):
        if record and record[name] != facts[name]:
            raise SystemExit(f"{path} has curves of other {name}; move it away to start again")
    curves = record.get("curves", {})
    tuning = record.get("tuning", {})

    def save(done: JsonDict) -> None:
        write_json(path, facts | {"tuning": done, "curves": curves})

    folder.mkdir(parents=True, exist_ok=True)
    chosen = tuned(task, contest, tuning, save)
    for seed in range(contest.seeds):
        if str(seed) not in curves:
            print(f"{chosen}: ", end="", flush=True)
            curves[str(seed)] = curve(task, seed, contest.grid[chosen], contest, BEYOND, contest.budget)
            save(tuning)
    reached, beyond = ([steps_to(facts[name], one) for one in curves.values()] for name in ("expert", "beyond"))
    summary = {
        "chosen": chosen,
        "settings": dict(contest.grid[chosen]),
        "steps_to_expert": reached,
        "steps_to_beyond": beyond,
        "median_steps_to_expert": middle(reached),
        "median_steps_to_beyond": middle(beyond),
        "best_return": [max(one["returns"]) for one in curves.values()],
        "cpu_seconds": round(sum(one["cpu_seconds"] for one in curves.values()), 1),
    }
    write_json(path, facts | summary | {"tuning": tuning, "curves": curves})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, choices=sorted({peer for peer, _ in CONTESTS}))
    parser.add_argument("--task", required=True, choices=sorted({task for _, task in CONTESTS}))
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of PEER-TASK.json")
    options = parser.parse_args()
    if (options.peer, options.task) not in CONTESTS:
        parser.error(f"nothing is planned for {options.peer} on {options.task}")
    run(options.peer, options.task, options.folder)


# ---- grids: three settings each, around those of RL Baselines3 Zoo, or of the tutorial of `imitation`

LABELS = {
    "ppo": "PPO (Stable-Baselines3)",
    "dqn": "DQN (Stable-Baselines3)",
    "trpo": "TRPO (sb3-contrib)",
    "dagger": "DAgger (imitation)",
    "aggrevated": "AggreVaTeD, exponentiated, by its mode",
    "our-dagger": "DAgger, follow-the-leader, by its mode",
}
ZOO_CARTPOLE = peers.ZOO["cartpole"]
ZOO_ACROBOT = peers.ZOO["acrobot"]
PPO_CARTPOLE = {
    "zoo": ZOO_CARTPOLE,
    "zoo, rate × 3": {**ZOO_CARTPOLE, "learning_rate": "lin_0.003"},
    "zoo, roll-outs × 2": {**ZOO_CARTPOLE, "n_steps": 64},
}
PPO_ACROBOT = {
    "zoo": ZOO_ACROBOT,
    "zoo, rate × 3": {**ZOO_ACROBOT, "learning_rate": 9e-4},
    "zoo, rate × 3, roll-outs / 4": {**ZOO_ACROBOT, "learning_rate": 9e-4, "n_steps": 64},
}
DQN_CARTPOLE = {**find_task("cartpole").expert_recipe.settings, "n_timesteps": 50_000}  # as for our experts
DQN_ACROBOT = {**find_task("acrobot").expert_recipe.settings, "n_timesteps": 100_000}
TRPO = {**find_task("hopper").expert_recipe.settings, "policy_kwargs": {"net_arch": [64], "activation_fn": "relu"}}
PPO_USUAL = {"n_steps": 2048, "batch_size": 64, "gamma": 0.99, "gae_lambda": 0.95, "n_epochs": 10}
ZOO_HOPPER = {  # what the zoo tuned for Hopper-v3 and -v4, H = 1000
    "normalize": True,
    "n_steps": 512,
    "batch_size": 32,
    "gamma": 0.999,
    "learning_rate": 9.80828e-05,
    "ent_coef": 0.00229519,
    "clip_range": 0.2,
    "n_epochs": 5,
    "gae_lambda": 0.99,
    "max_grad_norm": 0.7,
    "vf_coef": 0.835671,
    "policy_kwargs": {"net_arch": [256, 256], "activation_fn": "relu", "log_std_init": -2, "ortho_init": False},
}
PPO_ROBOTS = {
    "Stable-Baselines3": PPO_USUAL,
    "Stable-Baselines3, rate × 3, normalised": {**PPO_USUAL, "learning_rate": 9e-4, "normalize": True},
    "zoo": ZOO_HOPPER,
}


def rounds(hidden: int, frames: int = 1) -> Mapping[str, Settings]:
    """Return DAgger with the tutorial's settings, with more epochs, and with more epochs and shorter rounds."""
    student = {"net_arch": [hidden]} | ({"frames": frames} if frames > 1 else {})
    return {
        "tutorial": student,
        "tutorial, epochs × 4": {**student, "n_epochs": 16},
        "epochs × 4, rounds of one episode": {**student, "n_epochs": 16, "episodes": 1, "timesteps": 1},
    }


def ladder(first: Settings, **others: tuple[str, Any]) -> Mapping[str, Settings]:
    """Return the first setting, and the first with one change, twice."""
    return {"as our expert": first} | {words: {**first, name: value} for name, (words, value) in others.items()}


def shorter(first: Settings) -> Mapping[str, Settings]:
    """Return our defaults, with shorter iterations, and with one trajectory each as in DAgger of `imitation`."""
    return {
        "default": {**first, "trajectories": 0},
        "K = 2": {**first, "trajectories": 2},
        "K = 1": {**first, "trajectories": 1},
    }


FRAMES = 4  # of Acrobot's link positions
ROBOTS = ("hopper", "walker")
TRPO_ROBOTS = ladder(TRPO, target_kl=("KL × 3", 0.03), n_steps=("roll-outs / 2", 1024))
CONTESTS = {
    ("ppo", "cartpole"): Contest(by_gradients(PPO), PPO_CARTPOLE, 60_000, 512),
    ("dqn", "cartpole"): Contest(
        by_gradients(DQN),
        ladder(DQN_CARTPOLE, learning_rate=("rate / 3", 7.7e-4), target_update_interval=("targets 10 × as long", 100)),
        50_000,
        512,
    ),
    ("dagger", "cartpole"): Contest(dagger, rounds(16), 15_000),
    ("ppo", "acrobot"): Contest(by_gradients(PPO), PPO_ACROBOT, 100_000, 1024),
    ("dqn", "acrobot"): Contest(
        by_gradients(DQN),
        ladder(DQN_ACROBOT, learning_rate=("rate / 3", 2.1e-4), target_update_interval=("targets 4 × as long", 1000)),
        40_000,
        1000,
    ),
    ("dagger", "acrobot"): Contest(dagger, rounds(16), 10_000),
    ("ppo", "acrobot-partial"): Contest(
        by_gradients(PPO), {name: {**one, "frames": FRAMES} for name, one in PPO_ACROBOT.items()}, 100_000, 1024
    ),
    ("dagger", "acrobot-partial"): Contest(dagger, rounds(32, FRAMES), 5_000),
    ("trpo", "hopper"): Contest(trpo, TRPO_ROBOTS, 150_000, 2048, 50),
    ("ppo", "hopper"): Contest(by_gradients(PPO), PPO_ROBOTS, 150_000, 2048, 50),
    ("trpo", "walker"): Contest(trpo, TRPO_ROBOTS, 300_000, 4096, 50, seeds=3, tuning_budget=100_000),
    ("ppo", "walker"): Contest(by_gradients(PPO), PPO_ROBOTS, 300_000, 4096, 50, seeds=3, tuning_budget=100_000),
    ("dagger", "hopper"): Contest(dagger, rounds(64), 5_000, episodes=50),
    ("dagger", "walker"): Contest(dagger, rounds(64), 5_000, episodes=50),
    **{
        (peer, task): Contest(of_ours(method), shorter(settings), budget, episodes=50 if task in ROBOTS else 100)
        for peer, method, settings, budgets in (
            ("aggrevated", "aggrevated", {}, (15_000, 10_000, 10_000, 40_000, 40_000)),
            ("our-dagger", "dagger", {"start": "random"}, (15_000, 10_000, 5_000, 5_000, 5_000)),
        )
        for task, budget in zip(("cartpole", "acrobot", "acrobot-partial", *ROBOTS), budgets, strict=True)
    },
}

if __name__ == "__main__":
    main()
