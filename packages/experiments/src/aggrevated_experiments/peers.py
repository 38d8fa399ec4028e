"""What other libraries needed to get as far as our experts, from the files of benchmarks/tuned_peers.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from aggrevated.core.errors import DataError
from aggrevated.experts.loading import read_builtin_expert_cards
from aggrevated.storage import JsonDict, read_json
from aggrevated.tasks import find_task

FOLDER = Path("peers/tuned")  # in the folder of a report


@dataclass(frozen=True)
class Peer:
    """A library's own algorithm on a task: every list has one entry for each seed, None for what was never reached."""

    label: str
    budget: int  # of environment steps
    seeds: Sequence[int]
    to_expert: Sequence[int | None]  # environment steps until it earned what the expert does
    to_beyond: Sequence[int | None]  # and 1.05 times that, counted from the lowest return
    best_return: Sequence[float]  # until it was there, or the budget was used
    cpu_seconds: Sequence[float]  # of learning
    curves: Sequence[tuple[Sequence[int], Sequence[float]]]  # (environment steps, mean return of its mode)
    chosen: str  # of the settings that were tried
    settings: JsonDict

    @classmethod
    def from_dict(cls, facts: JsonDict) -> Self:
        """What such a file says."""
        curves = list(facts["curves"].values())
        return cls(
            label=facts["label"],
            budget=facts["budget"],
            seeds=[int(seed) for seed in facts["curves"]],
            to_expert=facts["steps_to_expert"],
            to_beyond=facts["steps_to_beyond"],
            best_return=facts["best_return"],
            cpu_seconds=[one["cpu_seconds"] for one in curves],
            curves=[(one["steps"], one["returns"]) for one in curves],
            chosen=facts["chosen"],
            settings=facts["settings"],
        )


def load_peers(task: str, report: Path) -> list[Peer]:
    """Those whose files are in the folder of a report; one that is not finished is left for later."""
    found = [(path, read_json(path)) for path in sorted((report / FOLDER).glob(f"*-{task}.json"))]
    return [parse_peer(facts, path) for path, facts in found if facts.get("task") == task and "chosen" in facts]


def parse_peer(facts: dict[str, Any], path: Path) -> Peer:
    """A peer, or a `DataError` that names the file which is none."""
    try:
        return Peer.from_dict(facts)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not what benchmarks/tuned_peers.py writes ({error}); make it again") from error


def find_expert_training_steps(task: str) -> int | None:
    """The environment steps that the training of the task's shipped expert took; None where it is no such expert."""
    card = read_builtin_expert_cards().get(str(find_task(task).problem.to_values().get("expert", "")))
    return card.step if card else None
