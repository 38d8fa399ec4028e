"""What the board reads: only what is new, only what is shown, whatever lies in the folders; and it writes nothing."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import board_folders as folders
import numpy as np
import pytest

from aggrevated import files
from aggrevated.errors import DataError
from aggrevated.runs.trials import SEVERAL
from aggrevated.server import board_trials, following, following_folders, following_runs
from aggrevated.server.board_printing import table
from aggrevated.server.board_runs import Board
from aggrevated.server.following import MOST_POINTS, Tail
from aggrevated.server.following_folders import find, locks_held
from aggrevated.server.following_runs import Followed
from aggrevated.server.following_seals import Seals
from aggrevated.statistics import bootstrap_interval, interquartile_mean
from commanding import failure, said

ALWAYS = float("inf")


def tail_of(folder: Path) -> Tail:
    tail = Tail(folder / "metrics.jsonl")
    tail.read(ALWAYS)
    return tail


def looked(board: Board) -> dict[str, Any]:
    """All rows by path, after another look."""
    board.looked = board._searched = 0.0  # however long the last search took
    board.look(ALWAYS)
    return {row["path"]: row for row in [*board.since("")["runs"], *board.since("")["groups"]]}


def finished(root: Path) -> dict[str, Any]:
    return {row["path"]: row for row in Board(root).finish()}


def test_only_what_was_appended_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = folders.write(folders.begin(tmp_path / "run"), map(folders.line, range(1, 101)))
    tail, read = tail_of(run), list[int]()
    assert [point.iteration for point in tail.kept] == list(range(1, 101)) and tail.newest == tail.kept[-1]
    whole = os.pread

    def counted(file: int, most: int, offset: int) -> bytes:
        data = whole(file, most, offset)
        read.append(len(data))
        return data

    monkeypatch.setattr(following.os, "pread", counted)
    tail.read(ALWAYS)
    assert read == []
    folders.append(run, [folders.line(101, 7.5)])
    tail.read(ALWAYS)
    assert sum(read) < 1_000 and tail.newest == (101, 0.5, 7.5, 10100, 1010, 50.5)


def test_a_long_journal_is_thinned_and_few_lines_are_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = folders.write(folders.begin(tmp_path / "run"), map(folders.line, range(1, 2002)))
    parsed, whole = list[bytes](), following.object_in

    def counted(line: bytes) -> Any:
        parsed.append(line)
        return whole(line)

    monkeypatch.setattr(following, "object_in", counted)
    tail = tail_of(run)
    assert [point.iteration for point in tail.kept] == [1, *range(16, 2002, 16)]
    assert tail.newest is not None and tail.newest.iteration == 2001 and len(parsed) <= MOST_POINTS
    folders.append(run, map(folders.line, range(2002, 6001)))  # thinned again, the same as if read at once
    tail.read(ALWAYS)
    assert tail.kept == tail_of(run).kept and len(tail.kept) <= MOST_POINTS + 1


def test_a_torn_line_waits_for_its_end(tmp_path: Path) -> None:
    run = folders.write(folders.begin(tmp_path / "run"), map(folders.line, range(1, 4)))
    path = run / "metrics.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    tail = tail_of(run)
    assert tail.newest is not None and tail.newest.iteration == 2 and not tail.behind
    with path.open("ab") as file:
        file.write(data[-100:])
    tail.read(ALWAYS)
    seals = Seals(tail)
    seals.look(ALWAYS)
    assert tail.newest.iteration == 3 and tail.lines == 3 and seals.done and not seals.sentence


@pytest.mark.parametrize("how", ["replaced", "cut", "removed", "written over"])
def test_a_journal_that_is_another_is_begun_again(tmp_path: Path, how: str) -> None:
    run = folders.write(folders.begin(tmp_path / "run"), [folders.line(n, 1.0) for n in range(1, 9)])
    path, tail = run / "metrics.jsonl", tail_of(run)
    seals, beginnings = Seals(tail), tail.beginnings
    seals.look(ALWAYS)
    if how == "replaced":
        folders.write(run, [folders.line(n, 2.0) for n in range(1, 12)])
    elif how == "cut":
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    elif how == "removed":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b'"best_return": 1.0', b'"best_return": 3.0'))
        os.utime(path, (1, 1))  # another time than before, however coarse the disk's clock is
    tail.read(ALWAYS)
    known = {"replaced": (11, 2.0), "cut": (3, 1.0), "removed": (0, None), "written over": (8, 3.0)}[how]
    last = tail.newest
    assert (len(tail.kept), last.best if last else None) == known and tail.beginnings > beginnings
    seals.look(ALWAYS)
    assert bool(seals.sentence) == (how == "written over")


def test_learning_that_died_is_found_wherever_it_is_said(tmp_path: Path) -> None:
    lines = [folders.line(n) | {"died": "gradient vanished" if n in (700, 703) else ""} for n in range(1, 1501)]
    run = folders.write(folders.begin(tmp_path / "run"), lines)
    (sentence,) = finished(tmp_path)["run"]["warnings"]
    assert sentence.startswith("learning has died: gradient vanished; first in iteration 700, in 2 of 1500 iterations")
    assert "last in iteration 703" in sentence
    folders.append(run, [folders.line(1501, died="sure and wrong")])
    assert "sure and wrong; first in iteration 700, in 3 of 1501" in finished(tmp_path)["run"]["warnings"][0]


def test_what_was_changed_is_told_in_the_words_of_the_library(tmp_path: Path) -> None:
    root = folders.gallery(tmp_path / "runs")
    for name, file in (("acrobot-natural", "config.json"), ("cartpole-exponentiated", "result.json")):
        path = root / name / file
        path.write_text(path.read_text().replace('"iterations": ', '"iterations": 1'))
    rows = finished(root)
    with pytest.raises(DataError) as caught:
        files.read_journal(root / "acrobot-changed" / "metrics.jsonl")
    assert rows["acrobot-changed"]["damage"] == [str(caught.value).replace(f"{root}/", "runs/")]
    assert "was changed after it was written" in rows["acrobot-natural"]["damage"][0]
    assert rows["acrobot-natural"]["state"] == "unreadable" and rows["acrobot-natural"]["iterations"] == 40
    assert "was changed after it was written" in rows["cartpole-exponentiated"]["damage"][0]
    assert not rows["cartpole-dagger"]["damage"]


def other_file(run: Path, name: str) -> Path:
    """Where a file was."""
    (run / name).unlink(missing_ok=True)
    return run / name


def junk_numbers(run: Path, **numbers: Any) -> None:
    folders.write(run, [folders.line(n) | numbers for n in range(1, 5)])


HOSTILE: dict[str, Callable[[Path], object]] = {
    "a huge config": lambda run: (run / "config.json").write_bytes(b"[" * (20 << 20)),
    "no JSON": lambda run: (run / "config.json").write_bytes(bytes(range(256)) * 40),
    "other types": lambda run: files.seal_json(run / "config.json", {"task": [1], "loop": "x", "world": 3}),
    "nothing in it": lambda run: files.seal_json(run / "config.json", {}),
    "numbers that are none": lambda run: junk_numbers(run, best_return=float("nan"), seconds=float("inf")),
    "numbers too large": lambda run: junk_numbers(run, best_return=10**400, seconds=-(10**400)),
    "missing fields": lambda run: folders.write(run, [{"iteration": 3}]),
    "texts for numbers": lambda run: folders.write(run, [dict.fromkeys(folders.line(1), "x")]),
    "junk lines": lambda run: (run / "metrics.jsonl").write_bytes(os.urandom(200_000)),
    "no end of a line": lambda run: os.truncate(run / "metrics.jsonl", 10 << 30),
    "a pipe": lambda run: os.mkfifo(other_file(run, "metrics.jsonl")),
    "a folder": lambda run: other_file(run, "metrics.jsonl").mkdir(),
    "a link": lambda run: other_file(run, "metrics.jsonl").symlink_to("/dev/zero"),
    "a result that is none": lambda run: files.seal_json(run / "result.json", {"iterations": [], "ratio": {}}),
    "a pipe for a result": lambda run: os.mkfifo(run / "result.json"),
}
SOUND = {"other types", "nothing in it", "numbers that are none", "numbers too large", "missing fields"}


@pytest.mark.parametrize("what", HOSTILE)
def test_whatever_lies_in_a_folder_is_told_in_a_sentence(tmp_path: Path, what: str) -> None:
    good = folders.write(folders.begin(tmp_path / "good"), map(folders.line, range(1, 4)))
    bad = folders.write(folders.begin(tmp_path / "bad"), map(folders.line, range(1, 4)))
    HOSTILE[what](bad)
    began = time.process_time()
    rows = finished(tmp_path)
    assert time.process_time() - began < 5 and rows["good"]["iterations"] == 3 and good.exists()
    json.dumps(list(rows.values()), allow_nan=False)
    assert bool(rows["bad"]["damage"]) == (what not in SOUND | {"a result that is none"})
    assert all("Traceback" not in one and len(one) < 600 for one in rows["bad"]["damage"])


def test_links_and_checkpoints_and_depths_are_left_alone(tmp_path: Path) -> None:
    folders.begin(tmp_path / "elsewhere" / "run")
    root = tmp_path / "root"
    folders.begin(root / "a" / "b" / "run")
    folders.begin(root / "a" / "checkpoints" / "run")
    folders.begin(root / ".hidden" / "run")
    folders.begin(root.joinpath(*"12345678") / "run")
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / "loop").symlink_to(root)
    assert find(root).runs == [root / "a" / "b" / "run"]
    assert finished(root / "a" / "b" / "run").keys() == {"run"}


def test_of_very_many_folders_some_are_left_out_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(6):
        folders.begin(tmp_path / f"run-{i}")
    monkeypatch.setattr(following_folders, "MOST_RUNS", 4)
    found = find(tmp_path)
    assert len(found.runs) == 4 and "only 4 runs" in found.left_out[0]


@pytest.mark.parametrize("name", ["trial-00", "seed-7", "trials", "run-1"])
def test_trials_are_known_by_the_names_that_runs_give_them(name: str) -> None:
    assert bool(following_folders.SEVERAL.fullmatch(name)) == any(fnmatch(name, one) for one in SEVERAL)


def test_whether_a_run_is_running_is_asked_of_its_lock_which_is_not_taken(tmp_path: Path) -> None:
    run = folders.begin(tmp_path / "run", iterations=9)
    board = Board(tmp_path)

    def state(of: Board = board) -> tuple[str, str]:
        row = looked(of)["run"]
        return row["state"], row["known_by"]

    assert state()[0] == "waiting"
    folders.write(run, map(folders.line, range(1, 4)))
    assert state() == ("running", "the age of its newest line")  # by somebody whose lock is not seen here
    os.utime(run / "metrics.jsonl", (0, 0))
    assert state(Board(tmp_path)) == ("stopped", "the age of its newest line")
    board = Board(tmp_path)
    with files.only_one(run):
        if locks_held() is None:
            pytest.skip("this system does not say who holds a lock")
        assert state(board) == ("running", "its lock")
        folders.append(run, [folders.line(4)])
    assert state(board) == ("stopped", "its lock")  # at once, however young its newest line is
    folders.append(run, [folders.line(5)])
    assert state(board) == ("running", "the age of its newest line")
    folders.end(run, 9)
    assert state(board)[0] == "ended"
    folders.end(run, 3)  # it was made longer since
    assert state(board)[0] == "running"


def test_on_a_disk_of_this_machine_a_lock_that_nobody_holds_tells_that_a_run_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = folders.write(folders.begin(tmp_path / "run", iterations=9), map(folders.line, range(1, 4)))
    (run / ".lock").touch()
    for disk, state in ((8, "stopped"), (0, "running")):
        monkeypatch.setattr(following_folders.os, "major", lambda device, disk=disk: disk)
        assert looked(Board(tmp_path))["run"]["state"] == state


def test_what_changed_is_told_and_nothing_else(tmp_path: Path) -> None:
    one = folders.write(folders.begin(tmp_path / "one"), map(folders.line, range(1, 51)))
    folders.write(folders.begin(tmp_path / "two"), map(folders.line, range(1, 51)))
    board = Board(tmp_path)
    board.finish()
    stamp = board.since("")["stamp"]
    assert board.since(stamp)["runs"] == []
    folders.append(one, [folders.line(51)])
    looked(board)
    (news,) = board.since(stamp)["runs"]
    assert news["path"] == "one" and news["from"] == 50 and [point.iteration for point in news["points"]] == [51]
    for strange in ("", "x", "00000000-5", "-", "🦆", f"{board.life}-x", "9" * 500):
        assert len(board.since(strange)["runs"]) == 2
    keys = {row["path"]: row["key"] for row in board.since("")["runs"]}
    folders.begin(tmp_path / "a")
    (tmp_path / "two" / "config.json").rename(tmp_path / "two" / "other.json")
    rows = looked(board)
    assert rows["one"]["key"] == keys["one"] and rows["a"]["key"] not in keys.values() and "two" not in rows


def test_trials_are_one_curve_with_the_interval_that_compare_draws(tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    best = np.maximum.accumulate(draws.normal(size=(4, 40)), axis=1)
    for i, row in enumerate(best):
        trial = folders.begin(tmp_path / "t" / f"trial-{i:02d}", seed=i, iterations=40)
        folders.end(folders.write(trial, [folders.line(n, float(one)) for n, one in enumerate(row, 1)]), 40)
    folders.write(folders.begin(tmp_path / "t" / "trial-04", seed=4, iterations=40), [folders.line(1, 9.0)])
    group = finished(tmp_path)["t"]
    curve = np.array([point[:5] for point in group["curve"]], float)
    low, high = bootstrap_interval(best)
    assert len(group["members"]) == 5 and curve[0, 1] == 5 and set(curve[1:, 1]) == {4}  # one has not come so far
    np.testing.assert_allclose(curve[1:, 2], interquartile_mean(best)[1:])
    np.testing.assert_allclose(curve[1:, 3:5], np.stack([low, high], axis=1)[1:])


def test_an_interval_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[Any]()
    monkeypatch.setattr(board_trials, "bootstrap_interval", lambda values: calls.append(values.shape) or values[:2])
    intervals = board_trials.Intervals()
    assert intervals.of((1.0, 2.0)) is None and intervals.of((3.0, 3.0)) == (3.0, 3.0)
    assert intervals.work() and not intervals.work()
    assert intervals.of((1.0, 2.0)) == (1.0, 2.0) and calls == [(2, 1)]


def test_runs_of_other_settings_are_no_trials(tmp_path: Path) -> None:
    for i, update in enumerate(("natural", "exponentiated")):
        folders.begin(tmp_path / "t" / f"trial-{i:02d}", update=update)
    assert finished(tmp_path).keys() == {"t/trial-00", "t/trial-01"}


def test_trials_right_in_the_folder_are_called_as_it_is(tmp_path: Path) -> None:
    for i in range(2):
        folders.begin(tmp_path / "cartpole" / f"trial-{i:02d}", seed=i)
    rows = finished(tmp_path / "cartpole")
    assert rows.keys() == {"cartpole", "trial-00", "trial-01"} and rows["trial-01"]["group"] == "cartpole"


def test_a_run_that_ended_lends_its_expert_to_those_of_the_same_world(tmp_path: Path) -> None:
    folders.end(folders.begin(tmp_path / "ended", iterations=9, test_episodes=50), 9, 123.0)
    folders.begin(tmp_path / "same", update="natural")
    folders.begin(tmp_path / "other", horizon=20)
    rows = finished(tmp_path)
    assert (rows["same"]["expert"], rows["same"]["lent"], rows["other"]["expert"]) == (123.0, True, None)


def test_beside_its_expert_a_task_has_a_ratio_or_a_gain_and_never_both(tmp_path: Path) -> None:
    for i in range(2):
        folders.end(
            folders.begin(tmp_path / "rated" / f"trial-{i:02d}", seed=i, iterations=9), 9, 400.0, test=380.0 + 40 * i
        )
    folders.write(folders.begin(tmp_path / "under-way", iterations=9), [folders.line(1, 500.0)])
    folders.end(folders.begin(tmp_path / "own", "acrobot", iterations=9), 9, -90.0, test=-85.0, rated=False)
    folders.write(folders.begin(tmp_path / "own-under-way", "acrobot", iterations=9), [folders.line(1, -70.0)])
    rows = finished(tmp_path)
    known = {name: (row["measure"], row["expert"], row["beside"]) for name, row in rows.items() if "/" not in name}
    assert known == {
        "rated": ("ratio", 400.0, 1.0),
        "under-way": ("ratio", 400.0, None),  # a ratio is of the test
        "own": ("gain", -90.0, 5.0),
        "own-under-way": ("gain", -90.0, None),
    }
    printed = table(list(rows.values()), []).columns["to expert"]
    assert [printed(rows[name]) for name in known] == ["1.000 ×", "+5.000", "", ""]


def test_nothing_is_written_and_nothing_heavy_imported(tmp_path: Path) -> None:
    root = folders.gallery(tmp_path / "runs")

    def state() -> list[tuple[str, int, int]]:
        return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*"))

    before = state()
    script = (
        "import sys; from pathlib import Path; import aggrevated.server.board; "
        "from aggrevated.server.board_runs import Board; print(len(Board(Path(sys.argv[1])).finish())); "
        "assert not {'torch', 'matplotlib', 'gymnasium', 'numba'} & set(sys.modules), 'a heavy import'"
    )
    done = subprocess.run([sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=True)
    assert done.stdout == "12\n" and state() == before


def test_what_the_page_shows_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = folders.gallery(tmp_path / "runs")
    rows = {row["path"]: row for row in json.loads(said(["board", str(root), "--once", "--json"], capsys))}
    assert rows["cartpole-natural"]["iterations"] == 60 and len(rows["cartpole-natural"]["members"]) == 5
    assert rows["cartpole-dagger"]["settings"]["loop.iterations"] == "60"
    assert len(rows["cartpole-dagger"]["points"]) == 34
    shown = said(["board", str(root), "--once"], capsys)
    assert "cartpole-reinforce: learning has died: gradient vanished" in shown and "11 runs" in shown
    assert failure(["board", str(tmp_path / "none"), "--once"], capsys)[0] == 74
    assert failure(["board", str(tmp_path / "none")], capsys)[0] == 74
    assert failure(["board", str(root / "acrobot-natural" / "config.json"), "--once"], capsys)[0] == 74


def test_a_run_between_two_looks_costs_no_more_than_its_stats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Followed(folders.end(folders.write(folders.begin(tmp_path / "run", iterations=9), [folders.line(9)]), 9))
    run.look(ALWAYS, set())
    done, called = Counter[str](), {name: getattr(os, name) for name in ("open", "pread", "lstat", "stat")}
    for name, call in called.items():
        monkeypatch.setattr(os, name, lambda *given, _name=name, _call=call: done.update([_name]) or _call(*given))
    monkeypatch.setattr(following_runs, "unseal_json", lambda *given: done.update(["unseal"]))
    for _ in range(100):
        run.look(ALWAYS, set())
    assert done.keys() <= {"lstat", "stat"} and done.total() <= 500  # config, result, metrics, and twice the lock
