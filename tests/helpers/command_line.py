"""Run commands as a user does, and return what they print."""

import pytest

from aggrevated.cli import main


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command and return its standard output."""
    capsys.readouterr()
    main(arguments)
    return capsys.readouterr().out


def failure(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command that must fail, and return (exit code, printed text)."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    captured = capsys.readouterr()
    return caught.value.code, captured.err + captured.out
