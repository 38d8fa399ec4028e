"""Readers that leave, streams that are closed or full, and signals: no work is lost and the exit code is correct."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "aggrevated"]
TINY = "--trajectories 2 --horizon 20 --validation-episodes 2 --test-episodes 4"
PROGRAM = " ".join(COMMAND)


def run_in_shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_train_command_finishes_when_the_reader_of_its_output_leaves(tmp_path: Path, reader: str) -> None:
    train = f"{PROGRAM} train cartpole --iterations 30 {TINY} --out run 2>&1 | {reader}; exit ${{PIPESTATUS[0]}}"
    done = run_in_shell(train, tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stdout + done.stderr
    assert json.loads((tmp_path / "run/result.json").read_text())["iterations"] == 30


@pytest.mark.parametrize(
    ("streams", "code", "printed"),
    [("2>&-", 0, True), ("2>/dev/full", 0, True), (">&-", 0, False), ("0<&- 2>&-", 0, True), (">/dev/full", 74, False)],
)
def test_train_command_survives_closed_and_full_streams(tmp_path: Path, streams: str, code: int, printed: bool) -> None:
    done = run_in_shell(f"{PROGRAM} train cartpole --iterations 2 {TINY} --out run --json {streams}", tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert (json.loads(done.stdout)["iterations"] == 2) if printed else done.stdout == ""  # the JSON and nothing else
    assert (tmp_path / "run/result.json").is_file()
    for path in (tmp_path / "run").rglob("*.json*"):
        assert b"cartpole, Aggre" not in path.read_bytes()  # no printed line went into a file of the run


def test_resume_command_keeps_its_exit_code_when_stderr_is_lost(tmp_path: Path) -> None:
    for streams in ("2>&-", "2>/dev/full", "2>&1 | true; exit ${PIPESTATUS[0]}"):
        assert run_in_shell(f"{PROGRAM} resume nowhere {streams}", tmp_path).returncode == 65


def test_help_command_on_a_full_device_exits_with_74(tmp_path: Path) -> None:
    for command in ("--help", "--version", "train cartpole --help"):
        done = run_in_shell(f"{PROGRAM} {command} >/dev/full", tmp_path)
        assert done.returncode == 74 and "Exception ignored" not in done.stderr


def reset_signal_handlers() -> None:
    """Restore the default handlers: `nohup` and background shells make tests ignore signals."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start_training(folder: Path, *more: str) -> subprocess.Popen[str]:
    """Start a training and wait until it has done some iterations."""
    command = [*COMMAND, "train", "cartpole", "--iterations", "100000", "--checkpoint-every", "100000", *more]
    environment = os.environ | {"AGGREVATED_THREADS": "1"}
    process = subprocess.Popen(
        [*command, "--out", "run"], cwd=folder, stderr=subprocess.PIPE, text=True, env=environment,
        preexec_fn=reset_signal_handlers,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not all(count_metrics_lines(one) > 3 for one in list_run_folders(folder)) or not list_run_folders(folder):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.05)
    return process


def list_run_folders(folder: Path) -> list[Path]:
    return [path.parent for path in (folder / "run").rglob("config.json")]


def count_metrics_lines(run: Path) -> int:
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def find_last_checkpoint(run: Path) -> int:
    return max((int(path.stem) for path in (run / "checkpoints").glob("*.safetensors")), default=0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_train_command_saves_the_last_iteration_on_a_signal(tmp_path: Path, number: int, code: int) -> None:
    process = start_training(tmp_path, *TINY.split())
    began = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == code and time.monotonic() - began < 5
    assert "the work done so far is saved; resume with: aggrevated resume run" in errors and "Traceback" not in errors
    assert find_last_checkpoint(tmp_path / "run") == count_metrics_lines(tmp_path / "run") > 3


def test_train_command_saves_the_last_iteration_of_every_trial_on_a_signal(tmp_path: Path) -> None:
    process = start_training(tmp_path, *TINY.split(), "--trials", "2", "--workers", "2")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 143 and time.monotonic() - began < 5
    assert "resume with: aggrevated resume run" in errors and "Traceback" not in errors
    for run in list_run_folders(tmp_path):
        assert find_last_checkpoint(run) == count_metrics_lines(run) > 3


def test_defer_signals_waits_for_seconds_only_and_a_second_signal_exits_at_once(tmp_path: Path) -> None:
    script = """
import sys, time
from aggrevated.core.signals import defer_signals
with defer_signals() as stop:
    print("ready", flush=True)
    time.sleep(60)
"""
    for signals, least, most in ((1, 2.5, 5.0), (2, 0.0, 1.5)):
        command = [sys.executable, "-c", script]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            began = time.monotonic()
            for _ in range(signals):
                process.send_signal(signal.SIGTERM)
                time.sleep(0.2)
            process.wait(timeout=10)
        assert process.returncode == -signal.SIGTERM and least <= time.monotonic() - began < most


def test_expert_evaluate_command_mentions_no_checkpoints_when_terminated(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "expert", "evaluate", "cartpole", "--episodes", "200000", "--horizon", "500"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(4)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 143 and errors == "aggrevated: terminated\n"
