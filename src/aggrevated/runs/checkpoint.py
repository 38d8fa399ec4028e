"""Checkpoints: learner and oracle as one sealed file. A damaged one is noticed, and the one before it is used."""

import re
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from aggrevated.algorithm import Learner
from aggrevated.cost_to_go import Oracle, remembering
from aggrevated.errors import DataError
from aggrevated.files import Facts, seal, storage_errors, unseal
from aggrevated.validation import Best

BILL = ("simulator_steps", "start_simulator_steps", "oracle_steps", "validation_steps")  # of a `Learner`
COUNTS = (*BILL, "oracle_queries", "diverged")
KEPT = 3  # so that a damaged newest one costs little
NAME = re.compile(r"(\d{6,})\.safetensors")


def save(folder: Path, learner: Learner, oracle: Oracle, facts: Facts) -> None:
    """Write learner and oracle and some facts beside them, and remove all but the newest few checkpoints."""
    best = learner.best
    tensors = {f"policy.{name}": w for name, w in learner.policy.state_dict().items()}
    tensors |= {f"best.{name}": w for name, w in (best.weights or {}).items()}
    tensors |= {f"update.{name}": w for name, w in learner.update.state().items()}
    for path, one in remembering(oracle):
        tensors |= {f"{path}.{name}": w for name, w in one.state().items()}
    numbers = {"n": learner.n, **counts(learner), "best": [best.returned, best.n, best.first, best.latest]}
    seal(folder / f"{learner.n:06d}.safetensors", tensors, {"learner": numbers, **facts})
    with storage_errors(folder):
        for old in newest_first(folder)[KEPT:]:
            old.unlink(missing_ok=True)


def counts(learner: Learner) -> Facts:
    """What it has cost so far."""
    return {name: getattr(learner, name) for name in COUNTS}


def newest_first(folder: Path) -> list[Path]:
    """The checkpoints that are there."""
    return sorted((path for path in folder.glob("*") if NAME.fullmatch(path.name)), reverse=True)


def restore(
    folder: Path, learner: Learner, oracle: Oracle, own: str, most: int, warn: Callable[[str], None]
) -> Facts | None:
    """Bring both to their newest intact checkpoint of at most `most` iterations, and give the facts beside it.

    None, and no change, if there is none. One of another config than `own` is refused.
    """
    for path in newest_first(folder):
        try:
            tensors, facts = unseal(path)
        except DataError as error:
            warn(f"{error}; going on from an earlier point")
            continue
        if facts["config"] != own:
            raise DataError(
                f"{folder.parent}/config.json, its expert or its pages changed after the run began; undo that"
            )
        if facts["learner"]["n"] <= most:
            fill(learner, oracle, tensors, facts["learner"])
            return facts
    return None


def fill(learner: Learner, oracle: Oracle, tensors: dict[str, Tensor], numbers: Facts) -> None:
    """Make learner and oracle what they were."""

    def part(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): w for name, w in tensors.items() if name.startswith(prefix)}

    learner.policy.load_state_dict(part("policy."))
    learner.update.restore(part("update."))
    for path, one in remembering(oracle):
        one.restore(part(f"{path}."))
    returned, n, first, latest = numbers["best"]
    learner.best = Best(returned, n, first, latest, part("best."))
    learner.n = numbers["n"]
    for name in COUNTS:
        setattr(learner, name, numbers[name])
