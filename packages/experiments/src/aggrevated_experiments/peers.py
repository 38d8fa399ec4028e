"""Training costs of other libraries to reach our experts, from the files of benchmarks/tuned_peers.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from aggrevated.core.errors import DataError
from aggrevated.experts.loading import read_builtin_expert_cards
from aggrevated.storage import JsonDict, read_json
from aggrevated.tasks import find_task

FOLDER = Path("peers/tuned")  # inside the folder of a report


@dataclass(frozen=True)
class Peer:
    """Results of another library's algorithm on a task; lists have one entry per seed, None for never."""

    label: str
    budget: int  # environment steps
    seeds: Sequence[int]
    to_expert: Sequence[int | None]  # environment steps to the expert's return
    to_beyond: Sequence[int | None]  # environment steps to a ratio of 1.05
    best_return: Sequence[float]  # until that ratio was reached or the budget used
    cpu_seconds: Sequence[float]  # learning only
    curves: Sequence[tuple[Sequence[int], Sequence[float]]]  # (environment steps, mean return of its mode)
    chosen: str  # the best of the tried settings
    settings: JsonDict

    @classmethod
    def from_dict(cls, data: JsonDict) -> Self:
        """Return the peer that such a file describes."""
        curves = list(data["curves"].values())
        return cls(
            label=data["label"],
            budget=data["budget"],
            seeds=[int(seed) for seed in data["curves"]],
            to_expert=data["steps_to_expert"],
            to_beyond=data["steps_to_beyond"],
            best_return=data["best_return"],
            cpu_seconds=[curve["cpu_seconds"] for curve in curves],
            curves=[(curve["steps"], curve["returns"]) for curve in curves],
            chosen=data["chosen"],
            settings=data["settings"],
        )


def load_peers(task: str, report: Path) -> list[Peer]:
    """Return the peers whose files are in the folder of a report, without unfinished ones."""
    files = [(path, read_json(path)) for path in sorted((report / FOLDER).glob(f"*-{task}.json"))]
    return [parse_peer(data, path) for path, data in files if data.get("task") == task and "chosen" in data]


def parse_peer(data: dict[str, Any], path: Path) -> Peer:
    """Return a peer from the content of its file.

    Raises:
        DataError: the file does not describe a peer.
    """
    try:
        return Peer.from_dict(data)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not what benchmarks/tuned_peers.py writes ({error}); make it again") from error


def find_expert_training_steps(task: str) -> int | None:
    """Return the environment steps of the training of the task's builtin expert; None for other experts."""
    card = read_builtin_expert_cards().get(str(find_task(task).problem.to_values().get("expert", "")))
    return card.step if card else None
