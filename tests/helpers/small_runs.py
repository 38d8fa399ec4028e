"""Small runs that take less than a second."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aggrevated.config import Config
from aggrevated.config.resolver import resolve_config
from aggrevated.storage import digest_tensors, load_checksummed
from aggrevated.training.records import Metrics, Result
from aggrevated.training.run_folder import Run
from aggrevated.training.session import WarningCallback, ignore_message
from aggrevated.training.trainer import ProgressCallback, Trainer

SMALL = {
    "iterations": 6,
    "trajectories": 5,
    "horizon": 60,
    "validation_episodes": 5,
    "test_episodes": 20,
    "checkpoint_every": 2,
}


def make_small_config(method: str = "aggrevated", update: str | None = None, **given: object) -> Config:
    """Return the config of a small run on CartPole."""
    return resolve_config("cartpole", method, update=update, **{**SMALL, **given})


def fit_run(
    run: Run, progress: ProgressCallback = ignore_message, warn: WarningCallback = ignore_message, **options: Any
) -> Result:
    """Train a run to its end."""
    return Trainer(run.config).fit(run, progress=progress, warn=warn, **options)


def create_and_run(folder: Path, config: Config) -> tuple[Run, Result]:
    """Create a run with this config and run it to its end."""
    run = Run.create(folder, config)
    return run, fit_run(run)


class StoppedError(Exception):
    """Error that stops a run on purpose."""


def stop_after(run: Run, iterations: int) -> None:
    """Start or resume the run, and interrupt it after `iterations` further iterations."""
    left = [iterations]

    def count(_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise StoppedError

    with pytest.raises(StoppedError):
        fit_run(run, count)


def assert_resume_is_bit_identical(folder: Path, config: Config, *stops: int) -> None:
    """Assert that a run interrupted after each of `stops` further iterations ends like an uninterrupted run."""
    uninterrupted, expected = create_and_run(folder / "whole", config)
    interrupted = Run.create(folder / "interrupted", config)
    for iterations in stops:
        stop_after(Run.open(interrupted.folder), iterations)
    result = fit_run(Run.open(interrupted.folder))
    assert result.weights_sha256 == expected.weights_sha256
    assert result.more["test_return"] == expected.more["test_return"]
    assert without_time(interrupted.metrics()) == without_time(uninterrupted.metrics())
    last = f"checkpoints/{config.loop.iterations:06d}.safetensors"
    tensors = load_checksummed(uninterrupted.folder / last)[0]
    other = load_checksummed(interrupted.folder / last)[0]
    assert digest_tensors(tensors) == digest_tensors(other)


def without_time(lines: list[Metrics]) -> list[Metrics]:
    """Return the metrics without times."""
    return [replace(line, seconds=0.0, cpu_seconds=0.0) for line in lines]
