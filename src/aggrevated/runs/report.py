"""Several runs side by side: the table, the figure, and the page for docs/results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from aggrevated.errors import DataError, UsageError
from aggrevated.experiments import ControlTask, tasks
from aggrevated.files import Facts, write_atomically, write_json
from aggrevated.plots.learning_curves import Curve, learning_curves, padded
from aggrevated.recipes import METHODS
from aggrevated.runs.run import Run
from aggrevated.statistics import bootstrap_interval, interquartile_mean


@dataclass(frozen=True)
class Group:
    """The trials of one method, all ended."""

    label: str
    runs: list[Run]
    results: list[Facts]

    @classmethod
    def of(cls, runs: list[Run], prefix: str = "") -> Group:
        """The group of these runs; a run that has not ended is refused, never left out."""
        results = []
        for run in runs:
            result = run.result()
            if result is None:
                raise DataError(f"{run.folder} has not ended; finish it with 'aggrevated resume {run.folder}'")
            results.append(result)
        return cls(prefix + runs[0].label, runs, results)

    def column(self, name: str) -> np.ndarray:
        """One number of every trial, [trials]."""
        return np.array([result[name] for result in self.results], float)


def rows(groups: Sequence[Group]) -> list[Facts]:
    """One row per method, over its trials."""
    return [row(group) for group in groups]


def row(group: Group) -> Facts:
    """Means over the trials of the paper's metric, the test return and the ratio, with the ratio's 95 % interval."""
    ratio = group.column("ratio")
    if np.isnan(ratio).any():
        raise DataError(f"{group.label}: the expert earns nothing within this horizon; compare runs with a longer one")
    low, high = bootstrap_interval(ratio)
    first = group.results[0]
    return {
        "method": first["method"],
        "update": first["update"],
        "policy": group.runs[0].config.policy,
        "label": group.label,
        "run": str(group.runs[0].folder if len(group.runs) == 1 else group.runs[0].folder.parent),
        "trials": len(group.results),
        "digits": tasks()[group.runs[0].config.task].digits,
        "best_return": float(group.column("best_return").mean()),
        "test_return": float(group.column("test_return").mean()),
        "expert_return": float(group.column("expert_return").mean()),
        "ratio_mean": float(ratio.mean()),
        "ratio_iqm": float(interquartile_mean(ratio)),
        "ratio_low": float(low),
        "ratio_high": float(high),
        "simulator_steps": float(group.column("simulator_steps").mean()),
        "oracle_steps": float(group.column("oracle_steps").mean()),
        "seconds": float(group.column("seconds").mean()),
    }


def draw(groups: Sequence[Group], path: Path) -> None:
    """The learning curves of all groups in one figure."""
    names = {run.config.task for group in groups for run in group.runs}
    if len(names) > 1:
        raise UsageError(f"the runs are of different tasks ({', '.join(sorted(names))}); compare runs of one task")
    curves = [curve(group) for group in groups]
    experts = {(run.config.expert, run.config.horizon) for group in groups for run in group.runs}
    returned = float(np.mean([group.column("expert_return").mean() for group in groups]))
    expert = returned if len(experts) == 1 else None  # different experts have no line in common
    task = tasks()[names.pop()]
    learning_curves(curves, expert, task.title, path, task.measured)


def curve(group: Group) -> Curve:
    """Best so far over episodes, from the first policy on."""
    returns = [
        [result["initial_return"], *(line["best_return"] for line in run.metrics())]
        for run, result in zip(group.runs, group.results, strict=True)
    ]
    array = padded(returns)
    config = group.runs[0].config
    dotted = not METHODS[config.method].imitates  # RL, as in the paper's figures
    return Curve(group.label, np.arange(array.shape[1]) * config.trajectories, array, dotted, steps_of(group))


def steps_of(group: Group) -> np.ndarray | None:
    """[iterations]: the simulator steps after each, on average over the trials; None where no oracle takes any."""
    if group.runs[0].config.oracle != "monte-carlo":
        return None
    steps: np.ndarray = padded([[line["simulator_steps"] for line in run.metrics()] for run in group.runs]).mean(axis=0)
    return steps


def write_report(groups: Sequence[Group], task: ControlTask, command: str, folder: Path) -> list[Facts]:
    """Write TASK.json, .png, .svg and .md into the folder, and give the table."""
    table = rows(groups)
    draw(groups, folder / task.name)
    packages = ("aggrevated", "torch", "numpy", "gymnasium", *task.packages)
    facts: Facts = {
        "command": command,
        "versions": {name: version(name) for name in packages},
        "seeds": [run.config.seed for run in groups[0].runs],
        "settings": {group.label: group.runs[0].config.facts() for group in groups},
        "table": [by_name(row) for row in table],
        "trials": [by_name(result) for group in groups for result in group.results],
    }
    write_json(folder / f"{task.name}.json", facts)
    write_atomically(folder / f"{task.name}.md", page(groups, task, facts).encode())
    return table


def thousands(steps: float) -> str:
    """A number of steps, for people."""
    return f"{steps / 1000:,.0f} k"


def by_name(facts: Facts) -> Facts:
    """The same, with the name of the run's folder instead of its place on this machine."""
    return facts | {"run": Path(facts["run"]).name}


def page(groups: Sequence[Group], task: ControlTask, facts: Facts) -> str:
    """The results page, in Markdown."""
    config, trials = groups[0].runs[0].config, len(facts["seeds"])
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    lines = [
        f"# {task.title}: the paper's figure, reproduced{' in short' if '--quick' in facts['command'] else ''}",
        "",
        f"![Learning curves]({task.name}.png)",
        "",
        f"The best policy so far on {config.validation_episodes} validation episodes, over the episodes rolled in: "
        f"interquartile mean of {trials} trials and 95 % bootstrap band; the expert is the dashed line. "
        f"H = {config.horizon}, K = {config.trajectories}, hidden {list(config.hidden)}, mixing {config.mixing:g}.",
        "",
        "| method | best so far | chosen policy, fresh | expert | ratio | IQM | 95 % interval | simulator steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for group, r in zip(groups, facts["table"], strict=True):
        lines.append(
            f"| {group.label} | {r['best_return']:.1f} | {r['test_return']:.1f} | {r['expert_return']:.1f} "
            f"| **{r['ratio_mean']:.3f}** | {r['ratio_iqm']:.3f} | {r['ratio_low']:.3f} to {r['ratio_high']:.3f} "
            f"| {thousands(r['simulator_steps'])} |"
        )
    floor = task.floor(config.horizon)
    lines += [
        "",
        "*Best so far* is the paper's metric, measured on validation episodes, and optimistic because it is a maximum. "
        f"The *chosen policy* is that best one, on {config.test_episodes} fresh episodes. "
        + (
            f"The *ratio* is of steps saved, (R + H)/(R* + H) with H = {config.horizon}, since returns are negative. "
            if floor
            else "The *ratio* is R/R*. "
        )
        + "The interval is of the ratio's interquartile mean.",
        "",
        "Each trial: "
        + "; ".join(f"{g.label}: {', '.join(f'{x:.3f}' for x in sorted(g.column('ratio')))}" for g in groups)
        + ".",
        "",
        f"Command: `{facts['command']}`; seeds {facts['seeds'][0]} to {facts['seeds'][-1]}; {versions}. "
        f"All numbers, and every setting of every method: [{task.name}.json]({task.name}.json).",
        "",
    ]
    return "\n".join(lines)
