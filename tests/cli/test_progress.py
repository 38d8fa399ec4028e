"""Progress: a bar in terminals, lines elsewhere."""

import sys

import pytest

from aggrevated.cli.console import NOTEBOOK_VARIABLES, Progress


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in (*NOTEBOOK_VARIABLES, "CI", "DATABRICKS_RUNTIME_VERSION"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("terminal")
def test_progress_shows_a_bar_in_a_terminal() -> None:
    assert Progress("title", 10).bar is not None


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("name", "value"), [*((name, "1") for name in NOTEBOOK_VARIABLES), ("CI", "true"), ("TERM", "dumb"), ("TERM", "")]
)
def test_progress_prints_lines_in_notebooks_ci_and_dumb_terminals(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    with Progress("title", 100) as progress:
        for done in range(1, 101):
            progress.report(done, "text")
    errors = capsys.readouterr().err
    assert errors.count("\n") == 10 and "\x1b" not in errors and errors.endswith("title: 100/100, text\n")


def test_progress_without_total_prints_lines_at_doubling_counts(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("title", None) as progress:
        for done in range(1, 5001):
            progress.report(done, "text")
    assert capsys.readouterr().err.splitlines() == [f"title: {done}, text" for done in (1000, 2000, 4000)]


@pytest.mark.usefixtures("terminal")
def test_progress_bar_leaves_standard_output_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("title", None) as progress:
        print("result")
        progress.report(1, "text")
    assert capsys.readouterr().out == "result\n"
