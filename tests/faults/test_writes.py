"""One operation on files goes wrong, or the process is killed there: nothing is lost, nothing is silently wrong.

The short form tries every few operations; `AGGREVATED_FAULTS=all python -m pytest tests/faults` tries them all.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from aggrevated.storage import load_checksummed
from aggrevated.training.run_folder import Run

ALL = os.environ.get("AGGREVATED_FAULTS") == "all"
EVERY = 1 if ALL else 11  # of the operations, one is tried
KINDS = ("KILL", "ENOSPC", "EIO", "EACCES")
SETTINGS = "--iterations 3 --trajectories 2 --horizon 20 --validation-episodes 2 --test-episodes 4 --checkpoint-every 1"
Answer: TypeAlias = tuple[int, int, str]
Runner: TypeAlias = Callable[[Path, str, int, list[str]], Answer]


@pytest.fixture
def run_with_fault(tmp_path: Path) -> Iterator[Runner]:
    """Runs a command with a fault below a folder."""
    shim = [sys.executable, str(Path(__file__).with_name("shim.py"))]
    with subprocess.Popen(shim, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:

        def ask(folder: Path, kind: str, number: int, command: list[str]) -> Answer:
            assert process.stdin is not None and process.stdout is not None
            print(json.dumps([str(folder), kind, number, command]), file=process.stdin, flush=True)
            code, count, said = json.loads(process.stdout.readline())
            return code, count, said

        yield ask


def train_command(folder: Path) -> list[str]:
    return ["train", "cartpole", *SETTINGS.split(), "--json", "--out", str(folder)]


def read_run(folder: Path) -> dict[str, Any]:
    """All that a run found, but for the clock."""
    run = Run.open(folder)
    result = run.result()
    assert result is not None
    lines = [line.to_dict() | {"seconds": 0, "cpu_seconds": 0} for line in run.metrics()]
    weights, _ = load_checksummed(sorted((folder / "checkpoints").glob("*.safetensors"))[-1])
    kept = {name: tensor.tolist() for name, tensor in weights.items()}
    return {"lines": lines, "kept": kept, **result.to_dict(), "seconds": 0, "cpu_seconds": 0, "run_folder": ""}


@pytest.mark.timeout(7200)
def test_train_command_recovers_from_a_fault_in_every_file_operation(tmp_path: Path, run_with_fault: Runner) -> None:
    whole = tmp_path / "whole"
    code, operations, said = run_with_fault(whole, "ENOSPC", 0, train_command(whole))
    assert code == 0 and operations > 60, said
    expected = read_run(whole)
    tried = 0
    for kind in KINDS:
        for number in range(1 + KINDS.index(kind) % EVERY, operations + 1, EVERY):
            folder = tmp_path / f"{kind}-{number}"
            code, _, said = run_with_fault(folder, kind, number, train_command(folder))
            assert "Traceback" not in said, (kind, number, said)
            if kind == "KILL":
                assert code == -9, (number, code)
            else:  # what only tidies up may fail unheard
                assert code in (0, 74), (kind, number, code, said)
            if code == 74:
                assert said.splitlines()[-1].startswith("aggrevated: cannot use "), (kind, number, said)
            for path in (folder / "checkpoints").glob("*.safetensors"):
                load_checksummed(path)
            begun = (folder / "config.json").exists()
            code, _, said = run_with_fault(
                folder, "none", 0, ["resume", str(folder), "--json"] if begun else train_command(folder)
            )
            assert code == 0, (kind, number, said)
            assert read_run(folder) == expected, (kind, number)
            assert not list(folder.rglob(".*.tmp")), (kind, number)
            tried += 1
    print(f"{tried} faults at {operations} operations: all runs ended as the one without")
