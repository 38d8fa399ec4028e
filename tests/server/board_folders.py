"""Run folders as runs write them, without running anything."""

import math
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from aggrevated.config.resolving import resolve
from aggrevated.files import Facts, Journal, read_journal, rewrite_journal, seal_json, seals
from aggrevated.runs.records import Metrics


def line(n: int, best: float = 1.0, **others: Any) -> Facts:
    """What a run writes of iteration n."""
    facts = dict.fromkeys(("roll_in_return", "current_return", "loss", "gradient_norm", "kl"), 0.5)
    counts = (
        "halvings",
        "start_simulator_steps",
        "oracle_steps",
        "validation_steps",
        "diverged",
        "validation_diverged",
    )
    known = {"iteration": n, "best_return": best, "simulator_steps": 100 * n, "oracle_queries": 10 * n, "died": ""}
    open_ones = dict.fromkeys(("sure_and_wrong", "left_to_learn", "usual_mistake"))
    return Metrics(**{**facts, **dict.fromkeys(counts, 0), **known, **open_ones, "seconds": 0.5 * n, **others}).facts()


def begin(folder: Path, task: str = "cartpole", method: str = "aggrevated", **settings: Any) -> Path:
    """A run that was made, and has not begun."""
    folder.mkdir(parents=True)
    seal_json(folder / "config.json", resolve(task, method, **settings).facts())
    return folder


def write(folder: Path, lines: Iterable[Facts]) -> Path:
    """Its metrics."""
    rewrite_journal(folder / "metrics.jsonl", lines)
    return folder


def append(folder: Path, lines: Iterable[Facts]) -> None:
    """Some more of them, each after the other as a run does."""
    path = folder / "metrics.jsonl"
    last = [*seals(read_journal(path)), ""]
    with Journal(path, last[-2] if len(last) > 1 else "") as journal:
        for facts in lines:
            journal.append(facts)


def end(
    folder: Path, iterations: int, expert: float = 400.0, first: float = 20.0, test: float = 390.0, rated: bool = True
) -> Path:
    """Its result."""
    facts = {"iterations": iterations, "budget": 0, "queries": 0, "ended": "iterations", "initial_return": first}
    worst = min(0.0, first)
    ratio = (test - worst) / (expert - worst) if rated else None
    measured = {"expert_return": expert, "test_return": test, "ratio": ratio}
    seal_json(folder / "result.json", facts | measured)
    return folder


def learning(count: int, seed: int, first: float, last: float, pace: float) -> Iterator[Facts]:
    """The metrics of a run that comes nearer to the last return."""
    draws, best = random.Random(seed), -math.inf
    for n in range(1, count + 1):
        current = last + (first - last) * math.exp(-n / pace) + draws.gauss(0, 0.02 * abs(last - first))
        best = max(best, current)
        yield line(n, best, current_return=current, simulator_steps=900 * n, oracle_queries=880 * n, seconds=0.21 * n)


def gallery(root: Path) -> Path:
    """A folder as it looks in the middle of some work: trials, runs that ended, stopped, died, and were changed."""
    for i in range(5):
        trial = begin(root / "cartpole-natural" / f"trial-{i:02d}", update="natural", seed=i, iterations=60)
        end(write(trial, learning(60, i, 22, 430 + 12 * i, 14 + i)), 60, 369.0, 22, 428 + 12 * i)
    seal_json(root / "cartpole-natural" / "trials.json", {"trials": 5, "config": {}})
    whole = begin(root / "cartpole-exponentiated", iterations=60)
    end(write(whole, learning(60, 7, 25, 470, 6)), 60, 369.0, 25, 468)
    stopped = begin(root / "cartpole-dagger", method="dagger", iterations=60)
    write(stopped, learning(34, 8, 20, 380, 12))
    dead = begin(root / "cartpole-reinforce", method="reinforce", iterations=60)
    lines = list(learning(60, 9, 20, 120, 40))
    write(dead, [one | {"died": "gradient vanished"} if one["iteration"] > 41 else one for one in lines])
    for name, pace in (("exponentiated", 3), ("natural", 9)):
        run = begin(root / f"acrobot-{name}", "acrobot", update=name, iterations=40)
        end(write(run, learning(40, pace, -200, -84, pace)), 40, -92.4, -200, -85)
    changed = write(begin(root / "acrobot-changed", "acrobot", iterations=40), learning(25, 5, -200, -100, 6))
    path = changed / "metrics.jsonl"
    path.write_text(path.read_text().replace('"halvings": 0', '"halvings": 1', 1))
    for one in root.rglob("metrics.jsonl"):
        os.utime(one, (0, 0))  # long ago
    return root
