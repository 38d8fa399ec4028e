"""Values of wrong types in the files of a run: one sentence and the exit code of invalid data."""

import json
from pathlib import Path
from typing import Any

import pytest

from aggrevated.config.resolver import config_from_dict, resolve_config
from aggrevated.core.errors import DataError
from aggrevated.storage import save_checksummed_json
from aggrevated.training.records import Metrics, Result
from aggrevated.training.run_folder import Run
from helpers.command_line import failure
from helpers.small_runs import fit_run

ODD = (None, True, "x", "", [], {}, [[1]], 1.5, -1, 10**23, 1e12, float("nan"), "\udcff", "a\0b")
TINY = {"iterations": 1, "trajectories": 2, "horizon": 5, "validation_episodes": 2, "test_episodes": 2}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = Run.create(tmp_path_factory.mktemp("runs") / "run", resolve_config("cartpole", **TINY))
    fit_run(made)
    return made


def test_config_from_dict_refuses_every_value_of_a_wrong_type(run: Run) -> None:
    facts = run.config.to_dict()
    n_checked = 0
    for section, values in facts.items():
        for name in [None] if not isinstance(values, dict) else [None, *values]:
            for odd in (*ODD, [1.5], [1e9], [10**9], [10**6, 10**6], 10**12):
                changed = json.loads(json.dumps(facts))
                if name is None:
                    changed[section] = odd
                else:
                    changed[section][name] = odd
                n_checked += 1
                try:
                    config_from_dict(changed, "config.json")
                except DataError as error:
                    assert "config.json" in str(error)
                else:
                    assert name is not None and is_valid_value(name, odd), (section, name, odd)
                    assert type(odd) is not int or name == "seed" or type(facts[section][name]) is float, (name, odd)
    assert n_checked > 500


def is_valid_value(name: str, odd: Any) -> bool:
    """Return whether some setting accepts this odd value."""
    if name == "hidden":
        return bool(odd == [])  # a linear policy
    if name == "seed":
        return odd == 10**12
    return (name == "expert" and isinstance(odd, str)) or odd is True or (type(odd) in (int, float) and odd > 0)


@pytest.mark.parametrize(("kind", "file"), [(Result, "result.json"), (Metrics, "metrics.jsonl")])
def test_record_refuses_every_field_of_a_wrong_type(kind: Any, file: str, run: Run) -> None:
    facts = json.loads((run.folder / file).read_text())
    assert kind.read(facts, file).to_dict() == facts
    for name in kind.__dataclass_fields__.keys() - {"more"}:
        without = {key: value for key, value in facts.items() if key != name}
        if name == "cpu_seconds":  # older runs did not record them
            assert kind.read(without, file).cpu_seconds == 0.0
        else:
            with pytest.raises(DataError, match=f"{file} lacks {name}"):
                kind.read(without, file)
        for odd in ([], {}, [1], True):
            with pytest.raises(DataError, match=f"{file} holds {name} as .*, which must be"):
                kind.read(facts | {name: odd}, file)
    for odd in ODD[:10]:
        if odd != {}:
            with pytest.raises(DataError, match=file):
                kind.read(odd, file)


@pytest.mark.parametrize("change", [{"seconds": "x"}, {"ratio": "x"}, {"test_return": []}, {"test_return": "absent"}])
def test_compare_command_refuses_a_result_with_values_of_wrong_types(
    change: dict[str, Any], run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = json.loads((run.folder / "result.json").read_text())
    copy = Run.create(tmp_path / "run", run.config)
    (copy.folder / "metrics.jsonl").write_bytes((run.folder / "metrics.jsonl").read_bytes())
    facts.pop("sha256")
    save_checksummed_json(copy.folder / "result.json", facts | change)
    code, output = failure(["compare", str(copy.folder), "--out", str(tmp_path / "both")], capsys)
    assert code == 65 and "result.json" in output and next(iter(change)) in output


def test_resume_command_refuses_metrics_lines_that_are_not_records(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    copy = Run.create(tmp_path / "run", run.config)
    for line in ("{}", '{"iteration": "x"}'):  # a last line that is not an object counts as torn by a crash
        (copy.folder / "metrics.jsonl").write_text(line + "\n")
        code, output = failure(["resume", str(copy.folder)], capsys)
        assert code == 65 and "metrics.jsonl" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--hidden 100000 100000", "weights between two"),
        ("--hidden 200000", "at most 100,000"),
        ("--policy lstm --hidden 6000", "one width for the policy lstm, of at most 5,000"),
        ("--trajectories 1000000", "500,000,000 steps, about 50 GB, and 100,000,000 steps are the most"),
        ("--test-episodes 1000000", "--test-episodes is 1000000, but must be smaller"),
        ("--horizon 1000001", "--horizon is 1000001, but must be at least 1, and at most 1,000,000"),
        ("--seed 9223372036854775808", "but must be 0 or more, and below 2^63"),
        ("--policy=", "unknown policy ''"),
        ("--update regular --gradient=", "unknown gradient ''"),
        ("--out=", "it is empty: give a path"),
    ],
)
def test_train_command_refuses_excessive_sizes_before_creating_files(
    arguments: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = failure(["train", "cartpole", *arguments.split()], capsys)
    assert code == 2 and words in " ".join(output.split())
    assert list(tmp_path.iterdir()) == []


def test_train_command_refuses_arguments_that_are_not_utf_8(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = failure(["train", "cartpole", "--out", "r\udcff"], capsys)
    assert code == 2 and "argument 4" in output and "is not UTF-8" in output
    assert list(tmp_path.iterdir()) == []
    for text in ("\udcff", "a\0b"):
        with pytest.raises(ValueError, match="UTF-8"):
            resolve_config("cartpole", expert=text)


def test_compare_command_refuses_the_same_run_twice(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(run.folder.parent)
    (tmp_path / "link").symlink_to(run.folder)
    for other in ("run", "./run/", "../" + run.folder.parent.name + "/run", str(tmp_path / "link")):
        code, output = failure(["compare", "run", other, "--out", str(tmp_path / "both")], capsys)
        assert code == 2 and "run is given twice" in output
