"""Metadata of an expert's training, as far as it is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggrevated.core.errors import AggrevatedError
from aggrevated.experts.loading import BUILTIN_WEIGHTS, ExpertCard
from aggrevated.experts.training_metadata import read_training_metadata
from aggrevated.problems.control import ControlProblem
from aggrevated.simulators import Simulator
from aggrevated.storage import load_checksummed


@dataclass(frozen=True)
class TrainingMetadata:
    """Metadata of an expert's training; None where it is not known.

    Attributes:
        horizon: Steps of its episodes.
        mean_return: Mean return of its episodes.
        deviation: Standard deviation of the returns.
        normalised: Whether its observations were normalized.
        source: Where the metadata is from, in words.
    """

    horizon: int | None = None
    mean_return: float | None = None
    deviation: float | None = None
    normalised: bool | None = None
    source: str = ""


def find_training_metadata(problem: ControlProblem, simulator: Simulator) -> TrainingMetadata:
    """Return the metadata of the expert's card, else of its Stable-Baselines3 zip, else of the environment."""
    horizon = find_time_limit(simulator)
    default = (
        TrainingMetadata(horizon=horizon, source="the environment's own time limit") if horizon else TrainingMetadata()
    )
    if not problem.expert or "," in problem.expert:
        return default
    path = BUILTIN_WEIGHTS / f"{problem.expert}.safetensors"
    path = path if path.is_file() else Path(problem.expert)
    if not path.is_file():
        return default
    return (metadata_from_zip(path, horizon) if path.suffix == ".zip" else metadata_from_card(path)) or default


def metadata_from_card(path: Path) -> TrainingMetadata | None:
    """Return the metadata of an expert's card; None without a card."""
    try:
        card = ExpertCard.read(load_checksummed(path)[1], path)
    except AggrevatedError:
        return None
    deviation = card.standard_error * card.episodes**0.5
    return TrainingMetadata(card.horizon, card.mean_return, deviation, source="the expert's card")


def metadata_from_zip(path: Path, horizon: int | None) -> TrainingMetadata | None:
    """Return the metadata of the last training episodes in a zip; None if it cannot be read."""
    try:
        metadata = read_training_metadata(path)
    except AggrevatedError:
        return None
    returns = metadata.get("returns") or {}
    return TrainingMetadata(
        horizon, returns.get("mean"), returns.get("deviation"), metadata.get("normalised"), "the expert's training"
    )


def find_time_limit(simulator: Any) -> int | None:
    """Return the number of steps after which the environment itself ends an episode; None if it is not known."""
    while simulator is not None:
        limit = getattr(simulator, "time_limit", None)
        if isinstance(limit, int):
            return limit
        simulator = getattr(simulator, "simulator", None)
    return None
