"""Small runs that take a fraction of a second."""

from dataclasses import replace
from pathlib import Path

import pytest

from aggrevated.config import Config
from aggrevated.config.resolver import resolve_config
from aggrevated.storage import digest_tensors, load_checksummed
from aggrevated.training.records import Metrics, Result
from aggrevated.training.run_folder import Run
from aggrevated.training.trainer import run_to_end

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
    return resolve_config("cartpole", method, update=update, **{**SMALL, **given})


def finished(folder: Path, config: Config) -> tuple[Run, Result]:
    """A run of that config, run to its end."""
    run = Run.create(folder, config)
    return run, run_to_end(run)


class StoppedError(Exception):
    """Raised in the middle of a run, to stop it there."""


def stop_after(run: Run, iterations: int) -> None:
    """Start or resume the run, and break it off after so many iterations of this sitting."""
    left = [iterations]

    def count(_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise StoppedError

    with pytest.raises(StoppedError):
        run_to_end(run, count)


def assert_the_same_bits_after_stops(folder: Path, config: Config, *stops: int) -> None:
    """A run that is broken off after so many iterations, again and again, ends as one that is not."""
    whole, expected = finished(folder / "whole", config)
    broken = Run.create(folder / "broken", config)
    for iterations in stops:
        stop_after(Run.open(broken.folder), iterations)
    result = run_to_end(Run.open(broken.folder))
    assert result.weights_sha256 == expected.weights_sha256
    assert result.more["test_return"] == expected.more["test_return"]
    assert without_time(broken.metrics()) == without_time(whole.metrics())
    last = f"checkpoints/{config.loop.iterations:06d}.safetensors"
    tensors = load_checksummed(whole.folder / last)[0]
    other = load_checksummed(broken.folder / last)[0]
    assert digest_tensors(tensors) == digest_tensors(other)


def without_time(lines: list[Metrics]) -> list[Metrics]:
    """Metrics without what the clock said."""
    return [replace(line, seconds=0.0, cpu_seconds=0.0) for line in lines]


@pytest.fixture
def warnings_of() -> list[str]:
    """A list that collects warnings when its `append` is given as `warn`."""
    return []
