"""Run commands as a user does, and return what they print."""

import pytest

from aggrevated.cli import main


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints on standard output."""
    capsys.readouterr()
    main(arguments)
    return capsys.readouterr().out


def failure(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return (exit code, printed text) of a command that must fail."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    captured = capsys.readouterr()
    return caught.value.code, captured.err + captured.out
