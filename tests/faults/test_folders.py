"""Run folders that are altered, truncated, damaged or created twice: one-sentence errors, repaired where possible."""

import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aggrevated.cli import main
from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import DataError, UsageError
from aggrevated.storage import exclusive_lock, load_checksummed, read_journal, rewrite_journal
from aggrevated.training import run_folder as module
from aggrevated.training.run_folder import Run, check_folder_unused, create_trials, list_runs, list_runs_to_resume
from helpers.command_line import failure, said
from helpers.small_runs import fit_run

TINY = {"trajectories": 2, "horizon": 20, "validation_episodes": 2, "test_episodes": 4, "hidden": (4,)}
CONFIG = resolve_config("cartpole", iterations=12, checkpoint_every=1, **TINY)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run with checkpoints 10 to 12."""
    run = Run.create(tmp_path_factory.mktemp("runs") / "run", CONFIG)
    fit_run(run)
    return run.folder


@pytest.fixture
def run_copy(finished_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def read_weights_digest(folder: Path) -> str:
    return str(json.loads((folder / "result.json").read_text())["weights_sha256"])


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    return [line | {"seconds": 0, "cpu_seconds": 0} for line in read_journal(folder / "metrics.jsonl")]


def replace_in_file(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("n_left", [11, 9, 0])
@pytest.mark.parametrize("finished", [True, False])
def test_run_with_truncated_metrics_resumes_from_its_checkpoints(
    finished_run: Path, run_copy: Path, n_left: int, finished: bool
) -> None:
    lines = (run_copy / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (run_copy / "metrics.jsonl").write_bytes(b"".join(lines[:n_left]) + lines[n_left][:50])
    if not finished:
        (run_copy / "result.json").unlink()
    warnings = list[str]()
    seen = list[int]()
    fit_run(Run.open(run_copy), lambda line: seen.append(line.iteration), warnings.append)
    assert seen == []  # no iteration was repeated
    assert read_weights_digest(run_copy) == read_weights_digest(finished_run)
    assert read_metrics(run_copy) == (read_metrics(finished_run) if n_left >= 9 else read_metrics(finished_run)[-3:])
    assert len(warnings) == 1 and "is shorter than the checkpoint expects" in warnings[0]


@pytest.mark.parametrize("finished", [True, False])
def test_resume_refuses_altered_metrics(run_copy: Path, finished: bool, capsys: pytest.CaptureFixture[str]) -> None:
    if not finished:
        (run_copy / "result.json").unlink()
    path = run_copy / "metrics.jsonl"
    original = path.read_bytes()
    rows = original.splitlines(keepends=True)
    altered = {
        "a number": original.replace(b'"iteration": 3, "roll_in_return": ', b'"iteration": 3, "roll_in_return": 1', 1),
        "a line in the middle": b"".join(rows[:4] + rows[5:]),
        "the first line": b"".join(rows[1:]),
        "two lines swapped": b"".join([*rows[:4], rows[5], rows[4], *rows[6:]]),
        "a line that is no JSON": b"".join([*rows[:4], b"x\n", *rows[5:]]),
    }
    for kind, data in altered.items():
        path.write_bytes(data)
        code, sentence = failure(["resume", str(run_copy)], capsys)
        assert code == 65 and "metrics.jsonl was changed" in sentence, kind
    facts = write_and_read_journal(original, path)
    facts[3]["roll_in_return"] += 1.0
    rewrite_journal(path, facts)  # with valid checksums
    if not finished:
        code, sentence = failure(["resume", str(run_copy)], capsys)
        assert code == 65 and "does not match the newest checkpoint" in sentence


def write_and_read_journal(data: bytes, path: Path) -> list[dict[str, Any]]:
    path.write_bytes(data)
    return read_journal(path)


@pytest.mark.parametrize("command", ["resume", "evaluate", "watch", "compare"])
def test_commands_refuse_a_changed_config_and_name_the_remedy(
    run_copy: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run_copy.parent)
    replace_in_file(run_copy / "config.json", '"horizon": 20', '"horizon": 21')
    code, sentence = failure([command, str(run_copy)], capsys)
    assert code == 65 and f"{run_copy}/config.json was changed after it was written" in sentence
    assert "train --config" in sentence
    result = json.loads(said(["train", "--config", f"{run_copy}/config.json", "--iterations", "2", "--json"], capsys))
    config = json.loads((Path(result["run_folder"]) / "config.json").read_text())
    assert (config["problem"]["horizon"], config["loop"]["iterations"]) == (21, 2)


def test_commands_refuse_a_changed_result(run_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replace_in_file(run_copy / "result.json", '"test_return": ', '"test_return": 1')
    for command in (["compare", str(run_copy), "--out", str(run_copy.parent / "c")], ["resume", str(run_copy)]):
        code, sentence = failure(command, capsys)
        assert code == 65 and "result.json was changed after it was written" in sentence
    (run_copy / "result.json").unlink()
    main(["resume", str(run_copy)])


def test_commands_refuse_the_policy_of_another_run(run_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Run.create(run_copy.parent / "other", CONFIG.with_settings(seed=5))
    fit_run(other)
    shutil.copy(other.folder / "policy.safetensors", run_copy)
    for command in ("resume", "evaluate"):
        code, sentence = failure([command, str(run_copy)], capsys)
        assert code == 65 and "does not match policy.safetensors" in sentence


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "empty"])
def test_run_rewrites_a_damaged_policy(finished_run: Path, run_copy: Path, damage: str) -> None:
    path = run_copy / "policy.safetensors"
    data = bytearray(path.read_bytes())
    data[-5] ^= 16
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes({"flip": bytes(data), "truncate": bytes(data[:-9]), "empty": b""}[damage])
    warnings = list[str]()
    fit_run(Run.open(run_copy), warn=warnings.append)
    assert (
        load_checksummed(path)[1]["so_far"]["weights_sha256"]
        == read_weights_digest(finished_run)
        == read_weights_digest(run_copy)
    )
    assert damage == "remove" or "restored from the last checkpoint" in warnings[0]


def test_run_replaces_a_directory_in_place_of_a_checkpoint(finished_run: Path, run_copy: Path) -> None:
    newest = run_copy / "checkpoints/000012.safetensors"
    newest.unlink()
    newest.mkdir()
    (newest / "something").write_text("else")
    (run_copy / "result.json").unlink()
    warnings = list[str]()
    seen = list[int]()
    fit_run(Run.open(run_copy), lambda line: seen.append(line.iteration), warnings.append)
    assert seen == [12] and read_weights_digest(run_copy) == read_weights_digest(finished_run) and newest.is_file()
    assert "resuming from an earlier checkpoint" in warnings[0]


def test_resume_refuses_a_lock_that_is_a_pipe(run_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_copy / ".lock").unlink(missing_ok=True)
    os.mkfifo(run_copy / ".lock")
    code, sentence = failure(["resume", str(run_copy)], capsys)
    assert code == 65 and ".lock is not a regular file; remove it" in sentence


def test_run_can_be_created_where_an_earlier_creation_was_killed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".config.json.1-abc.tmp").write_text("{")
    check_folder_unused(folder)
    fit_run(Run.create(folder, CONFIG.with_settings(iterations=1)))
    assert not list(folder.glob(".*.tmp"))


def test_run_create_lets_one_of_two_concurrent_callers_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both callers see an empty path before either writes."""
    both = threading.Barrier(2)
    original = module.create_run_folder

    def wait_and_create(*given: Any) -> None:
        both.wait(10)
        original(*given)

    monkeypatch.setattr(module, "create_run_folder", wait_and_create)
    outcomes: list[int | str] = []

    def create(seed: int) -> None:
        try:
            outcomes.append(Run.create(tmp_path / "run", CONFIG.with_settings(seed=seed)).config.loop.seed)
        except UsageError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=create, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [one for one in outcomes if isinstance(one, int)]
    assert len(winners) == 1 and Run.open(tmp_path / "run").config.loop.seed == winners[0]
    assert any("exists already: resume it with 'aggrevated resume" in str(one) for one in outcomes)


def test_resume_creates_trials_that_never_began(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = CONFIG.with_settings(iterations=2)
    folder = tmp_path / "runs"
    expected = [fit_run(run).weights_sha256 for run in create_trials(folder, config, 3)]
    shutil.rmtree(folder / "trial-02")
    with pytest.raises(DataError, match="trial-02 has not started; finish it with 'aggrevated resume"):
        list_runs(folder)
    result = json.loads(said(["resume", str(folder), "--json"], capsys))
    assert result["weights_sha256"] == expected and len(list_runs(folder)) == 3
    longer = [replace(run, config=run.config.with_settings(iterations=3)) for run in list_runs_to_resume(folder)]
    assert all(fit_run(run).iterations == 3 for run in longer) and len(list_runs_to_resume(folder)) == 3
    replace_in_file(folder / "trials.json", '"trials": 3', '"trials": 2')
    code, sentence = failure(["resume", str(folder)], capsys)
    assert code == 65 and "trials.json was changed" in sentence


def test_resume_refuses_a_run_in_use(run_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with exclusive_lock(run_copy):
        code, sentence = failure(["resume", str(run_copy)], capsys)
    assert code == 2 and "is in use by another process" in sentence


@pytest.mark.parametrize("n_left", [11, 9, 2, 0])
def test_repaired_run_can_be_extended_to_the_same_weights(
    finished_run: Path, run_copy: Path, n_left: int, tmp_path: Path
) -> None:
    """Truncate, resume, extend and truncate again: the weights equal those of an undisturbed run."""
    longer = CONFIG.with_settings(iterations=14)
    expected = fit_run(Run.create(tmp_path / "whole", longer))
    path = run_copy / "metrics.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:n_left]))
    fit_run(Run.open(run_copy))
    if n_left >= 9:
        assert read_metrics(run_copy) == read_metrics(finished_run)
        assert list(read_metrics(run_copy)[-1]) == list(read_metrics(finished_run)[-1])  # in the same order
    fit_run(replace(Run.open(run_copy), config=longer))
    path.write_bytes(path.read_bytes()[:-20])
    extended = fit_run(Run.open(run_copy))
    assert extended.weights_sha256 == expected.weights_sha256
    assert [line["iteration"] for line in read_metrics(run_copy)][-5:] == [10, 11, 12, 13, 14]
    main(["compare", str(run_copy), "--out", str(tmp_path / "figure")])


def test_run_refuses_metrics_of_another_run(run_copy: Path, tmp_path: Path) -> None:
    other = Run.create(tmp_path / "other", CONFIG.with_settings(seed=5))
    fit_run(other)
    rows = (other.folder / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (run_copy / "metrics.jsonl").write_bytes(b"".join(rows[:9]))
    with pytest.raises(DataError, match="does not match the newest checkpoint"):
        fit_run(Run.open(run_copy))


def test_run_stopped_before_writing_the_policy_resumes_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = resolve_config("cartpole", update="regular", iterations=3, checkpoint_every=1, **TINY | {"horizon": 300})
    config = config.with_settings(hidden=(16,))
    expected = fit_run(Run.create(tmp_path / "whole", config))
    run = Run.create(tmp_path / "run", config)
    seals = [0]
    from aggrevated import storage

    original = storage.save_checksummed

    def stop_at_policy(path: Path, *given: Any) -> None:
        if path.name == "policy.safetensors":
            seals[0] += 1
            if seals[0] > 1:
                raise KeyboardInterrupt
        original(path, *given)

    for _ in range(3):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(storage, "save_checksummed", stop_at_policy)
            fit_run(Run.open(run.folder))
    result = fit_run(Run.open(run.folder))
    assert result.weights_sha256 == expected.weights_sha256
    assert load_checksummed(run.folder / "policy.safetensors")[1]["so_far"]["weights_sha256"] == expected.weights_sha256
    assert fit_run(Run.open(run.folder)) == result


def test_checkpoint_is_not_quarantined_when_memory_runs_out(run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import safetensors

    original = safetensors.safe_open

    def raise_memory_error(path: Path, **named: Any) -> Any:
        if path.parent.name == "checkpoints":
            raise MemoryError
        return original(path, **named)

    (run_copy / "result.json").unlink()
    checkpoints = sorted((run_copy / "checkpoints").iterdir())
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(safetensors, "safe_open", raise_memory_error)
        fit_run(Run.open(run_copy))
    assert sorted((run_copy / "checkpoints").iterdir()) == checkpoints


def test_list_newest_first_sorts_checkpoints_by_number(tmp_path: Path) -> None:
    from aggrevated.training.checkpoint import list_newest_first

    for n in (999_999, 1_000_000, 7):
        (tmp_path / f"{n:06d}.safetensors").touch()
    assert [int(path.stem) for path in list_newest_first(tmp_path)] == [1_000_000, 999_999, 7]


def test_run_calls_a_signal_handler_of_the_user_once(tmp_path: Path) -> None:
    import signal

    received = list[int]()
    signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        run = Run.create(tmp_path / "run", CONFIG)
        fit_run(run, lambda line: signal.raise_signal(signal.SIGTERM) if line.iteration == 3 else None)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert received == [signal.SIGTERM] and run.result() is not None
