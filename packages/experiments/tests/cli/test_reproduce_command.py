"""The command reproduce on the tables of parsers, as users call it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aggrevated.cli import run_jobs
from aggrevated.tasks import FigureRow, Preset, algebra
from aggrevated.training.run_folder import Run
from aggrevated.updates import TO_THE_END
from aggrevated_experiments.parsing import table1
from helpers.command_runner import CommandRunner
from helpers.handwriting import crohme_like
from helpers.small_runs import fit_run


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandRunner:
    """Commands in an empty folder."""
    return CommandRunner(tmp_path, capsys, monkeypatch)


def test_reproduce_real_ink_requires_a_crohme_folder(command: CommandRunner) -> None:
    for figure in (["real-ink"], ["table1", "--crohme", "ink"], ["cartpole", "--crohme", "ink"]):
        sentence = command.error(2, "reproduce", *figure)
        assert "--crohme is required by 'aggrevated reproduce real-ink'" in sentence
    assert "absent needs the folders train/ and dev/" in command.error(2, "reproduce", "real-ink", "--crohme", "absent")


@pytest.fixture
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of two rows, runs of two iterations, one after the other in this process."""
    common = {
        "generated_pages": 20,
        "validate_every": 1,
        "checkpoint_every": 2,
        "anneal_iterations": TO_THE_END,
        "dropout": 0.3,
    }
    tuned = (
        Preset(common | {"iterations": 2, "trajectories": 2, "hidden": (8,)}),
        Preset({"start_steps": 2, "demonstrations": 3}, start="supervised"),
        Preset({"start": "supervised", "update": "regular", "entropy": 0.4}, method="aggrevated"),
        Preset({"update": "regular"}, method="sl"),
        Preset({"update": "regular"}, method="dagger"),
    )
    tiny = replace(algebra.TASK, presets=tuned)
    rows = (
        FigureRow("aggrevated", "regular", "lstm", settings={"iterations": 2}, paper_value=0.924),
        FigureRow("sl", "regular", "contextual"),
        FigureRow("dagger", "regular", "lstm", start="supervised"),
    )
    monkeypatch.setattr(algebra, "TASK", tiny)
    monkeypatch.setattr(table1, "TASK", tiny)
    monkeypatch.setattr(table1, "TABLE1", rows)
    monkeypatch.setattr(table1, "CURVES", rows[:1])
    monkeypatch.setattr(table1, "TUNING", ((rows[0], ({}, {"learning_rate": 0.3})),))
    monkeypatch.setattr(table1, "REAL_INK", rows[::2])
    monkeypatch.setattr(table1, "FIGURES", tuple(replace(figure, task=tiny, trials=2) for figure in table1.FIGURES))
    monkeypatch.setattr(run_jobs, "run_all", lambda runs, engine, log: [fit_run(run) for run in runs])


@pytest.mark.usefixtures("small_tables")
def test_reproduce_table1_and_parsing_curves_write_their_reports(command: CommandRunner, tmp_path: Path) -> None:
    table = json.loads(command.stdout("reproduce", "table1", "--json"))
    folder = tmp_path / "runs" / "reproduce-table1"
    assert [row["label"] for row in table] == [
        "AggreVaTeD, regular, lstm",
        "SL, regular, contextual, from scratch",
        "DAgger, regular, lstm",
        "always the next head",
        "random transitions",
    ]
    first, *_, chance = table
    assert (first["trials"], first["paper"], first["iterations"], chance["paper"]) == (2, 0.924, 2, 0.15)
    results = [
        json.loads((folder / f"aggrevated-regular-lstm/trial-0{trial}/result.json").read_text()) for trial in (0, 1)
    ]
    scores = [result["uas_micro"] for result in results]
    assert first["uas_micro"] == pytest.approx(sum(scores) / 2) and first["pages"] == 3 + 2 * 2
    assert min(scores) <= first["uas_micro_low"] <= first["uas_micro"] <= first["uas_micro_high"] <= max(scores)
    assert table[3]["uas_micro"] == pytest.approx(sum(result["uas_next_head"] for result in results) / 2)
    trials = [Run.open(folder / f"aggrevated-regular-lstm/trial-0{trial}").config for trial in (0, 1)]
    assert [(one.settings["seed"], one.settings["data_seed"]) for one in trials] == [(0, 0), (1, 1)]

    page = (folder / "table1.md").read_text()
    assert "are not public: its numbers are of other pages than ours, and the two columns are not comparable" in page
    assert f"| AggreVaTeD, regular, lstm | **{first['uas_micro']:.3f}** |" in page and "| 0.924 |" in page
    assert "`aggrevated reproduce table1`" in page
    assert (folder / "table1.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / "table1.svg").read_bytes()
    facts = json.loads((folder / "table1.json").read_text())
    assert facts["table"] == table and facts["seeds"] == [0, 1] and len(facts["trials"]) == 6
    assert facts["settings"]["DAgger, regular, lstm"]["policy"]["name"] == "lstm"
    (compared,) = facts["comparisons"]  # the other row has another policy and another start
    rival = [one["uas_micro"] for one in facts["trials"] if one["label"] == "DAgger, regular, lstm"]
    assert compared["each"] == pytest.approx([a - b for a, b in zip(scores, rival, strict=True)])
    assert (compared["label"], compared["against"]) == ("AggreVaTeD, regular, lstm", "DAgger, regular, lstm")
    assert compared["above"] == sum(one > 0 for one in compared["each"]) and "Of 1 comparisons" in page
    assert [len(one["test_uas"]) for one in facts["curves"]] == [2, 2, 2]
    (tuned,) = facts["tuning"]
    assert tuned["label"] == first["label"] and tuned["seeds"] == [100, 101]
    assert [one["settings"].get("learning_rate") for one in tuned["tried"]] == [None, 0.3]
    runs = [Run.open(folder / f"tuning/aggrevated-regular-lstm-1/trial-{seed}") for seed in (100, 101)]
    assert [(one.config.settings["seed"], one.config.settings["data_seed"]) for one in runs] == [(100, 100), (101, 101)]
    run_results = [json.loads((run.folder / "result.json").read_text()) for run in runs]
    assert (
        tuned["tried"][1]["validation_uas"] == [one["best_return"] for one in run_results]
        and run_results[0]["iterations"] == 1
    )
    means = [sum(one["validation_uas"]) for one in tuned["tried"]]
    chosen = tuned["tried"][means.index(max(means))]["settings"]
    assert tuned["chosen"] == chosen and "under `tuning`" in page
    assert chosen.items() <= trials[0].settings.items()  # the trials use the chosen settings
    assert str(tmp_path) not in (folder / "table1.json").read_text()  # the file is published

    ended = {path: path.stat().st_mtime_ns for path in folder.glob("*/*/result.json")}
    curves = json.loads(command.stdout("reproduce", "parsing-curves", "--json", "--report", "report"))
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/*/result.json")} == ended  # no run is repeated
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["reproduce-table1"]
    assert [curve["label"] for curve in curves] == ["AggreVaTeD, regular, lstm"]
    metrics = [Run.open(folder / f"aggrevated-regular-lstm/trial-0{trial}").metrics() for trial in (0, 1)]
    assert curves[0]["pages"] == [5, 7]  # three in the start, two in each iteration
    assert curves[0]["test_uas"] == [[line.more["test_uas"] for line in trial] for trial in metrics]
    assert curves[0]["validation_uas"] == [[line.current_return for line in trial] for trial in metrics]
    for ending in ("json", "png", "svg"):
        assert (tmp_path / f"report/parsing-curves.{ending}").is_file()
    assert "AggreVaTeD" in command.stdout("reproduce", "table1")  # as text


@pytest.mark.usefixtures("small_tables")
def test_reproduce_real_ink_writes_its_report(command: CommandRunner, tmp_path: Path) -> None:
    crohme_like(tmp_path / "crohme")
    table = json.loads(
        command.stdout("reproduce", "real-ink", "--crohme", "crohme", "--trials", "2", "--json", "--out", "out")
    )
    real = "AggreVaTeD, regular, lstm, real ink"
    dagger = "DAgger, regular, lstm, real ink"
    never = "AggreVaTeD, regular, lstm"
    assert [row["label"] for row in table[:3]] == [real, dagger, never]
    text = (tmp_path / "out/real-ink.json").read_text()
    page = (tmp_path / "out/real-ink.md").read_text()
    assert str(tmp_path) not in text and "no part of this repository" in page
    facts = json.loads(text)
    assert facts["settings"][real]["problem"]["crohme"] == "crohme"
    assert [(one["label"], one["against"]) for one in facts["comparisons"]] == [(real, dagger)]  # on the same ink only
    assert f"| {real} | {dagger} |" in page
    runs = [f"out/aggrevated-regular-lstm-iterations/trial-0{trial}" for trial in (0, 1)]
    scores = [json.loads(command.stdout("evaluate", run, "--crohme", "crohme", "--json")) for run in runs]
    assert table[2]["uas_micro"] == pytest.approx(np.mean([score["uas_micro"] for score in scores]))  # on real pages
    assert scores[0]["pages"] == 3
