"""A figure of the paper, reproduced: learning curves of all its methods, a table, and the page for docs/results."""

from collections.abc import Sequence
from pathlib import Path

from aggrevated.config import Config
from aggrevated.files import Facts
from aggrevated.reports import Table, by_name, markdown, publish, thousands, versions
from aggrevated.reports.groups import Group, comparison, draw
from aggrevated.tasks import Task
from aggrevated.worlds.control import control_of

HEADER = (
    "method | best so far | chosen policy, fresh | expert | ratio | IQM | 95 % interval | simulator steps | "
    "validation steps"
)


def write_report(groups: Sequence[Group], task: Task, command: str, folder: Path) -> Table:
    """Write TASK.json, .png, .svg and .md into the folder, and give the table."""
    table = comparison(groups, f"figure and page: {folder}/{task.name}.png and .md")
    draw(groups, folder / task.name)
    facts: Facts = {
        "command": command,
        "versions": versions(("aggrevated", "torch", "numpy", "gymnasium", *task.packages)),
        "seeds": [run.config.loop.seed for run in groups[0].runs],
        "settings": {group.label: group.runs[0].config.facts() for group in groups},
        "table": [by_name(row) for row in table.rows],
        "trials": [by_name(result.facts()) for group in groups for result in group.results],
    }
    publish(folder, task.name, facts, page(groups, task, facts))
    return table


def page(groups: Sequence[Group], task: Task, facts: Facts) -> list[str]:
    """The results page, in Markdown."""
    config = groups[0].runs[0].config
    trials = "; ".join(f"{g.label}: {', '.join(f'{x:.3f}' for x in sorted(g.column('ratio')))}" for g in groups)
    return [
        f"# {task.title}: the paper's figure, reproduced{' in short' if '--quick' in facts['command'] else ''}",
        f"![Learning curves]({task.name}.png)",
        what_is_drawn(config, len(groups[0].runs)),
        markdown(HEADER, [cells(row) for row in facts["table"]]),
        what_is_compared(config),
        f"Each trial: {trials}.",
    ]


def cells(row: Facts) -> list[str]:
    """One line of its table."""
    returns = [f"{row[name]:.1f}" for name in ("best_return", "test_return", "expert_return")]
    interval = f"{row['ratio_low']:.3f} to {row['ratio_high']:.3f}"
    ratios = [f"**{row['ratio_mean']:.3f}**", f"{row['ratio_iqm']:.3f}", interval]
    bill = [thousands(name)(row) for name in ("simulator_steps", "validation_steps")]
    return [row["label"], *returns, *ratios, *bill]


def what_is_drawn(config: Config, trials: int) -> str:
    """The words below the figure."""
    world, loop = control_of(config.world, "this page"), config.loop
    hidden = config.policy.values().get("hidden", ())
    return (
        f"The best policy so far on {world.validation_episodes} validation episodes, over the episodes rolled in: "
        f"interquartile mean of {trials} trials and 95 % bootstrap band; the expert is the dashed line. "
        f"H = {world.horizon}, K = {loop.trajectories}, hidden {list(hidden)}, mixing {loop.mixing:g}."
    )


def what_is_compared(config: Config) -> str:
    """The words below the table."""
    world = control_of(config.world, "this page")
    steps_saved = f"of steps saved, (R + H)/(R* + H) with H = {world.horizon}, since returns are negative"
    return (
        "*Best so far* is the paper's metric, measured on validation episodes, and optimistic because it is a maximum. "
        f"The *chosen policy* is that best one, on {world.tested} fresh episodes. "
        f"The *ratio* is {steps_saved if world.lowest(world.horizon) else 'R/R*'}. "
        "The interval is of the ratio's interquartile mean. *Simulator steps* are those of start, roll-ins and oracle; "
        "*validation steps* come on top."
    )
