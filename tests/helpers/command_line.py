"""Commands as a user gives them, and what they answer."""

import pytest

from aggrevated.cli import main


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints on standard output."""
    capsys.readouterr()
    main(arguments)
    return capsys.readouterr().out


def failure(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """(exit code, what was said on standard error) of a command that must fail."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    captured = capsys.readouterr()
    return caught.value.code, captured.err + captured.out
