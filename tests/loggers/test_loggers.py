"""Writers of metrics: they receive the numbers of metrics.jsonl once each, and do not change the run."""

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from aggrevated import UsageError, loggers, train
from aggrevated.cli import main
from aggrevated.config.resolver import resolve_config
from aggrevated.training.run_folder import Run
from helpers.command_line import failure
from helpers.small_runs import fit_run

SMALL = {"iterations": 4, "trajectories": 2, "horizon": 20, "validation_episodes": 2, "test_episodes": 2}
WORDS = [word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value))]
needs_tensorboard = pytest.mark.skipif(find_spec("tensorboard") is None, reason="pip install 'aggrevated[logs]'")
needs_wandb = pytest.mark.skipif(find_spec("wandb") is None, reason="pip install 'aggrevated[logs]'")


class StoppedError(Exception):
    """Error that stops a run on purpose."""


class RecordingWriter:
    """Writer that records what it receives."""

    received: list[object] = []

    def __init__(self, folder: Path, config: dict) -> None:
        RecordingWriter.received = [(folder.name, config["task"])]

    def write(self, metrics: dict) -> None:
        RecordingWriter.received.append(metrics)

    def close(self, result: dict | None) -> None:
        RecordingWriter.received.append(result)


class FailingWriter(RecordingWriter):
    """Writer that fails at its second line."""

    def write(self, metrics: dict) -> None:
        if metrics["iteration"] == 2:
            raise OSError("the disk is full")


@pytest.fixture
def offer_writers(monkeypatch: pytest.MonkeyPatch):
    """Return a function that registers writers as other packages do."""

    def offer(**given):
        monkeypatch.setattr(loggers, "find_entry_points", lambda group: given)
        monkeypatch.setattr(loggers, "load_entry_point", lambda point: point)

    return offer


def read_tensorboard_scalars(folder: Path) -> dict[str, dict[int, float]]:
    """Return the scalars by name and step; a repeated step is an error."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    seen = EventAccumulator(str(folder)).Reload()
    found = {name: seen.Scalars(name) for name in seen.Tags()["scalars"]}
    assert all(len(events) == len({event.step for event in events}) for events in found.values())
    return {name: {event.step: event.value for event in events} for name, events in found.items()}


def interrupt_after(run: Run, iterations: int, log: str) -> None:
    """Interrupt the run after `iterations` iterations."""

    def stop(metrics) -> None:
        if metrics.iteration == iterations + 1:
            raise StoppedError

    with pytest.raises(StoppedError):
        fit_run(run, stop, log=log)


def test_writer_receives_every_metrics_line_once_and_the_result(offer_writers, tmp_path):
    offer_writers(kept=RecordingWriter)
    run = train("cartpole", out=tmp_path / "run", log="kept", **SMALL)
    first, *lines, result = RecordingWriter.received
    assert first == ("run", "cartpole")
    assert lines == [line.to_dict() for line in run.metrics()] and result == run.result().to_dict()


def test_writer_of_a_resumed_run_receives_all_lines_and_changes_no_weights(offer_writers, tmp_path):
    offer_writers(kept=RecordingWriter)
    uninterrupted = train("cartpole", out=tmp_path / "whole", **SMALL)
    run = Run.create(tmp_path / "run", resolve_config("cartpole", checkpoint_every=1, **SMALL))
    interrupt_after(run, 2, "kept")
    assert [line["iteration"] for line in RecordingWriter.received[1:-1]] == [1, 2, 3] and RecordingWriter.received[
        -1
    ] is None
    fit_run(run, log=["kept"])
    assert (
        RecordingWriter.received[1:-1] == [line.to_dict() for line in run.metrics()]
        and len(RecordingWriter.received) == 6
    )
    assert run.result().weights_sha256 == uninterrupted.result().weights_sha256


def test_failing_writer_does_not_stop_the_run(offer_writers, tmp_path):
    offer_writers(broken=FailingWriter, kept=RecordingWriter)
    warnings = []
    run = train("cartpole", out=tmp_path / "run", log="broken, kept", warn=warnings.append, **SMALL)
    assert warnings == ["the log FailingWriter failed and is dropped (the disk is full)"]
    assert run.result().iterations == 4 and len(RecordingWriter.received) == 6


def test_unknown_writer_or_missing_package_is_refused_before_a_folder_is_created(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"unknown log 'tensorbord' \(did you mean tensorboard\?\): choose one of"):
        train("cartpole", log="tensorbord", **SMALL)
    with pytest.raises(UsageError, match="unknown log ''"):
        train("cartpole", log="tensorboard,", **SMALL)
    for name in ("tensorboard", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
        code, sentence = failure(["train", "cartpole", "--log", name, *WORDS], capsys)
        assert code == 2 and f"--log {name} needs the package {name}: pip install 'aggrevated[logs]'" in sentence
    assert list(tmp_path.iterdir()) == []


@needs_tensorboard
@pytest.mark.filterwarnings("default")
def test_tensorboard_writer_records_the_numbers_of_the_metrics(tmp_path):
    run = Run.create(tmp_path / "run", resolve_config("cartpole", checkpoint_every=3, **SMALL))
    interrupt_after(run, 2, "tensorboard")
    fit_run(run, log="tensorboard")
    scalars = read_tensorboard_scalars(run.folder / "tensorboard")
    lines = run.metrics()
    assert {"loss", "current_return", "best_return", "simulator_steps", "seconds"} <= set(scalars)
    assert "stalled_reason" not in scalars and "iteration" not in scalars
    for name in ("loss", "best_return", "simulator_steps"):
        assert scalars[name] == pytest.approx({line.iteration: line.to_dict()[name] for line in lines}, rel=1e-6)
    assert scalars["result/test_return"] == pytest.approx({4: run.result().more["test_return"]})


@needs_tensorboard
@pytest.mark.filterwarnings("default")
def test_tensorboard_writer_records_parallel_trials_separately(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    main(["train", "cartpole", "--trials", "2", "--out", "runs", "--log", "tensorboard", *WORDS])
    assert all(
        set(read_tensorboard_scalars(tmp_path / f"runs/trial-0{i}/tensorboard")["loss"]) == {1, 2, 3, 4}
        for i in range(2)
    )


@needs_wandb
@pytest.mark.filterwarnings("default")
def test_wandb_writer_writes_offline_and_prints_nothing(tmp_path, capfd):
    warned = []
    run = train("cartpole", out=tmp_path / "run", log="wandb", warn=warned.append, say=warned.append, **SMALL)
    assert not [sentence for sentence in warned if "wandb" in sentence.lower() or "WandbWriter" in sentence]
    (file,) = (run.folder / "wandb").glob("offline-run-*/*.wandb")
    until = time.monotonic() + 30
    while b"result/test_return" not in file.read_bytes():  # wandb's process closes the file a moment later
        assert time.monotonic() < until
        time.sleep(0.05)
    assert b"best_return" in file.read_bytes()
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
