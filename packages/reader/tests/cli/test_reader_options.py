"""Every option of the reader's commands and task with invalid values: one sentence, no traceback."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from aggrevated.core.registry import list_builtin_tasks
from aggrevated.tasks import find_task
from aggrevated_reader import pages_report
from aggrevated_reader.web import server
from helpers.algebra_runs import create_trained_run
from helpers.command_options import (
    Option,
    exit_done,
    find_wrong_outcomes,
    iter_command_options,
    iter_commands,
    iter_setting_options,
    leave_out_work,
    list_help_options,
)

COMMANDS = {"parse": ("parse", "PAGE", "--policy", "RUN"), "draw": ("draw",)}
FRAMES = [(np.zeros(3, int), [1], 2, "shift")]  # frames of a parse of the page


@cache
def list_options() -> list[Option]:
    """Return the options of all commands, and those of the task reader that no library task has."""
    seen: set[tuple[type, str]] = set()
    list(iter_setting_options(map(find_task, list_builtin_tasks()), seen))
    commands = [
        Option(COMMANDS[name], option, kind, positional)
        for name, command in iter_commands("aggrevated_reader")
        for option, kind, positional in iter_command_options(command)
    ]
    return [*commands, *iter_setting_options([find_task("reader")], seen)]


OPTION_FLAGS = {option.name for option in list_options()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders by name; one is a finished run of a parser."""
    return {"RUN": str(create_trained_run(tmp_path_factory.mktemp("runs")))}


@pytest.fixture
def without_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a loop, a folder, a file and a picture; slow work is replaced."""
    leave_out_work(tmp_path, monkeypatch)
    monkeypatch.setattr(server, "serve", exit_done)
    monkeypatch.setattr(pages_report, "list_frames", lambda policy, parser: FRAMES)


@pytest.mark.usefixtures("without_work")
@pytest.mark.parametrize("option", list_options(), ids=str)
def test_reader_option_refuses_impossible_values_without_traceback(
    option: Option, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = find_wrong_outcomes(option, folders, capsys)
    assert not wrong, "\n".join([f"{option}:", *wrong])


@pytest.mark.parametrize("name", COMMANDS)
def test_reader_command_help_lists_only_options_that_are_tried_here(
    name: str, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    listed = list_help_options(COMMANDS[name], folders, OPTION_FLAGS, capsys)
    assert listed and listed <= OPTION_FLAGS, listed - OPTION_FLAGS
