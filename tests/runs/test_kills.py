"""kill -9 at random moments, resume, and again: the same final hashes.

`AGGREVATED_KILLS=30 python -m pytest tests/runs/test_kills.py` is the long form.
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

KILLS = int(os.environ.get("AGGREVATED_KILLS", "3"))
SETTINGS = [
    "--iterations",
    "120",
    "--trajectories",
    "20",
    "--validation-episodes",
    "40",
    "--test-episodes",
    "100",
    "--checkpoint-every",
    "1",
]
COMMAND = [sys.executable, "-m", "aggrevated"]


def start(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> dict[str, object]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    result: dict[str, object] = json.loads(out)
    return result


@pytest.mark.timeout(1200)
def test_runs_that_are_killed_again_and_again_end_with_the_same_bits(tmp_path: Path) -> None:
    train = ["train", "cartpole", "--update", "regular", *SETTINGS, "--json", "--out"]
    began = time.monotonic()
    expected = ended(start([*train, "whole"], tmp_path))
    whole = time.monotonic() - began
    chance, kills, runs = random.Random(0), 0, 0
    while kills < KILLS:  # some kills fall into the start-up, most into the work
        folder, process = tmp_path / f"killed-{runs}", start([*train, f"killed-{runs}"], tmp_path)
        while kills < KILLS:
            time.sleep(chance.uniform(0.2, 0.9) * whole)
            if process.poll() is not None:
                break
            process.kill()
            process.communicate()
            kills += 1
            made = (folder / "config.json").exists()
            process = start(["resume", folder.name, "--json"] if made else [*train, folder.name], tmp_path)
        result = ended(process)
        runs += 1
        for name in ("weights_sha256", "test_return", "best_return", "simulator_steps", "oracle_queries"):
            assert result[name] == expected[name], name
        assert not list(folder.rglob(".*.tmp")), "a temporary file was left behind"
    print(f"{kills} kills in {runs} runs: {expected['weights_sha256']}")
