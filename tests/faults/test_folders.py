"""A run's folder, altered, cut, damaged, or begun by two: noticed in one sentence, mended where it can be."""

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
from aggrevated.training.trainer import run_to_end
from helpers.command_line import failure, said

TINY = {"trajectories": 2, "horizon": 20, "validation_episodes": 2, "test_episodes": 4, "hidden": (4,)}
CONFIG = resolve_config("cartpole", iterations=12, checkpoint_every=1, **TINY)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has ended, with checkpoints 10 to 12."""
    run = Run.create(tmp_path_factory.mktemp("runs") / "run", CONFIG)
    run_to_end(run)
    return run.folder


@pytest.fixture
def copy(ended: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ended, tmp_path / "run"))


def weights(folder: Path) -> str:
    return str(json.loads((folder / "result.json").read_text())["weights_sha256"])


def lines(folder: Path) -> list[dict[str, Any]]:
    return [line | {"seconds": 0, "cpu_seconds": 0} for line in read_journal(folder / "metrics.jsonl")]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("left", [11, 9, 0])
@pytest.mark.parametrize("finished", [True, False])
def test_metrics_that_were_cut_do_not_hide_the_checkpoints(ended: Path, copy: Path, left: int, finished: bool) -> None:
    whole = (copy / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_bytes(b"".join(whole[:left]) + whole[left][:50])
    if not finished:
        (copy / "result.json").unlink()
    warnings = list[str]()
    seen = list[int]()
    run_to_end(Run.open(copy), lambda line: seen.append(line.iteration), warnings.append)
    assert seen == []  # nothing was done again
    assert weights(copy) == weights(ended)
    assert lines(copy) == (lines(ended) if left >= 9 else lines(ended)[-3:])
    assert len(warnings) == 1 and "is shorter than the checkpoint beside it" in warnings[0]


@pytest.mark.parametrize("finished", [True, False])
def test_metrics_that_were_altered_are_noticed(copy: Path, finished: bool, capsys: pytest.CaptureFixture[str]) -> None:
    if not finished:
        (copy / "result.json").unlink()
    path = copy / "metrics.jsonl"
    original = path.read_bytes()
    rows = original.splitlines(keepends=True)
    altered = {
        "a number": original.replace(b'"iteration": 3, "roll_in_return": ', b'"iteration": 3, "roll_in_return": 1', 1),
        "a line in the middle": b"".join(rows[:4] + rows[5:]),
        "the first line": b"".join(rows[1:]),
        "two lines swapped": b"".join([*rows[:4], rows[5], rows[4], *rows[6:]]),
        "a line that is no JSON": b"".join([*rows[:4], b"x\n", *rows[5:]]),
    }
    for what, data in altered.items():
        path.write_bytes(data)
        code, sentence = failure(["resume", str(copy)], capsys)
        assert code == 65 and "metrics.jsonl is not as it was written" in sentence, what
    facts = read_journal_of(original, path)
    facts[3]["roll_in_return"] += 1.0
    rewrite_journal(path, facts)  # sealed again
    if not finished:
        code, sentence = failure(["resume", str(copy)], capsys)
        assert code == 65 and "is not what the checkpoint beside it knows" in sentence


def read_journal_of(data: bytes, path: Path) -> list[dict[str, Any]]:
    path.write_bytes(data)
    return read_journal(path)


@pytest.mark.parametrize("command", ["resume", "evaluate", "watch", "compare"])
def test_a_config_that_was_changed_is_noticed(
    copy: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy.parent)
    edit(copy / "config.json", '"horizon": 20', '"horizon": 21')
    code, sentence = failure([command, str(copy)], capsys)
    assert code == 65 and f"{copy}/config.json was changed after it was written" in sentence
    assert "train --config" in sentence
    result = json.loads(said(["train", "--config", f"{copy}/config.json", "--iterations", "2", "--json"], capsys))
    made = json.loads((Path(result["run_folder"]) / "config.json").read_text())
    assert (made["problem"]["horizon"], made["loop"]["iterations"]) == (21, 2)


def test_a_result_that_was_changed_is_noticed(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(copy / "result.json", '"test_return": ', '"test_return": 1')
    for command in (["compare", str(copy), "--out", str(copy.parent / "c")], ["resume", str(copy)]):
        code, sentence = failure(command, capsys)
        assert code == 65 and "result.json was changed after it was written" in sentence
    (copy / "result.json").unlink()
    main(["resume", str(copy)])


def test_a_policy_of_another_run_is_noticed(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Run.create(copy.parent / "other", CONFIG.with_settings(seed=5))
    run_to_end(other)
    shutil.copy(other.folder / "policy.safetensors", copy)
    for command in ("resume", "evaluate"):
        code, sentence = failure([command, str(copy)], capsys)
        assert code == 65 and "does not fit the policy beside it" in sentence


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "empty"])
def test_a_damaged_policy_is_written_again(ended: Path, copy: Path, damage: str) -> None:
    path = copy / "policy.safetensors"
    data = bytearray(path.read_bytes())
    data[-5] ^= 16
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes({"flip": bytes(data), "truncate": bytes(data[:-9]), "empty": b""}[damage])
    warnings = list[str]()
    run_to_end(Run.open(copy), warn=warnings.append)
    assert load_checksummed(path)[1]["so_far"]["weights_sha256"] == weights(ended) == weights(copy)
    assert damage == "remove" or "made again from the last checkpoint" in warnings[0]


def test_a_directory_in_the_place_of_a_checkpoint(ended: Path, copy: Path) -> None:
    newest = copy / "checkpoints/000012.safetensors"
    newest.unlink()
    newest.mkdir()
    (newest / "something").write_text("else")
    (copy / "result.json").unlink()
    warnings = list[str]()
    seen = list[int]()
    run_to_end(Run.open(copy), lambda line: seen.append(line.iteration), warnings.append)
    assert seen == [12] and weights(copy) == weights(ended) and newest.is_file()
    assert "going on from an earlier point" in warnings[0]


def test_a_lock_that_is_a_pipe_is_not_waited_for(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / ".lock").unlink(missing_ok=True)
    os.mkfifo(copy / ".lock")
    code, sentence = failure(["resume", str(copy)], capsys)
    assert code == 65 and ".lock is not a regular file; remove it" in sentence


def test_a_folder_whose_beginning_was_killed_can_be_used(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".config.json.1-abc.tmp").write_text("{")
    check_folder_unused(folder)
    run_to_end(Run.create(folder, CONFIG.with_settings(iterations=1)))
    assert not list(folder.glob(".*.tmp"))


def test_of_two_who_begin_a_folder_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen that nothing is there before either writes."""
    both = threading.Barrier(2)
    original = module.create_run_folder

    def late(*given: Any) -> None:
        both.wait(10)
        original(*given)

    monkeypatch.setattr(module, "create_run_folder", late)
    monkeypatch.setattr(module, "build_algorithm_inputs", lambda config: None)
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
    assert any("exists already: go on with 'aggrevated resume" in str(one) for one in outcomes)


def test_trials_that_never_began_are_made_by_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = CONFIG.with_settings(iterations=2)
    folder = tmp_path / "runs"
    expected = [run_to_end(run).weights_sha256 for run in create_trials(folder, config, 3)]
    shutil.rmtree(folder / "trial-02")
    with pytest.raises(DataError, match="trial-02 has not begun; finish it with 'aggrevated resume"):
        list_runs(folder)
    result = json.loads(said(["resume", str(folder), "--json"], capsys))
    assert result["weights_sha256"] == expected and len(list_runs(folder)) == 3
    longer = [replace(run, config=run.config.with_settings(iterations=3)) for run in list_runs_to_resume(folder)]
    assert all(run_to_end(run).iterations == 3 for run in longer) and len(list_runs_to_resume(folder)) == 3
    edit(folder / "trials.json", '"trials": 3', '"trials": 2')
    code, sentence = failure(["resume", str(folder)], capsys)
    assert code == 65 and "trials.json was changed" in sentence


def test_a_run_in_use_is_left_alone(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with exclusive_lock(copy):
        code, sentence = failure(["resume", str(copy)], capsys)
    assert code == 2 and "is in use by another process" in sentence


@pytest.mark.parametrize("left", [11, 9, 2, 0])
def test_what_was_mended_goes_on(ended: Path, copy: Path, left: int, tmp_path: Path) -> None:
    """Cut, mended, made longer, and cut again: as a run that nothing happened to, but for lines that are lost."""
    longer = CONFIG.with_settings(iterations=14)
    whole = run_to_end(Run.create(tmp_path / "whole", longer))
    path = copy / "metrics.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:left]))
    run_to_end(Run.open(copy))
    if left >= 9:
        assert lines(copy) == lines(ended)
        assert list(lines(copy)[-1]) == list(lines(ended)[-1])  # in the same order, too
    run_to_end(replace(Run.open(copy), config=longer))
    path.write_bytes(path.read_bytes()[:-20])
    again = run_to_end(Run.open(copy))
    assert again.weights_sha256 == whole.weights_sha256
    assert [line["iteration"] for line in lines(copy)][-5:] == [10, 11, 12, 13, 14]
    main(["compare", str(copy), "--out", str(tmp_path / "figure")])


def test_lines_of_another_run_are_noticed(copy: Path, tmp_path: Path) -> None:
    other = Run.create(tmp_path / "other", CONFIG.with_settings(seed=5))
    run_to_end(other)
    rows = (other.folder / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_bytes(b"".join(rows[:9]))
    with pytest.raises(DataError, match="is not what the checkpoint beside it knows"):
        run_to_end(Run.open(copy))


def test_a_stop_between_the_last_checkpoint_and_the_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = resolve_config("cartpole", update="regular", iterations=3, checkpoint_every=1, **TINY | {"horizon": 300})
    config = config.with_settings(hidden=(16,))
    whole = run_to_end(Run.create(tmp_path / "whole", config))
    run = Run.create(tmp_path / "run", config)
    seals = [0]
    from aggrevated import storage

    original = storage.save_checksummed

    def stopped(path: Path, *given: Any) -> None:
        if path.name == "policy.safetensors":
            seals[0] += 1
            if seals[0] > 1:
                raise KeyboardInterrupt
        original(path, *given)

    for _ in range(3):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(storage, "save_checksummed", stopped)
            run_to_end(Run.open(run.folder))
    result = run_to_end(Run.open(run.folder))
    assert result.weights_sha256 == whole.weights_sha256
    assert load_checksummed(run.folder / "policy.safetensors")[1]["so_far"]["weights_sha256"] == whole.weights_sha256
    assert run_to_end(Run.open(run.folder)) == result


def test_what_cannot_be_read_now_is_not_put_aside(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import safetensors

    original = safetensors.safe_open

    def full(path: Path, **named: Any) -> Any:
        if path.parent.name == "checkpoints":
            raise MemoryError
        return original(path, **named)

    (copy / "result.json").unlink()
    there = sorted((copy / "checkpoints").iterdir())
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(safetensors, "safe_open", full)
        run_to_end(Run.open(copy))
    assert sorted((copy / "checkpoints").iterdir()) == there


def test_the_newest_checkpoint_is_that_of_the_largest_number(tmp_path: Path) -> None:
    from aggrevated.training.checkpoint import list_newest_first

    for n in (999_999, 1_000_000, 7):
        (tmp_path / f"{n:06d}.safetensors").touch()
    assert [int(path.stem) for path in list_newest_first(tmp_path)] == [1_000_000, 999_999, 7]


def test_a_handler_that_does_not_stop_is_told_once(tmp_path: Path) -> None:
    import signal

    told = list[int]()
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        run = Run.create(tmp_path / "run", CONFIG)
        run_to_end(run, lambda line: signal.raise_signal(signal.SIGTERM) if line.iteration == 3 else None)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert told == [signal.SIGTERM] and run.result() is not None
