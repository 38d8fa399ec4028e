"""Readers that leave, streams that are closed or full, and signals: nothing done is lost, and the exit code is true."""

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


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_reader_that_leaves_ends_the_words_and_not_the_run(tmp_path: Path, reader: str) -> None:
    train = f"{PROGRAM} train cartpole --iterations 30 {TINY} --out run 2>&1 | {reader}; exit ${{PIPESTATUS[0]}}"
    done = shell(train, tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stdout + done.stderr
    assert json.loads((tmp_path / "run/result.json").read_text())["iterations"] == 30


@pytest.mark.parametrize(
    ("streams", "code", "printed"),
    [("2>&-", 0, True), ("2>/dev/full", 0, True), (">&-", 0, False), ("0<&- 2>&-", 0, True), (">/dev/full", 74, False)],
)
def test_streams_that_are_closed_or_full(tmp_path: Path, streams: str, code: int, printed: bool) -> None:
    done = shell(f"{PROGRAM} train cartpole --iterations 2 {TINY} --out run --json {streams}", tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert (json.loads(done.stdout)["iterations"] == 2) if printed else done.stdout == ""  # and no note among it
    assert (tmp_path / "run/result.json").is_file()
    for path in (tmp_path / "run").rglob("*.json*"):
        assert b"cartpole, Aggre" not in path.read_bytes()  # what was said went into no file of ours


def test_a_sentence_that_nobody_hears_still_has_its_exit_code(tmp_path: Path) -> None:
    for streams in ("2>&-", "2>/dev/full", "2>&1 | true; exit ${PIPESTATUS[0]}"):
        assert shell(f"{PROGRAM} resume nowhere {streams}", tmp_path).returncode == 65


def test_help_onto_a_full_device(tmp_path: Path) -> None:
    for command in ("--help", "--version", "train cartpole --help"):
        done = shell(f"{PROGRAM} {command} >/dev/full", tmp_path)
        assert done.returncode == 74 and "Exception ignored" not in done.stderr


def heard() -> None:
    """Whoever runs the tests, by `nohup` or in the background, may have said that signals are to be ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def begun(folder: Path, *more: str) -> subprocess.Popen[str]:
    """A training that has done some iterations."""
    command = [*COMMAND, "train", "cartpole", "--iterations", "100000", "--checkpoint-every", "100000", *more]
    environment = os.environ | {"AGGREVATED_THREADS": "1"}
    process = subprocess.Popen(
        [*command, "--out", "run"], cwd=folder, stderr=subprocess.PIPE, text=True, env=environment,
        preexec_fn=heard,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not all(lines_in(one) > 3 for one in runs_below(folder)) or not runs_below(folder):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.05)
    return process


def runs_below(folder: Path) -> list[Path]:
    return [path.parent for path in (folder / "run").rglob("config.json")]


def lines_in(run: Path) -> int:
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kept_in(run: Path) -> int:
    return max((int(path.stem) for path in (run / "checkpoints").glob("*.safetensors")), default=0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_keeps_the_last_iteration(tmp_path: Path, number: int, code: int) -> None:
    process = begun(tmp_path, *TINY.split())
    began = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=10)
    assert process.returncode == code and time.monotonic() - began < 5
    assert "what was done is kept; go on with: aggrevated resume run" in said and "Traceback" not in said
    assert kept_in(tmp_path / "run") == lines_in(tmp_path / "run") > 3


def test_a_signal_keeps_the_last_iteration_of_every_trial(tmp_path: Path) -> None:
    process = begun(tmp_path, *TINY.split(), "--trials", "2", "--workers", "2")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=10)
    assert process.returncode == 143 and time.monotonic() - began < 5
    assert "go on with: aggrevated resume run" in said and "Traceback" not in said
    for run in runs_below(tmp_path):
        assert kept_in(run) == lines_in(run) > 3


def test_an_iteration_that_takes_long_is_dropped_and_a_second_signal_leaves_at_once(tmp_path: Path) -> None:
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


def test_who_keeps_no_checkpoints_does_not_speak_of_them(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "expert", "evaluate", "cartpole", "--episodes", "200000", "--horizon", "500"],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(4)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 143 and said == "aggrevated: terminated\n"
