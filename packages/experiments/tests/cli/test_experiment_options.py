"""Every option of the experiments' commands and tasks with invalid values: one sentence, no traceback."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from aggrevated.core.registry import list_builtin_tasks
from aggrevated.tasks import find_task
from aggrevated_experiments.theory.experiments import EXPERIMENTS
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

TASKS = ("cliff", "keys", "lock", "packing")
COMMANDS = {  # each works, so only the option can be wrong
    "reproduce": ("reproduce", "cartpole", "--quick", "--trials", "1", "--out", "OUT"),
    "theory": ("theory", "tree"),
}


@cache
def list_options() -> list[Option]:
    """Return the options of all commands, and those of the tasks that no library task has."""
    seen: set[tuple[type, str]] = set()
    list(iter_setting_options(map(find_task, list_builtin_tasks()), seen))
    commands = [
        Option(command_with_option(name, option), option, kind, positional)
        for name, command in iter_commands("aggrevated_experiments")
        for option, kind, positional in iter_command_options(command)
    ]
    return [*commands, *iter_setting_options(map(find_task, TASKS), seen)]


def command_with_option(name: str, option: str) -> tuple[str, ...]:
    """Return the command in which the option has an effect."""
    if (name, option) == ("reproduce", "--crohme"):
        return "reproduce", "real-ink", "--trials", "1", "--out", "OUT"
    if name == "theory":
        setting = option.removeprefix("--")
        return "theory", next((one for one, what in EXPERIMENTS.items() if setting in what.defaults), "tree")
    return COMMANDS[name]


OPTION_FLAGS = {option.name for option in list_options()}


@pytest.fixture
def without_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a loop, a folder and a file; slow work is replaced."""
    leave_out_work(tmp_path, monkeypatch)
    for name, experiment in EXPERIMENTS.items():
        monkeypatch.setitem(EXPERIMENTS, name, replace(experiment, run=exit_done))


@pytest.mark.usefixtures("without_work")
@pytest.mark.parametrize("option", list_options(), ids=str)
def test_experiment_option_refuses_impossible_values_without_traceback(
    option: Option, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = find_wrong_outcomes(option, {}, capsys)
    assert not wrong, "\n".join([f"{option}:", *wrong])


@pytest.mark.parametrize("name", COMMANDS)
def test_experiment_command_help_lists_only_options_that_are_tried_here(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = list_help_options(COMMANDS[name], {}, OPTION_FLAGS, capsys)
    assert listed and listed <= OPTION_FLAGS, listed - OPTION_FLAGS
