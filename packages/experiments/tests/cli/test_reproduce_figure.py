"""The command reproduce on a figure, as users call it, and its errors."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aggrevated.reports import digest_numbers
from aggrevated.tasks import FROM_SCRATCH_ROWS, ComparisonProtocol, Preset, acrobot, make_aggrevated_rows
from helpers.command_line import failure, said


def test_reproduce_tunes_and_compares_methods_and_reruns_to_the_same_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = Preset({"trajectories": 3, "validation_episodes": 5, "test_episodes": 10})
    rows = (*make_aggrevated_rows(trials=3), *FROM_SCRATCH_ROWS)
    tiny = replace(
        acrobot.TASK, presets=(*acrobot.TASK.presets, small), defaults=(*acrobot.TASK.defaults, small), figure_rows=rows
    )
    tiny = replace(tiny, protocol=ComparisonProtocol(budget=3000, tuning_seeds=(100,), tuning_budget=1500), trials=2)
    monkeypatch.setattr(acrobot, "TASK", tiny)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs/reproduce-acrobot"
    command = ["reproduce", "acrobot", "--json"]
    table = json.loads(said(command, capsys))
    keys = {"method", "update", "trials", "ratio", "ratio_low", "ratio_high"}
    assert [row["trials"] for row in table] == [3, 3, 3, 2, 2] and all(keys <= set(row) for row in table)
    page = (folder / "acrobot.md").read_text()
    assert (
        "`aggrevated reproduce acrobot`" in page
        and "(R + H)/(R* + H)" in page
        and "with a budget of 1,500 on seeds 100" in page
    )
    assert all((folder / f"acrobot.{ending}").is_file() for ending in ("png", "svg"))
    text = (folder / "acrobot.json").read_text()
    assert str(tmp_path) not in text  # the file is published
    facts = json.loads(text)
    assert digest_numbers(facts) == facts["bits"] and facts["machine"]["cores"]
    most = 3000 + 3 * 200  # the last iteration may be longer than the previous one
    assert all(trial["simulator_steps"] <= most for trial in facts["trials"])
    for tuned in facts["tuning"]:
        best = max(tuned["tried"], key=lambda tried: sum(tried["areas"]))
        assert best["value"] == tuned["chosen"] == facts["settings"][tuned["label"]]["update"][tuned["setting"]]
    for label, trials in facts["curves"].items():
        ended = [trial for trial in facts["trials"] if trial["label"] == label]
        assert [trial["best_return"][-1] for trial in trials] == [trial["best_return"] for trial in ended]
        assert [trial["simulator_steps"][-1] for trial in trials] == [trial["simulator_steps"] for trial in ended]
    again = json.loads(said(command, capsys))
    assert again == table and json.loads((folder / "acrobot.json").read_text())["bits"] == facts["bits"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("reproduce cartpole --workers 0", 2, "--workers is 0, but must be at least 1"),
        ("reproduce hoper", 2, "unknown figure 'hoper' (did you mean hopper?)"),
        ("reproduce real-ink", 2, "--crohme is required by 'aggrevated reproduce real-ink'"),
        ("reproduce table", 2, "unknown figure 'table' (did you mean table1?)"),
    ],
)
def test_reproduce_refuses_impossible_arguments_in_one_sentence(
    arguments: str,
    code: int,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    exit_code, sentence = failure(arguments.split(), capsys)
    assert exit_code == code and words in sentence and "Traceback" not in sentence
    assert list(tmp_path.iterdir()) == []
