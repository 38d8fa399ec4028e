"""Runs of the task algebra that take less than a second."""

from pathlib import Path
from typing import Any

from aggrevated.config import Config
from aggrevated.config.resolver import resolve_config
from aggrevated.training.run_folder import Run
from helpers.small_runs import fit_run

TINY: dict[str, Any] = {
    "generated_pages": 20,
    "augmented_copies": 1,
    "iterations": 4,
    "trajectories": 3,
    "validate_every": 2,
    "checkpoint_every": 1,
    "hidden": (8,),
}
START = {"start_steps": 3, "demonstrations": 4}


def make_tiny_config(method: str = "aggrevated", update: str | None = None, **given: Any) -> Config:
    """Return the config of a run of a second, without settings that have no effect on it."""
    chosen = {name: given[name] for name in ("policy", "start") if name in given}
    start = START if resolve_config("algebra", method, update=update, **chosen).start.name == "supervised" else {}
    settings = {**TINY, **start, **given}
    if "crohme" in given:
        settings.pop("generated_pages")
    if given.get("policy") == "kernel-svm":
        settings.pop("hidden")
    return resolve_config("algebra", method, update=update, **settings)


def create_trained_run(folder: Path) -> Path:
    """Create a finished run of algebra, and return its folder."""
    given = {
        "generated_pages": 20,
        "augmented_copies": 0,
        "iterations": 2,
        "trajectories": 2,
        "hidden": (8,),
        "validate_every": 1,
    }
    config = resolve_config("algebra", "aggrevated", update="regular", start_steps=20, demonstrations=50, **given)
    run = Run.create(folder, config)
    fit_run(run)
    return run.folder
