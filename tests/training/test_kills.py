"""Runs that are killed at random moments and resumed: the same final hashes, and little repeated work.

The long form is `AGGREVATED_KILLS=200 python -m pytest tests/training/test_kills.py`.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KILLS = int(os.environ.get("AGGREVATED_KILLS", "3"))
EVERY = 7
SETTINGS = f"--iterations 120 --trajectories 20 --validation-episodes 40 --test-episodes 100 --checkpoint-every {EVERY}"
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
COMMAND = [sys.executable, "-m", "aggrevated"]


def reset_interrupt_handler() -> None:
    """Restore the default handler: background processes ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_command(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=reset_interrupt_handler,
    )


def read_result(process: subprocess.Popen[str]) -> dict[str, object]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    result: dict[str, object] = json.loads(out)
    return result


def count_unsaved_iterations(folder: Path) -> int:
    """Return the number of recorded iterations that are in no checkpoint."""
    lines = (folder / "metrics.jsonl").read_bytes().count(b"\n") if (folder / "metrics.jsonl").exists() else 0
    saved = [int(path.stem) for path in (folder / "checkpoints").glob("*.safetensors")]
    return lines - max(saved, default=0)


@pytest.mark.timeout(7200)
def test_run_killed_repeatedly_ends_with_the_same_weights(tmp_path: Path) -> None:
    train = ["train", "cartpole", "--update", "regular", *SETTINGS.split(), "--json", "--out"]
    began = time.monotonic()
    expected = read_result(start_command([*train, "whole"], tmp_path))
    whole = time.monotonic() - began
    chance = random.Random(0)
    kills = 0
    runs = 0
    lost = 0
    slowest = 0.0
    while kills < KILLS:  # some kills hit the start-up, most the iterations
        folder = tmp_path / f"killed-{runs}"
        process = start_command([*train, f"killed-{runs}"], tmp_path)
        while kills < KILLS:
            before = count_unsaved_iterations(folder)  # of the previous kill, if this one comes too soon
            time.sleep(chance.uniform(0.2, 0.9) * whole)
            if process.poll() is not None:
                break
            number = chance.choice(SIGNALS)
            sent = time.monotonic()
            process.send_signal(number)
            process.communicate()
            if process.returncode == 0:  # the run ended before the signal arrived
                process = start_command(["resume", folder.name, "--json"], tmp_path)
                break
            slowest = max(slowest, time.monotonic() - sent)
            assert process.returncode in (-number, 128 + number) and slowest < 5, (number, process.returncode, slowest)
            lost = max(lost, count_unsaved_iterations(folder))
            assert count_unsaved_iterations(folder) <= EVERY, number
            assert number == signal.SIGKILL or count_unsaved_iterations(folder) in (0, before), number
            kills += 1
            made = (folder / "config.json").exists()
            process = start_command(["resume", folder.name, "--json"] if made else [*train, folder.name], tmp_path)
        result = read_result(process)
        runs += 1
        for name in ("weights_sha256", "test_return", "best_return", "simulator_steps", "oracle_queries"):
            assert result[name] == expected[name], name
        assert not list(folder.rglob(".*.tmp")), "a temporary file was left behind"
    print(f"{kills} kills in {runs} runs: {expected['weights_sha256']}; at most {lost} iterations, {slowest:.1f} s")
