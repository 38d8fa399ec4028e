"""Runner of commands in a temporary folder."""

from pathlib import Path

import pytest

from aggrevated.cli import main


class CommandRunner:
    """Run commands of the command line in a folder of one test."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)
        self.capsys = capsys

    def stdout(self, *arguments: object) -> str:
        """Run a command that must succeed, and return its standard output."""
        self.capsys.readouterr()
        main([str(argument) for argument in arguments])
        return self.capsys.readouterr().out

    def error(self, code: int, *arguments: object) -> str:
        """Run a command that must fail with this exit code, and return its sentence on standard error."""
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        captured = self.capsys.readouterr()
        assert caught.value.code == code, captured.err
        assert captured.out == "" and "Traceback" not in captured.err
        assert captured.err.startswith("aggrevated: ") and captured.err.count("\n") == 1
        return captured.err
