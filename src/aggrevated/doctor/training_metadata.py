"""What is known of how an expert was trained."""

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
    """None where nobody says."""

    horizon: int | None = None
    mean_return: float | None = None
    deviation: float | None = None  # of the returns of its episodes
    normalised: bool | None = None  # whether its observations were
    source: str = ""


def find_training_metadata(world: ControlProblem, simulator: Simulator) -> TrainingMetadata:
    """From the expert's card, else from what Stable-Baselines3 saved beside the weights, else from the environment."""
    horizon = find_time_limit(simulator)
    usual = (
        TrainingMetadata(horizon=horizon, source="the environment's own time limit") if horizon else TrainingMetadata()
    )
    if not world.expert or "," in world.expert:
        return usual
    path = BUILTIN_WEIGHTS / f"{world.expert}.safetensors"
    path = path if path.is_file() else Path(world.expert)
    if not path.is_file():
        return usual
    return (metadata_from_zip(path, horizon) if path.suffix == ".zip" else metadata_from_card(path)) or usual


def metadata_from_card(path: Path) -> TrainingMetadata | None:
    """What the card says; None where there is none."""
    try:
        card = ExpertCard.read(load_checksummed(path)[1], path)
    except AggrevatedError:
        return None
    deviation = card.standard_error * card.episodes**0.5
    return TrainingMetadata(card.horizon, card.mean_return, deviation, source="the expert's card")


def metadata_from_zip(path: Path, horizon: int | None) -> TrainingMetadata | None:
    """What the last episodes of its training were like; None where that cannot be read."""
    try:
        facts = read_training_metadata(path)
    except AggrevatedError:
        return None
    earned = facts.get("returns") or {}
    return TrainingMetadata(
        horizon, earned.get("mean"), earned.get("deviation"), facts.get("normalised"), "its training"
    )


def find_time_limit(simulator: Any) -> int | None:
    """The steps after which the environment itself would cut an episode; None where it does not say."""
    while simulator is not None:
        said = getattr(simulator, "time_limit", None)
        if isinstance(said, int):
            return said
        simulator = getattr(simulator, "simulator", None)
    return None
