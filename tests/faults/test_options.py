"""Impossible values for every option of every command: one sentence and no traceback."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from aggrevated.config.resolver import OPTION_NAMES, resolve_config
from aggrevated.core.registry import list_builtin_tasks
from aggrevated.core.settings import get_declared_settings, to_flag
from aggrevated.reports import replay
from aggrevated.storage import write_atomically
from aggrevated.tasks import find_task
from aggrevated.training.run_folder import Run
from helpers.command_options import (
    TRAIN_COMMAND,
    Option,
    find_wrong_outcomes,
    iter_command_options,
    iter_commands,
    iter_setting_options,
    leave_out_work,
    list_help_options,
    setting_type,
)
from helpers.small_runs import fit_run

COMMANDS = {  # each command works, so that only the option can be wrong
    "train": TRAIN_COMMAND,
    "sweep": ("sweep", "cartpole", "--vary", "iterations=1,2", "--out", "OUT"),
    "resume": ("resume", "RUN"),
    "evaluate": ("evaluate", "RUN", "--episodes", "2"),
    "compare": ("compare", "RUN"),
    "oracle-check": ("oracle-check", "--trees", "1", "--symbols", "2"),
    "watch": ("watch", "RUN"),
    "doctor": ("doctor", "cartpole", "--seconds", "0.1", "--episodes", "2", "--out", "OUT"),
    "export": ("export", "RUN", "--out", "p.safetensors"),
    "expert list": ("expert", "list"),
    "expert train": ("expert", "train", "cartpole"),
    "expert evaluate": ("expert", "evaluate", "cartpole", "--episodes", "2", "--horizon", "5"),
}
COMMANDS_BY_OPTION = {  # for options without effect in the command above
    ("train", "--ray-address"): (*COMMANDS["train"], "--engine", "ray"),
}


@cache
def list_options() -> list[Option]:
    """Return the options of all commands, of all evaluations, and of all components of the builtin tasks."""
    found = [
        Option(COMMANDS_BY_OPTION.get((name, option), COMMANDS[name]), option, kind, positional)
        for name, command in iter_commands("aggrevated")
        for option, kind, positional in iter_command_options(command)
    ]
    found += iter_evaluation_options()
    found += iter_setting_options(map(find_task, list_builtin_tasks()), seen=set())
    return found + [Option(COMMANDS["train"], to_flag(name), str) for name in OPTION_NAMES.values()]


def iter_evaluation_options() -> Iterator[Option]:
    """Yield how runs can be evaluated, for each kind of evaluation data."""
    for words, task in ((COMMANDS["evaluate"], "cartpole"), (("evaluate", "ALGEBRA"), "algebra")):
        settings = find_task(task).problem.evaluation
        for name in get_declared_settings(settings):
            yield Option(words, to_flag(name), setting_type(settings, name))


OPTION_FLAGS = {option.name for option in list_options()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the folders of a finished run and of an unfinished run of algebra, by placeholder."""
    folder = tmp_path_factory.mktemp("runs")
    given = {"iterations": 1, "trajectories": 2, "horizon": 5, "validation_episodes": 2, "test_episodes": 2}
    ended = Run.create(folder / "run", resolve_config("cartpole", **given))
    fit_run(ended)
    begun = Run.create(
        folder / "algebra", resolve_config("algebra", generated_pages=10, augmented_copies=0, hidden=(8,))
    )
    return {"RUN": str(ended.folder), "ALGEBRA": str(begun.folder)}


@pytest.fixture
def without_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a folder with a loop, a folder and a file, and leave out all slow work."""
    leave_out_work(tmp_path, monkeypatch)
    monkeypatch.setattr(replay, "write_comparison_gif", lambda name, panels, path: write_atomically(path, b"GIF89a"))


@pytest.mark.usefixtures("without_work")
@pytest.mark.parametrize("option", list_options(), ids=str)
def test_command_option_refuses_impossible_values_without_traceback(
    option: Option, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = find_wrong_outcomes(option, folders, capsys)
    assert not wrong, "\n".join([f"{option}:", *wrong])


@pytest.mark.parametrize("name", COMMANDS)
def test_command_help_lists_only_options_that_are_tried_here(
    name: str, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    listed = list_help_options(COMMANDS[name], folders, OPTION_FLAGS, capsys)
    assert listed and listed <= OPTION_FLAGS, listed - OPTION_FLAGS
