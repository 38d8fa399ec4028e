"""What is known of how an expert was trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggrevated.errors import AggrevatedError
from aggrevated.experts.loading import SHIPPED
from aggrevated.experts.model_card import Card
from aggrevated.experts.training_metadata import training_facts
from aggrevated.problems.control import Control
from aggrevated.simulators import Simulator
from aggrevated.storage import unseal


@dataclass(frozen=True)
class Training:
    """None where nobody says."""

    horizon: int | None = None
    mean_return: float | None = None
    deviation: float | None = None  # of the returns of its episodes
    normalised: bool | None = None  # whether its observations were
    source: str = ""


def training_of(world: Control, simulator: Simulator) -> Training:
    """From the expert's card, else from what Stable-Baselines3 saved beside the weights, else from the environment."""
    horizon = time_limit_of(simulator)
    usual = Training(horizon=horizon, source="the environment's own time limit") if horizon else Training()
    if not world.expert or "," in world.expert:
        return usual
    path = SHIPPED / f"{world.expert}.safetensors"
    path = path if path.is_file() else Path(world.expert)
    if not path.is_file():
        return usual
    return (of_a_zip(path, horizon) if path.suffix == ".zip" else of_a_card(path)) or usual


def of_a_card(path: Path) -> Training | None:
    """What the card says; None where there is none."""
    try:
        card = Card.read(unseal(path)[1], path)
    except AggrevatedError:
        return None
    deviation = card.standard_error * card.episodes**0.5
    return Training(card.horizon, card.mean_return, deviation, source="the expert's card")


def of_a_zip(path: Path, horizon: int | None) -> Training | None:
    """What the last episodes of its training were like; None where that cannot be read."""
    try:
        facts = training_facts(path)
    except AggrevatedError:
        return None
    earned = facts.get("returns") or {}
    return Training(horizon, earned.get("mean"), earned.get("deviation"), facts.get("normalised"), "its training")


def time_limit_of(simulator: Any) -> int | None:
    """The steps after which the environment itself would cut an episode; None where it does not say."""
    while simulator is not None:
        said = getattr(simulator, "time_limit", None)
        if isinstance(said, int):
            return said
        simulator = getattr(simulator, "simulator", None)
    return None
