"""The command `aggrevated doctor`."""

import json
from pathlib import Path

import pytest

from aggrevated.storage import read_json
from helpers.command_line import failure, said

QUICK = ["--seconds", "1.5", "--episodes", "16"]


def test_doctor_command_writes_report_with_figure_and_training_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    output = said(["doctor", "acrobot", "--seed", "3", *QUICK], capsys)
    assert "No fault was found." in output and "\naggrevated train acrobot\n" in output
    folder = tmp_path / "doctor-acrobot"
    page = (folder / "report.html").read_text()
    assert "<script" not in page and "data:image/png;base64," in page and "aggrevated train acrobot" in page
    assert (folder / "doctor.png").read_bytes().startswith(b"\x89PNG")
    assert read_json(folder / "report.json")["verdict"] in ("fine", "unknown")


def test_doctor_command_fails_on_a_fault_only_with_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["doctor", "acrobot", "--horizon", "90", "--out", str(tmp_path / "out"), *QUICK]
    found = json.loads(said([*command, "--json"], capsys))
    assert found["verdict"] == "fault"
    assert found["recommendation"]["command"].startswith("aggrevated train acrobot")
    code, message = failure([*command, "--strict"], capsys)
    assert code == 65 and "use --horizon 200" in message


def test_doctor_command_requires_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    code, message = failure(["doctor"], capsys)
    assert code == 2 and "TASK" in message
