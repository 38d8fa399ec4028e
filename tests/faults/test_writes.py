"""One file operation fails or the process is killed there: no work is lost, no result is silently wrong.

The short form tries some of the operations; `AGGREVATED_FAULTS=all python -m pytest tests/faults` tries them all.
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
EVERY = 1 if ALL else 11  # one of EVERY operations is tried
KINDS = ("KILL", "ENOSPC", "EIO", "EACCES")
SETTINGS = "--iterations 3 --trajectories 2 --horizon 20 --validation-episodes 2 --test-episodes 4 --checkpoint-every 1"
Answer: TypeAlias = tuple[int, int, str]
Runner: TypeAlias = Callable[[Path, str, int, list[str]], Answer]


@pytest.fixture
def run_with_fault(tmp_path: Path) -> Iterator[Runner]:
    """Return a function that runs a command with a fault below a folder."""
    shim = [sys.executable, str(Path(__file__).with_name("shim.py"))]
    with subprocess.Popen(shim, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:

        def ask(folder: Path, kind: str, number: int, command: list[str]) -> Answer:
            assert process.stdin is not None and process.stdout is not None
            print(json.dumps([str(folder), kind, number, command]), file=process.stdin, flush=True)
            code, count, output = json.loads(process.stdout.readline())
            return code, count, output

        yield ask


def train_command(folder: Path) -> list[str]:
    return ["train", "cartpole", *SETTINGS.split(), "--json", "--out", str(folder)]


def read_run(folder: Path) -> dict[str, Any]:
    """Return all results of a run except times."""
    run = Run.open(folder)
    result = run.result()
    assert result is not None
    lines = [line.to_dict() | {"seconds": 0, "cpu_seconds": 0} for line in run.metrics()]
    weights, _ = load_checksummed(sorted((folder / "checkpoints").glob("*.safetensors"))[-1])
    best_weights = {name: tensor.tolist() for name, tensor in weights.items()}
    return {"lines": lines, "kept": best_weights, **result.to_dict(), "seconds": 0, "cpu_seconds": 0, "run_folder": ""}


@pytest.mark.timeout(7200)
def test_train_command_recovers_from_a_fault_in_every_file_operation(tmp_path: Path, run_with_fault: Runner) -> None:
    intact = tmp_path / "whole"
    code, operations, output = run_with_fault(intact, "ENOSPC", 0, train_command(intact))
    assert code == 0 and operations > 60, output
    expected = read_run(intact)
    n_faults = 0
    for kind in KINDS:
        for number in range(1 + KINDS.index(kind) % EVERY, operations + 1, EVERY):
            folder = tmp_path / f"{kind}-{number}"
            code, _, output = run_with_fault(folder, kind, number, train_command(folder))
            assert "Traceback" not in output, (kind, number, output)
            if kind == "KILL":
                assert code == -9, (number, code)
            else:  # failures of cleanup may be silent
                assert code in (0, 74), (kind, number, code, output)
            if code == 74:
                assert output.splitlines()[-1].startswith("aggrevated: cannot use "), (kind, number, output)
            for path in (folder / "checkpoints").glob("*.safetensors"):
                load_checksummed(path)
            begun = (folder / "config.json").exists()
            code, _, output = run_with_fault(
                folder, "none", 0, ["resume", str(folder), "--json"] if begun else train_command(folder)
            )
            assert code == 0, (kind, number, output)
            assert read_run(folder) == expected, (kind, number)
            assert not list(folder.rglob(".*.tmp")), (kind, number)
            n_faults += 1
    print(f"{n_faults} faults at {operations} operations: all runs ended as the one without")
