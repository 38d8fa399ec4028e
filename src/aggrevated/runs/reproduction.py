"""The paper's protocol: every method of a figure or table, several trials each, as runs in folders."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aggrevated.errors import UsageError
from aggrevated.experiments import Row, Task
from aggrevated.runs.config import Config, resolve
from aggrevated.runs.run import Run


def runs_of(task: Task, rows: Sequence[Row], folder: Path, trials: int, quick: bool) -> list[list[Run]]:
    """The runs of the rows; those that are in the folder already are taken up where they are."""
    groups = []
    for row in rows:
        config = config_of(task, row, quick)
        varied = (name.replace("_", "-") for name in row.settings)
        name = "-".join(filter(None, (row.method, row.update, row.policy, row.start, *varied)))
        paths = [folder / name / f"trial-{trial:02d}" for trial in range(trials)]
        groups.append([made_or_opened(path, replace(config, seed=trial)) for trial, path in enumerate(paths)])
    return groups


def config_of(task: Task, row: Row, quick: bool) -> Config:
    """The settings of a row; `quick`: with a fifth of the iterations."""
    given = {"policy": row.policy, "start": row.start, **row.settings}
    config = resolve(task.name, row.method, row.update, **given)
    if not quick:
        return config
    given["iterations"] = max(1, config.iterations // 5)
    return resolve(task.name, row.method, row.update, **given)


def made_or_opened(folder: Path, config: Config) -> Run:
    """The run in the folder, if it was asked for the same; a new one if there is none."""
    if not (folder / "config.json").is_file():
        return Run.create(folder, config)
    run = Run.open(folder)
    if run.config != config:
        raise UsageError(f"{folder} holds a run with other settings; choose another --out or remove it")
    return run
