"""The paper's protocol: every method of a figure, several trials each, as runs in folders."""

from dataclasses import replace
from pathlib import Path

from aggrevated.errors import UsageError
from aggrevated.experiments import Task
from aggrevated.runs.config import Config, resolve
from aggrevated.runs.run import Run


def runs_of(task: Task, folder: Path, trials: int, quick: bool) -> list[list[Run]]:
    """The runs of the figure's rows; those that are in the folder already are taken up where they are."""
    groups = []
    for row in task.figure:
        iterations = task.iterations // 5 if quick else task.iterations
        config = resolve(task.name, row.method, row.update, policy=row.policy, start=row.start, iterations=iterations)
        name = "-".join(filter(None, (row.method, row.update, row.policy, row.start)))
        paths = [folder / name / f"trial-{trial:02d}" for trial in range(trials)]
        groups.append([made_or_opened(path, replace(config, seed=trial)) for trial, path in enumerate(paths)])
    return groups


def made_or_opened(folder: Path, config: Config) -> Run:
    """The run in the folder, if it was asked for the same; a new one if there is none."""
    if not (folder / "config.json").is_file():
        return Run.create(folder, config)
    run = Run.open(folder)
    if run.config != config:
        raise UsageError(f"{folder} holds a run with other settings; choose another --out or remove it")
    return run
