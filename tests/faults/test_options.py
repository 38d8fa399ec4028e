"""Every option of every command, as the program knows them, with values that cannot be: a sentence, no traceback.

What is accepted goes as far as the work itself, which is left out: folders and files are really read and written. With
AGGREVATED_FAULTS=all the settings of every task and piece are tried, not only those of one owner of each.
"""

import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from PIL import Image

from aggrevated.cli import discover_commands, main, run_jobs, run_sweep
from aggrevated.cli.options import EngineOptions
from aggrevated.cli.run_jobs import DEFAULT_ENGINE_OPTIONS
from aggrevated.config.builder import build_policy
from aggrevated.config.resolver import OPTION_NAMES, iter_components, list_component_types, resolve_config
from aggrevated.core.errors import UsageError
from aggrevated.core.settings import declared_settings, to_flag
from aggrevated.policies import Policy
from aggrevated.problems import expert_training
from aggrevated.reports import replay
from aggrevated.storage import write_atomically
from aggrevated.tasks import all_tasks, find_task
from aggrevated.training.run_folder import Run
from aggrevated.training.trainer import run_to_end
from aggrevated_experiments.theory.experiments import EXPERIMENTS
from aggrevated_reader import pages_report
from aggrevated_reader.web import server

# each is there when a command runs
LOOP = "loop"
FOLDER = "folder"
BELOW_A_FILE = "file/below"
VALUES = (  # for all
    *("", " ", "x", "None", "True", "[]", "--", "🦆", "\udcff", "y" * 5000, LOOP, "/dev/full/x"),
    *("-1", "0", "1.5", "nan", "inf", "1e400", "99999999999999999999999", "-99999999999999999999999"),
)
NUMBERS = ("1000000000000", "1e308", "1e-320")
TEXTS = (FOLDER, BELOW_A_FILE, ".", "/", "a,b", "a=b")
MORE = {int: NUMBERS, float: NUMBERS, tuple: (*NUMBERS, *TEXTS), str: TEXTS, Path: TEXTS, bool: ()}
NOT_SET = {"None"}  # is what an option that is None by default can be set to
NEVER = {  # what is refused whatever an option of that type means
    int: {*VALUES, *NUMBERS} - {"0", "1000000000000"} - NOT_SET,  # the second is a seed
    float: {*VALUES} - {"0", "-1", "1.5", "99999999999999999999999", "-99999999999999999999999"} - NOT_SET,
    bool: {*VALUES} - {"True", "--"},
    tuple: {*VALUES, *NUMBERS, *TEXTS} - NOT_SET,
    str: {"\udcff"},
    Path: {"", "\udcff"},
}
GOOD = {"--anneal-iterations": {"-1"}}  # over all iterations
SLOW = {"--generated-pages": {"None"}}  # the default: twenty thousand pages are drawn
EXITS = (0, 2, 65, 74)
ALL = os.environ.get("AGGREVATED_FAULTS") == "all"
FRAMES = [(np.zeros(3, int), [1], 2, "shift")]  # of a parse of the page
TRAINED = ("--iterations", "1", "--trajectories", "2", "--out", "OUT")


@dataclass(frozen=True)
class Option:
    """One option, or a positional argument, of a command that is complete without it."""

    words: tuple[str, ...]  # RUN is the folder of a run that has ended, PAGE a picture
    name: str
    kind: type
    positional: bool = False

    def __str__(self) -> str:
        shown = [word for word in self.words if not word.startswith("--") or self.name not in TRAINED]
        return f"{' '.join(shown[:4])} {self.name}"

    def given(self, value: str) -> list[str]:
        """The command with that value; behind an equals sign a value may look like an option."""
        if self.positional:
            return [*self.words[: self.place], value, *self.words[self.place + 1 :]]
        if value == "--" or self.kind is bool:
            return [*self.words, f"{self.name}={value}"]
        return [*self.words, self.name, value]

    @property
    def place(self) -> int:
        """Of a positional argument: that of the word which it is."""
        return next(i for i, word in enumerate(self.words) if i and word in ("RUN", "PAGE", *POSITIONAL))


POSITIONAL = {"cartpole", "tree", "lower-bound"}
COMPLETE = {  # a command that works, so that nothing but the option is wrong with it
    "train": ("train", "cartpole", *TRAINED),
    "sweep": ("sweep", "cartpole", "--vary", "iterations=1,2", "--out", "OUT"),
    "resume": ("resume", "RUN"),
    "evaluate": ("evaluate", "RUN", "--episodes", "2"),
    "compare": ("compare", "RUN"),
    "oracle-check": ("oracle-check", "--trees", "1", "--symbols", "2"),
    "parse": ("parse", "PAGE", "--policy", "RUN"),
    "reproduce": ("reproduce", "cartpole", "--quick", "--trials", "1", "--out", "OUT"),
    "theory": ("theory", "tree"),
    "watch": ("watch", "RUN"),
    "board": ("board", "RUN", "--once"),
    "doctor": ("doctor", "cartpole", "--seconds", "0.1", "--episodes", "2", "--out", "OUT"),
    "export": ("export", "RUN", "--out", "p.safetensors"),
    "draw": ("draw",),
    "tree": ("tree",),
    "expert list": ("expert", "list"),
    "expert train": ("expert", "train", "cartpole"),
    "expert evaluate": ("expert", "evaluate", "cartpole", "--episodes", "2", "--horizon", "5"),
}
ELSEWHERE = {  # where an option has an effect that has none there
    ("train", "--ray-address"): (*COMPLETE["train"], "--engine", "ray"),
    ("reproduce", "--crohme"): ("reproduce", "real-ink", "--trials", "1", "--out", "OUT"),
}


def options_in(command: type) -> Iterator[tuple[str, type, bool]]:
    """(name, type, whether it is positional) of all that a command takes, groups of options among it."""
    kinds = get_type_hints(command, include_extras=True)
    for one in fields(command):
        kind, marks = bare(kinds[one.name])
        if is_dataclass(kind):
            yield from options_in(kind)
        elif not subcommands(kind):
            yield to_flag(one.name), get_origin(kind) or kind, "Positional" in marks


def bare(kind: Any) -> tuple[Any, str]:
    """(a type without what is said about it and without None, what is said about it)."""
    said = ""
    while get_origin(kind) is Annotated or type(None) in get_args(kind):
        said += str(get_args(kind)[1:])
        kind = next(part for part in get_args(kind) if part is not type(None))
    return kind, said


def subcommands(kind: Any) -> list[type]:
    """The commands that a type chooses from, if it does."""
    parts = [bare(part)[0] for part in get_args(bare(kind)[0])]
    return [part for part in parts if isinstance(part, type) and is_dataclass(part)]


def commands() -> Iterator[tuple[str, type]]:
    """Every command, and every command of a command, by the words for it."""
    for name, command in discover_commands().items():
        kinds = get_type_hints(command, include_extras=True)
        below = [part for one in fields(command) for part in subcommands(kinds[one.name])]
        for part in below:
            yield f"{name} {part.__name__.lower().removesuffix('expert')}", part
        if not below:
            yield name, command


def every_option() -> Iterator[Option]:
    """The options of all commands; of those that depend on a task or a run, in the next two functions."""
    for name, command in commands():
        words = COMPLETE[name]
        for option, kind, positional in options_in(command):
            own = with_experiment(words, option) if name == "theory" else words
            yield Option(ELSEWHERE.get((name, option), own), option, kind, positional)
    yield from evaluations()
    yield from settings()


def with_experiment(words: tuple[str, ...], option: str) -> tuple[str, ...]:
    """The command of a theory's experiment that has the option."""
    name = option.removeprefix("--")
    return words[0], next((one for one, what in EXPERIMENTS.items() if name in what.defaults), words[1])


def evaluations() -> Iterator[Option]:
    """How a run can be tried again, by what it is tried on."""
    for words, task in ((COMPLETE["evaluate"], "cartpole"), (("evaluate", "ALGEBRA"), "algebra")):
        how = find_task(task).problem.evaluation
        for name in declared_settings(how):
            yield Option(words, to_flag(name), kind_of(how, name))


def settings() -> Iterator[Option]:
    """Every choice and setting of every piece; in short once for each that declares it, for `train` alone."""
    seen = set()
    for task in all_tasks():
        if not task.__module__.startswith("aggrevated"):
            continue
        for piece, choice in choices(task):
            for name in declared_settings(piece):
                owner = next(one for one in piece.__mro__ if name in vars(one).get("__annotations__", {}))
                if ALL or (owner, name) not in seen:
                    seen.add((owner, name))
                    yield Option(choice, to_flag(name), kind_of(piece, name))
                if ALL:
                    yield Option(swept(choice, name), to_flag(name), kind_of(piece, name))
    for name in OPTION_NAMES.values():
        yield Option(COMPLETE["train"], to_flag(name), str)


def swept(words: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The same settings fixed for a sweep, in which another one varies."""
    other = "checkpoint-every" if name != "checkpoint_every" else "validate-every"
    return "sweep", *words[1 : -len(TRAINED)], "--vary", f"{other}=10,20", "--out", "OUT"


def choices(task: Any) -> Iterator[tuple[type, tuple[str, ...]]]:
    """(a piece, the words that choose it) for all pieces of the task; those that cannot be alone are left out."""
    small = {
        "algebra": ("--generated-pages", "10", "--augmented-copies", "0"),
        "reader": ("--generated-pages", "20"),
    }.get(task.name, ())
    for piece in list_component_types(task):
        place = next((place for place in OPTION_NAMES if piece in iter_components(task, place)), None)
        chosen = (f"--{OPTION_NAMES[place]}", piece.name) if place else ()
        for method in ("aggrevated", "dagger", "reinforce", "loki", "searn", "smile", "thor"):
            try:
                own = {OPTION_NAMES[place]: piece.name} if place else {}
                config = resolve_config(task, method, **own)
            except UsageError:
                continue
            if any(type(one) is piece for one in config.components.values()):
                yield piece, ("train", task.name, "--method", method, *chosen, *small, *TRAINED)
                break


def kind_of(piece: type, name: str) -> type:
    kind = get_type_hints(piece)[name]
    return get_origin(kind) or kind


@cache
def found() -> list[Option]:
    return list(every_option())


ALL_NAMES = {option.name for option in found()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By the words for them: a run that has ended, and one of algebra that was begun."""
    folder = tmp_path_factory.mktemp("runs")
    given = {"iterations": 1, "trajectories": 2, "horizon": 5, "validation_episodes": 2, "test_episodes": 2}
    ended = Run.create(folder / "run", resolve_config("cartpole", **given))
    run_to_end(ended)
    begun = Run.create(
        folder / "algebra", resolve_config("algebra", generated_pages=10, augmented_copies=0, hidden=(8,))
    )
    return {"RUN": str(ended.folder), "ALGEBRA": str(begun.folder)}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a loop, a folder and a file in it, where all that takes long is left out."""
    monkeypatch.chdir(tmp_path)
    make_place(tmp_path)

    def done(*_: object, **__: object) -> None:
        raise SystemExit(0)

    def checked(runs: list[Run], where: EngineOptions = DEFAULT_ENGINE_OPTIONS, *_: object) -> None:
        where.checked(len(runs))
        done()

    monkeypatch.setattr("tyro._docstrings.get_field_docstring", lambda *_: None, raising=False)  # for --help, and slow
    monkeypatch.setattr(run_jobs, "run_all", checked)
    monkeypatch.setattr(run_sweep, "conduct", done)
    monkeypatch.setattr(server, "serve", done)
    monkeypatch.setattr(expert_training, "train_expert", done)
    for name, experiment in EXPERIMENTS.items():
        monkeypatch.setitem(EXPERIMENTS, name, replace(experiment, run=done))
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: None)
    monkeypatch.setattr(replay, "side_by_side", lambda name, panels, path: write_atomically(path, b"GIF89a"))
    monkeypatch.setattr(Run, "policy", property(policy_of))
    monkeypatch.setattr(pages_report, "frames_of", lambda policy, parser: FRAMES)
    yield tmp_path


def policy_of(run: Run) -> Policy:
    """As good as any, for a run that has not learned one."""
    policy = build_policy(run.config)
    run.config.built_problem.prepare(policy)
    return policy


def make_place(folder: Path) -> None:
    (folder / LOOP).symlink_to(LOOP)
    (folder / FOLDER).mkdir()
    (folder / "file").write_text("")
    strokes = np.full((60, 200), 255, np.uint8)
    strokes[20:40, 30:34] = strokes[28:32, 80:110] = strokes[20:40, 150:154] = 0
    Image.fromarray(strokes).save(folder / "page.png")


def outcome(arguments: list[str]) -> int | str:
    """The exit code; of what no program should end with, what it was."""
    try:
        main(arguments)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else 0
    except BaseException as error:
        last = inspect.getinnerframes(error.__traceback__)[-1] if error.__traceback__ else None
        where = f" in {last.filename}:{last.lineno}" if last else ""
        return f"{type(error).__name__}: {str(error)[:200]}{where}"
    return 0


@pytest.mark.parametrize("option", found(), ids=str)
def test_an_option_with_values_that_cannot_be(
    option: Option, runs: dict[str, str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = []
    values = [value for value in (*VALUES, *MORE[option.kind]) if value not in SLOW.get(option.name, ())]
    for number, value in enumerate(values):
        words = {**runs, "PAGE": "page.png", "OUT": f"out-{number}"}
        code = outcome([words.get(word, word) for word in option.given(value)])
        said = "".join(capsys.readouterr())
        never = NEVER[option.kind] - GOOD.get(option.name, set())
        if code not in EXITS or "Traceback" in said or (code == 0 and value in never):
            wrong.append(f"{option.name} {value[:40]!r}: {code} {said[-300:]}")
    assert not wrong, "\n".join([f"{option}:", *wrong])


@pytest.mark.parametrize("name", COMPLETE)
def test_no_option_is_forgotten(name: str, runs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """What the help of a command lists has been tried."""
    words = COMPLETE[name][: 3 if name.startswith("expert ") else 2]
    assert outcome([*(runs.get(word, word) for word in words if not word.startswith("--")), "--help"]) == 0
    listed = set(re.findall(r"^\W*(--[a-z][a-z0-9-]*)", capsys.readouterr().out, re.MULTILINE)) - {"--help"}
    bare = {option if option in ALL_NAMES else option.replace("--no-", "--", 1) for option in listed}
    assert bare and bare <= ALL_NAMES, bare - ALL_NAMES
