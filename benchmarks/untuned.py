"""All methods at default settings, on the paper's tasks and on tasks without tuned settings.

    python benchmarks/untuned.py run [--only "cartpole;acrobot"] [--rows "aggrevated;dagger"]
                                     [--seeds 5] [--runs runs/untuned]
    python benchmarks/untuned.py report

`run` makes the missing runs, two at once, each a JSON file in the folder of runs; `report` reads them and the peers'
curves (peers.py), and writes docs/results/untuned.{json,md,png}.
"""

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

RESULTS = Path(__file__).parent.parent / "docs" / "results"
OURS = ("aggrevated", {})
NATURAL = ("aggrevated", {"update": "natural"})
LOKI = ("loki", {})
# with iterations as ours, and K from the horizon as ours: what tasks have tuned for DAgger is for K = 50
DAGGER = ("dagger", {"trajectories": 0, "iterations": 100})
SL = ("sl", {})
SL_RL = ("sl-rl", {})
BOTH = {"aggrevated": OURS, "dagger": DAGGER}  # where a page of its own has the others, or they are dear
ALL = {**BOTH, "sl": SL, "sl-rl": SL_RL}
SMALL = {**BOTH, "natural": NATURAL}
# seeds of a row, from 0 on, and of a task at most
SEEDS = {"aggrevated": 5, "dagger": 5, "natural": 5, "sl": 3, "sl-rl": 3, "loki": 1}
DEAR = {"acrobot-partial": 3, "t-maze": 3, "lunar-lander": 3, "hopper": 3, "walker": 3, "algebra": 1}


def students(task, widths=(1, 2, 4, 0)):
    """Return students of several widths for a task that needs no memory; 0: linear."""
    for width in widths:
        yield f"{task}, {width} units" if width else f"{task}, linear", task, {"hidden": (width,) if width else ()}


# name: (task, settings of the task in every row, rows)
CASES = {
    "cartpole": ("cartpole", {}, ALL),
    "acrobot": ("acrobot", {}, ALL),
    "acrobot-partial": ("acrobot-partial", {}, BOTH),
    "acrobot-partial, memoryless": ("acrobot-partial", {"policy": "mlp"}, SMALL),
    "tagger": ("tagger", {}, ALL),
    "t-maze": ("t-maze", {}, ALL),
    "pendulum": ("pendulum", {}, ALL),
    "lunar-lander": ("lunar-lander", {}, BOTH),
    "hopper": ("hopper", {}, BOTH),
    "walker": ("walker", {}, BOTH),
    "hopper, loki": ("hopper", {"iterations": 200}, {"loki": LOKI}),
    "walker, loki": ("walker", {"iterations": 200}, {"loki": LOKI}),
    "algebra": ("algebra", {}, {"aggrevated": OURS}),
    "algebra, lstm": ("algebra", {"policy": "lstm"}, {"aggrevated": OURS}),
    **{
        name: (task, settings | ({"policy": "mlp"} if task == "acrobot-partial" else {}), SMALL)
        for tasks in ("cartpole", "acrobot", "acrobot-partial") for name, task, settings in students(tasks)
    },
}  # fmt: skip


def planned(case, row):
    """Return the number of seeds of a row of a case, unless the command line sets it."""
    task, settings, _ = CASES[case]
    most = 3 if "hidden" in settings else 5 if settings.get("policy") == "mlp" else DEAR.get(task, 5)
    return min(SEEDS[row], most)


def one(name, row, seed, folder):
    """Make one run and write its curve and its result."""
    from aggrevated import train
    from newcomers import TASKS

    task, settings, rows = CASES[name]
    method, more = rows[row]
    scratch = Path(mkdtemp())
    try:
        task_or_name = TASKS[task]() if task in TASKS else task
        run = train(task_or_name, method, out=scratch / "run", warn=lambda _: None, seed=seed, **settings, **more)
        lines = [line.to_dict() for line in run.metrics()]
        columns = ("simulator_steps", "oracle_queries", "current_return", "best_return")
        facts = {
            "result": {k: v for k, v in run.result().to_dict().items() if k != "run_folder"},
            "points": [[line[key] for key in columns] for line in lines],
            "points_are": columns,
            "expert_on_validation": on_validation(run.config.problem, seed),
        }
    finally:
        rmtree(scratch, ignore_errors=True)
    path = folder / f"{name}; {row}; {seed}.json"
    path.with_suffix(".part").write_text(json.dumps(facts))
    path.with_suffix(".part").rename(path)
    return f"{name}, {row}, seed {seed}: test {facts['result']['test_return']:.3f}"


def on_validation(problem, seed):
    """Return the expert's return on the episodes of the curve, or None where there are no episodes."""
    from aggrevated.core.rng import SeedPurpose, derive_seeds
    from aggrevated.problems.control import ControlProblem
    from aggrevated.validation import evaluate_mean_return

    if not isinstance(problem, ControlProblem):
        return None
    episodes = derive_seeds(seed, SeedPurpose.VALIDATION, 0, problem.validation_episodes)
    return evaluate_mean_return(problem.loaded_expert, problem.simulator, episodes)


def run(only, seeds, folder, rows):
    """Make the missing runs."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [
        (name, row, seed)
        for name in only
        for row in CASES[name][2]
        if not rows or row in rows
        for seed in range(seeds or planned(name, row))
        if not (folder / f"{name}; {row}; {seed}.json").exists()
    ]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(one, *job, folder): job for job in wanted}
        for done, job in enumerate(as_completed(jobs), 1):
            outcome = job.result() if job.exception() is None else f"{jobs[job]} failed: {job.exception()!r}"
            print(f"{done}/{len(jobs)} {outcome}", flush=True)


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--only", default=";".join(CASES), help="cases, separated by semicolons")
    parser.add_argument("--rows", default="", help="rows, separated by semicolons (default: all)")
    parser.add_argument("--seeds", type=int, help="seeds of every row (default: as planned, at most 5)")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "untuned")
    options = parser.parse_args()
    if options.what == "report":
        from untuned_report import report

        return report(options.runs, RESULTS)
    only, rows = (text.split(";") if text else [] for text in (options.only, options.rows))
    unknown = {*only} - {*CASES} | {*rows} - {row for _, _, rows in CASES.values() for row in rows}
    if unknown:
        parser.error(f"no case or row is named {', '.join(sorted(unknown))}")
    return run(only, options.seeds, options.runs, rows)


if __name__ == "__main__":
    sys.exit(main())
