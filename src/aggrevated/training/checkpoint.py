"""Checkpoints: learner and oracle as one sealed file. A damaged one is noticed, and the one before it is used."""

import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from torch import Tensor

from aggrevated.algorithm import Learner
from aggrevated.core.errors import DataError
from aggrevated.oracles import Oracle, iter_stateful
from aggrevated.storage import (
    JsonDict,
    iter_chained_checksums,
    load_checksummed,
    reraise_storage_errors,
    save_checksummed,
)
from aggrevated.validation import BestPolicy

COST_FIELDS = ("simulator_steps", "start_simulator_steps", "oracle_steps", "validation_steps")  # of a `Learner`
COUNTS = (*COST_FIELDS, "oracle_queries", "diverged_trajectories", "diverged_validation_episodes")
MAX_CHECKPOINTS = 3  # so that a damaged newest one costs little
NAME = re.compile(r"(\d{6,})\.safetensors")


def save_checkpoint(folder: Path, learner: Learner, oracle: Oracle, facts: JsonDict) -> None:
    """Write learner and oracle and some facts beside them, and remove all but the newest few checkpoints."""
    best = learner.best
    tensors = {f"policy.{name}": w for name, w in learner.policy.state_dict().items()}
    tensors |= {f"best.{name}": w for name, w in (best.weights or {}).items()}
    tensors |= {f"update.{name}": w for name, w in learner.update.state().items()}
    for path, one in iter_stateful(oracle):
        tensors |= {f"{path}.{name}": w for name, w in one.state().items()}
    numbers = {
        "n": learner.n,
        **get_learner_counts(learner),
        "best": [best.best_return, best.n, best.initial_return, best.latest_return],
    }
    save_checksummed(folder / f"{learner.n:06d}.safetensors", tensors, {"learner": numbers, **facts})
    with reraise_storage_errors(folder):
        for old in list_newest_first(folder)[MAX_CHECKPOINTS:]:
            old.unlink(missing_ok=True)


def get_learner_counts(learner: Learner) -> JsonDict:
    """What it has cost so far."""
    return {name: getattr(learner, name) for name in COUNTS}


def list_newest_first(folder: Path) -> list[Path]:
    """The checkpoints that are there."""
    found = (path for path in folder.glob("*") if NAME.fullmatch(path.name))
    return sorted(found, key=lambda path: int(path.name.split(".")[0]), reverse=True)


@dataclass(frozen=True)
class Checkpoint:
    """What lay beside learner and oracle in the checkpoint that was used, and in the intact ones before it."""

    n: int
    content: JsonDict
    before: Sequence[JsonDict]  # oldest first

    def restore_lines(self, there: list[JsonDict], path: Path, warn: Callable[[str], None]) -> list[JsonDict]:
        """The lines of the metrics up to here, from those that are there and what checkpoints know of them.

        If those that are there were not those then, it is a `DataError`. Lines that are lost are done without.
        """
        lines = [line for line in there if line["iteration"] <= self.n]
        if lines and lines[-1]["iteration"] == self.n:
            self._check_lines_match(lines, path)
            return lines
        for line in chain.from_iterable(facts["metrics"]["lines"] for facts in (*self.before, self.content)):
            if line["iteration"] > (lines[-1]["iteration"] if lines else 0):
                lines.append(line)
        lost = self.n - len(lines)
        if not lost:
            self._check_lines_match(lines, path)
        told = f"{lost} of its lines are lost" if lost else "its last lines were lost, and are written again"
        warn(f"{path} is shorter than the checkpoint beside it: {told}; nothing else is")
        return lines

    def _check_lines_match(self, lines: list[JsonDict], path: Path) -> None:
        """A `DataError` if these are not all the lines that there were, or were before some were lost for good."""
        *_, seal = iter_chained_checksums(lines)
        if seal != self.content["metrics"]["checksum"]:
            raise DataError(f"{path} is not what the checkpoint beside it knows; restore it, or remove it")


def check_same_run(folder: Path, facts: JsonDict, own: str, habits: str) -> None:
    """A `DataError` if a checkpoint is of another config, environment or expert; those of before know no habits."""
    if facts.get("config") != own or facts.get("expert_fingerprint", habits) != habits:
        raise DataError(
            f"{folder.parent}/config.json, its environment, its expert or its pages changed after the run began; "
            "undo that"
        )


def read_newest_metadata(folder: Path) -> JsonDict | None:
    """What lies beside the learner in the newest checkpoint that is intact; None if there is none."""
    for path in list_newest_first(folder):
        with suppress(DataError):
            return load_checksummed(path)[1]
    return None


def restore_checkpoint(
    folder: Path, learner: Learner, oracle: Oracle, own: str, habits: str, warn: Callable[[str], None]
) -> Checkpoint | None:
    """Bring both to their newest intact checkpoint, and give the facts beside it.

    None, and no change, if there is none. One of another config than `own`, or of an expert with other habits, is
    refused; damaged ones are put aside.
    """
    intact: list[tuple[dict[str, Tensor], JsonDict]] = []
    for path in list_newest_first(folder):
        try:
            tensors, facts = load_checksummed(path)
        except DataError as error:
            warn(f"{error}; going on from an earlier point")
            quarantine(path)
            continue
        check_same_run(folder, facts, own, habits)
        intact.append((tensors if not intact else {}, facts))
    if not intact:
        return None
    (tensors, facts), *before = intact
    load_state(learner, oracle, tensors, facts["learner"])
    return Checkpoint(learner.n, facts, [facts for _, facts in reversed(before)])


def quarantine(path: Path) -> None:
    """Give what cannot be used another name, so that it is in nobody's way."""
    with reraise_storage_errors(path):
        path.replace(path.with_name(f"{path.name}.damaged-{secrets.token_hex(3)}"))


def load_state(learner: Learner, oracle: Oracle, tensors: dict[str, Tensor], numbers: JsonDict) -> None:
    """Make learner and oracle what they were."""

    def extract_state(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): w for name, w in tensors.items() if name.startswith(prefix)}

    learner.policy.load_state_dict(extract_state("policy."))
    learner.update.restore(extract_state("update."))
    for path, one in iter_stateful(oracle):
        one.restore(extract_state(f"{path}."))
    returned, n, first, latest = numbers["best"]
    learner.best = BestPolicy(returned, n, first, latest, extract_state("best."))
    learner.n = numbers["n"]
    for name in COUNTS:
        setattr(learner, name, numbers[name])
