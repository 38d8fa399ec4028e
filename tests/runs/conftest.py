"""Small runs that take a fraction of a second."""

from pathlib import Path

import pytest

from aggrevated.runs.config import Config, resolve
from aggrevated.runs.run import Run, execute
from aggrevated.runs.storage import Facts

SMALL = {
    "iterations": 6,
    "trajectories": 5,
    "horizon": 60,
    "validation_episodes": 5,
    "test_episodes": 20,
    "checkpoint_every": 2,
}


def small(method: str = "aggrevated", update: str | None = None, **given: object) -> Config:
    """The config of a small run."""
    return resolve("cartpole", method, update, **{**SMALL, **given})


def finished(folder: Path, config: Config) -> tuple[Run, Facts]:
    """A run of that config, run to its end."""
    run = Run.create(folder, config)
    return run, execute(run, lambda line: None, lambda sentence: None)


def without_time(lines: list[Facts]) -> list[Facts]:
    """Metrics without what the clock said."""
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


@pytest.fixture
def warnings_of() -> list[str]:
    """A list that collects warnings when its `append` is given as `warn`."""
    return []
