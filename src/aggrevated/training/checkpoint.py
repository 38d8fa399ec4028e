"""Checkpoints: learner and oracle in one checksummed file. If the newest is damaged, the one before it is used."""

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
MAX_CHECKPOINTS = 3  # the older ones replace a damaged newest one
NAME = re.compile(r"(\d{6,})\.safetensors")


def save_checkpoint(folder: Path, learner: Learner, oracle: Oracle, content: JsonDict) -> None:
    """Save learner, oracle and further content, and remove all but the newest checkpoints."""
    best = learner.best
    tensors = {f"policy.{name}": w for name, w in learner.policy.state_dict().items()}
    tensors |= {f"best.{name}": w for name, w in (best.weights or {}).items()}
    tensors |= {f"update.{name}": w for name, w in learner.update.state().items()}
    for path, component in iter_stateful(oracle):
        tensors |= {f"{path}.{name}": w for name, w in component.state().items()}
    numbers = {
        "n": learner.n,
        **get_learner_counts(learner),
        "best": [best.best_return, best.n, best.initial_return, best.latest_return],
    }
    save_checksummed(folder / f"{learner.n:06d}.safetensors", tensors, {"learner": numbers, **content})
    with reraise_storage_errors(folder):
        for old in list_newest_first(folder)[MAX_CHECKPOINTS:]:
            old.unlink(missing_ok=True)


def get_learner_counts(learner: Learner) -> JsonDict:
    """Return the simulator steps, queries and diverged simulations of a learner."""
    return {name: getattr(learner, name) for name in COUNTS}


def list_newest_first(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, the newest first."""
    checkpoints = (path for path in folder.glob("*") if NAME.fullmatch(path.name))
    return sorted(checkpoints, key=lambda path: int(path.name.split(".")[0]), reverse=True)


@dataclass(frozen=True)
class Checkpoint:
    """Content of the restored checkpoint, besides learner and oracle.

    Args:
        n: The iteration.
        content: The content.
        older: The content of the older intact checkpoints, the oldest first.
    """

    n: int
    content: JsonDict
    older: Sequence[JsonDict]

    def restore_lines(self, lines: list[JsonDict], path: Path, warn: Callable[[str], None]) -> list[JsonDict]:
        """Return the lines of metrics.jsonl up to this iteration.

        Args:
            lines: The lines that the file has.
            path: The file.
            warn: Called if lines are missing. Lines that no checkpoint holds are left out.

        Raises:
            DataError: The lines are not those of the checkpoint.
        """
        restored = [line for line in lines if line["iteration"] <= self.n]
        if restored and restored[-1]["iteration"] == self.n:
            self._check_lines_match(restored, path)
            return restored
        for line in chain.from_iterable(content["metrics"]["lines"] for content in (*self.older, self.content)):
            if line["iteration"] > (restored[-1]["iteration"] if restored else 0):
                restored.append(line)
        lost = self.n - len(restored)
        if not lost:
            self._check_lines_match(restored, path)
        loss = f"{lost} of its lines are lost" if lost else "its last lines were lost, and are restored"
        warn(f"{path} is shorter than the checkpoint expects: {loss}; nothing else is lost")
        return restored

    def _check_lines_match(self, lines: list[JsonDict], path: Path) -> None:
        """Raise a `DataError` if the lines do not have the checksum that the checkpoint expects."""
        *_, checksum = iter_chained_checksums(lines)
        if checksum != self.content["metrics"]["checksum"]:
            raise DataError(f"{path} does not match the newest checkpoint; restore it, or remove it")


def check_same_run(folder: Path, content: JsonDict, identity: str, expert_fingerprint: str) -> None:
    """Raise a `DataError` if a checkpoint is of another config, environment or expert.

    Checkpoints of earlier versions have no expert fingerprint.
    """
    same_expert = content.get("expert_fingerprint", expert_fingerprint) == expert_fingerprint
    if content.get("config") != identity or not same_expert:
        raise DataError(
            f"{folder.parent}/config.json, its environment, its expert or its pages changed after the run began; "
            "undo that change, or start a new run"
        )


def read_newest_metadata(folder: Path) -> JsonDict | None:
    """Return the content of the newest intact checkpoint, besides learner and oracle; None if there is none."""
    for path in list_newest_first(folder):
        with suppress(DataError):
            return load_checksummed(path)[1]
    return None


def restore_checkpoint(
    folder: Path,
    learner: Learner,
    oracle: Oracle,
    identity: str,
    expert_fingerprint: str,
    warn: Callable[[str], None],
) -> Checkpoint | None:
    """Restore learner and oracle from the newest intact checkpoint; quarantine damaged ones.

    Args:
        folder: The folder of the checkpoints.
        learner: The learner to restore.
        oracle: The oracle to restore.
        identity: The digest of the run, from `run_identity`.
        expert_fingerprint: The digest of the expert's fingerprint.
        warn: Called for every damaged checkpoint.

    Returns:
        The checkpoint; None if there is none, and nothing was changed.

    Raises:
        DataError: A checkpoint is of another config, environment or expert.
    """
    intact: list[tuple[dict[str, Tensor], JsonDict]] = []
    for path in list_newest_first(folder):
        try:
            tensors, content = load_checksummed(path)
        except DataError as error:
            warn(f"{error}; resuming from an earlier checkpoint")
            quarantine(path)
            continue
        check_same_run(folder, content, identity, expert_fingerprint)
        intact.append((tensors if not intact else {}, content))
    if not intact:
        return None
    (tensors, content), *older_checkpoints = intact
    load_state(learner, oracle, tensors, content["learner"])
    return Checkpoint(learner.n, content, [older for _, older in reversed(older_checkpoints)])


def quarantine(path: Path) -> None:
    """Rename a damaged file, so that it is not read again."""
    with reraise_storage_errors(path):
        path.replace(path.with_name(f"{path.name}.damaged-{secrets.token_hex(3)}"))


def load_state(learner: Learner, oracle: Oracle, tensors: dict[str, Tensor], numbers: JsonDict) -> None:
    """Restore learner and oracle from the tensors and numbers of a checkpoint."""

    def extract_state(prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): w for name, w in tensors.items() if name.startswith(prefix)}

    learner.policy.load_state_dict(extract_state("policy."))
    learner.update.restore(extract_state("update."))
    for path, component in iter_stateful(oracle):
        component.restore(extract_state(f"{path}."))
    best_return, n, initial_return, latest_return = numbers["best"]
    learner.best = BestPolicy(best_return, n, initial_return, latest_return, extract_state("best."))
    learner.n = numbers["n"]
    for name in COUNTS:
        setattr(learner, name, numbers[name])
