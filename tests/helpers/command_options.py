"""Options of commands, and values for which no option may cause a traceback.

A command goes as far as the work itself, which the tests leave out: folders and files are really read and written. With
AGGREVATED_FAULTS=all, the settings of every task and component are tried, not only those of one owner of each.
"""

import inspect
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from PIL import Image

from aggrevated.cli import discover_commands, main
from aggrevated.config.builder import build_policy
from aggrevated.config.resolver import OPTION_NAMES, iter_components, list_component_types, resolve_config
from aggrevated.core.errors import UsageError
from aggrevated.core.settings import get_declared_settings, to_flag
from aggrevated.policies import Policy
from aggrevated.tasks import Task
from aggrevated.training.run_folder import Run

# all are created before a command runs
LOOP = "loop"
FOLDER = "folder"
BELOW_A_FILE = "file/below"
VALUES = (  # for every option
    *("", " ", "x", "None", "True", "[]", "--", "🦆", "\udcff", "y" * 5000, LOOP, "/dev/full/x"),
    *("-1", "0", "1.5", "nan", "inf", "1e400", "99999999999999999999999", "-99999999999999999999999"),
)
NUMBERS = ("1000000000000", "1e308", "1e-320")
TEXTS = (FOLDER, BELOW_A_FILE, ".", "/", "a,b", "a=b")
VALUES_BY_TYPE = {int: NUMBERS, float: NUMBERS, tuple: (*NUMBERS, *TEXTS), str: TEXTS, Path: TEXTS, bool: ()}
NOT_SET = {"None"}  # values for an option that is None by default
INVALID_VALUES = {  # values that are invalid for every option of that type
    int: {*VALUES, *NUMBERS} - {"0", "1000000000000"} - NOT_SET,  # the second is a seed
    float: {*VALUES} - {"0", "-1", "1.5", "99999999999999999999999", "-99999999999999999999999"} - NOT_SET,
    bool: {*VALUES} - {"True", "--"},
    tuple: {*VALUES, *NUMBERS, *TEXTS} - NOT_SET,
    str: {"\udcff"},
    Path: {"", "\udcff"},
}
VALID_VALUES = {"--anneal-iterations": {"-1"}, "--files": {"."}}  # over all iterations; a folder that has a page
SLOW_VALUES = {"--generated-pages": {"None"}, "--files": {"/"}}  # twenty thousand pages are drawn; all disks are read
EXIT_CODES = (0, 2, 65, 74)
ALL = os.environ.get("AGGREVATED_FAULTS") == "all"
TRAIN_OPTIONS = ("--iterations", "1", "--trajectories", "2", "--out", "OUT")
TRAIN_COMMAND = ("train", "cartpole", *TRAIN_OPTIONS)
POSITIONAL = {"RUN", "PAGE", "cartpole", "tree", "lower-bound"}


@dataclass(frozen=True)
class Option:
    """One option or positional argument of a command that is complete without it."""

    words: tuple[str, ...]  # RUN stands for the folder of a finished run, PAGE for a picture
    name: str
    kind: type
    positional: bool = False

    def __str__(self) -> str:
        words = [word for word in self.words if not word.startswith("--") or self.name not in TRAIN_OPTIONS]
        return f"{' '.join(words[:4])} {self.name}"

    def with_value(self, value: str) -> list[str]:
        """Return the command with that value, after an equals sign since the value may look like an option."""
        if self.positional:
            place = next(i for i, word in enumerate(self.words) if i and word in POSITIONAL)
            return [*self.words[:place], value, *self.words[place + 1 :]]
        if value == "--" or self.kind is bool:
            return [*self.words, f"{self.name}={value}"]
        return [*self.words, self.name, value]


def iter_commands(package: str) -> Iterator[tuple[str, type]]:
    """Yield the words and the type of every command and subcommand of a package."""
    for name, command in discover_commands(None).items():
        if not command.__module__.startswith(f"{package}."):
            continue
        kinds = get_type_hints(command, include_extras=True)
        below = [part for one in fields(command) for part in list_subcommands(kinds[one.name])]
        for part in below:
            yield f"{name} {part.__name__.lower().removesuffix('expert')}", part
        if not below:
            yield name, command


def iter_command_options(command: type) -> Iterator[tuple[str, type, bool]]:
    """Yield (name, type, whether it is positional) of every argument of a command, including option groups."""
    kinds = get_type_hints(command, include_extras=True)
    for one in fields(command):
        kind, marks = strip_annotations(kinds[one.name])
        if is_dataclass(kind):
            yield from iter_command_options(kind)
        elif not list_subcommands(kind):
            yield to_flag(one.name), get_origin(kind) or kind, "Positional" in marks


def strip_annotations(kind: Any) -> tuple[Any, str]:
    """Return (the type without annotations and without None, the annotations as text)."""
    annotations = ""
    while get_origin(kind) is Annotated or type(None) in get_args(kind):
        annotations += str(get_args(kind)[1:])
        kind = next(part for part in get_args(kind) if part is not type(None))
    return kind, annotations


def list_subcommands(kind: Any) -> list[type]:
    """Return the subcommands among which a type chooses, if any."""
    parts = [strip_annotations(part)[0] for part in get_args(strip_annotations(kind)[0])]
    return [part for part in parts if isinstance(part, type) and is_dataclass(part)]


def iter_setting_options(tasks: Iterable[Task], seen: set[tuple[type, str]]) -> Iterator[Option]:
    """Yield the settings of every component of the tasks; in short once for each class that declares it.

    Args:
        tasks: the tasks whose components are tried.
        seen: (owner, name) of settings that are tried elsewhere; it is extended.
    """
    for task in tasks:
        for component, command in iter_component_commands(task):
            for name in get_declared_settings(component):
                owner = next(one for one in component.__mro__ if name in vars(one).get("__annotations__", {}))
                if ALL or (owner, name) not in seen:
                    seen.add((owner, name))
                    yield Option(command, to_flag(name), setting_type(component, name))
                if ALL:
                    yield Option(sweep_command(command, name), to_flag(name), setting_type(component, name))


def iter_component_commands(task: Task) -> Iterator[tuple[type, tuple[str, ...]]]:
    """Yield (component, command that selects it) for every component of a task that can be selected alone."""
    small = {
        "algebra": ("--generated-pages", "10", "--augmented-copies", "0"),
        "reader": ("--generated-pages", "20"),
    }.get(task.name, ())
    for component in list_component_types(task):
        slot = next((slot for slot in OPTION_NAMES if component in iter_components(task, slot)), None)
        chosen = (f"--{OPTION_NAMES[slot]}", component.name) if slot else ()
        for method in ("aggrevated", "dagger", "reinforce", "loki", "searn", "smile", "thor"):
            try:
                chosen_slot = {OPTION_NAMES[slot]: component.name} if slot else {}
                config = resolve_config(task, method, **chosen_slot)
            except UsageError:
                continue
            if any(type(one) is component for one in config.components.values()):
                yield component, ("train", task.name, "--method", method, *chosen, *small, *TRAIN_OPTIONS)
                break


def sweep_command(words: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return the command of a sweep that fixes these settings and varies another."""
    other = "checkpoint-every" if name != "checkpoint_every" else "validate-every"
    return "sweep", *words[1 : -len(TRAIN_OPTIONS)], "--vary", f"{other}=10,20", "--out", "OUT"


def setting_type(component: type, name: str) -> type:
    """Return the type of a component's setting."""
    kind = get_type_hints(component)[name]
    return get_origin(kind) or kind


def create_awkward_folder(folder: Path) -> None:
    """Create a link to itself, a folder, an empty file and a picture in a folder."""
    (folder / LOOP).symlink_to(LOOP)
    (folder / FOLDER).mkdir()
    (folder / "file").write_text("")
    strokes = np.full((60, 200), 255, np.uint8)
    strokes[20:40, 30:34] = strokes[28:32, 80:110] = strokes[20:40, 150:154] = 0
    Image.fromarray(strokes).save(folder / "page.png")


def leave_out_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to the folder, and leave out training, searching and drawing in all commands."""
    from aggrevated.cli.commands import sweep
    from aggrevated.cli.options import EngineOptions
    from aggrevated.problems import expert_training

    monkeypatch.chdir(folder)
    create_awkward_folder(folder)

    monkeypatch.setattr("tyro._docstrings.get_field_docstring", lambda *_: None, raising=False)  # for --help, and slow

    def check_and_exit(options: EngineOptions, runs: int = 1) -> None:
        options.check(runs)
        exit_done()

    monkeypatch.setattr(EngineOptions, "build", check_and_exit)
    monkeypatch.setattr(sweep, "run_sweep_to_end", exit_done)
    monkeypatch.setattr(expert_training, "train_expert", exit_done)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)
    monkeypatch.setattr(Run, "policy", property(untrained_policy))


def exit_done(*_: object, **__: object) -> None:
    """End a command where its work would begin."""
    raise SystemExit(0)


def untrained_policy(run: Run) -> Policy:
    """Return an untrained policy for a run."""
    policy = build_policy(run.config)
    run.config.built_problem.prepare(policy)
    return policy


def run_command(arguments: list[str]) -> int | str:
    """Return the exit code, or the error that ended the command."""
    try:
        main(arguments)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else 0
    except BaseException as error:
        last = inspect.getinnerframes(error.__traceback__)[-1] if error.__traceback__ else None
        where = f" in {last.filename}:{last.lineno}" if last else ""
        return f"{type(error).__name__}: {str(error)[:200]}{where}"
    return 0


def find_wrong_outcomes(option: Option, folders: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the failures for each value: tracebacks, other exit codes, and accepted invalid values."""
    failures = []
    slow = SLOW_VALUES.get(option.name, ())
    values = [value for value in (*VALUES, *VALUES_BY_TYPE[option.kind]) if value not in slow]
    invalid = INVALID_VALUES[option.kind] - VALID_VALUES.get(option.name, set())
    for number, value in enumerate(values):
        words = {**folders, "PAGE": "page.png", "OUT": f"out-{number}"}
        code = run_command([words.get(word, word) for word in option.with_value(value)])
        output = "".join(capsys.readouterr())
        if code not in EXIT_CODES or "Traceback" in output or (code == 0 and value in invalid):
            failures.append(f"{option.name} {value[:40]!r}: {code} {output[-300:]}")
    return failures


def list_help_options(
    words: tuple[str, ...], folders: Mapping[str, str], names: set[str], capsys: pytest.CaptureFixture[str]
) -> set[str]:
    """Return the options that a command's help lists, switches by their names in `names` instead of `--no-` forms."""
    parts = words[: 3 if words[0] == "expert" else 2]
    assert run_command([*(folders.get(word, word) for word in parts if not word.startswith("--")), "--help"]) == 0
    listed = set(re.findall(r"^\W*(--[a-z][a-z0-9-]*)", capsys.readouterr().out, re.MULTILINE)) - {"--help"}
    return {option if option in names else option.replace("--no-", "--", 1) for option in listed}
