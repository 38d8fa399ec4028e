"""Errors of the command parse."""

from pathlib import Path

import pytest

from helpers.command_line import failure


def test_parse_names_the_file_that_is_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, sentence = failure(["parse", "absent.png", "--policy", "nowhere"], capsys)
    assert code == 74 and "absent.png" in sentence and "Traceback" not in sentence
    assert list(tmp_path.iterdir()) == []
