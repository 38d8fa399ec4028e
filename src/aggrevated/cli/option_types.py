"""Kinds of options: what `--help` calls their values, and what no value may be."""

from pathlib import Path
from typing import Annotated, TypeAlias

from tyro.conf import arg
from tyro.constructors import PrimitiveConstructorSpec


def parse_path(words: list[str]) -> Path:
    """The path; an empty text is no path, not even that of this folder."""
    if not words[0]:
        raise ValueError("it is empty; give a path")
    return Path(words[0])


def parse_new_path(words: list[str]) -> Path:
    """The path of something new, to whose last part endings can be added."""
    path = parse_path(words)
    if path.name in ("", ".."):
        raise ValueError(f"{words[0]} has no name of its own; give the path of a file")
    return path


def make_path_type(metavar: str, made: object = parse_path) -> object:
    """How tyro takes such paths."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=made,  # type: ignore[arg-type]
        is_instance=lambda value: isinstance(value, Path),
        str_from_instance=lambda value: [str(value)],
    )


Integer: TypeAlias = Annotated[int | None, arg(metavar="INT", help_behavior_hint="")]
Seconds: TypeAlias = Annotated[float | None, arg(metavar="FLOAT", help_behavior_hint="")]
Name: TypeAlias = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
AnyPath: TypeAlias = Annotated[Path, make_path_type("PATH")]
NewName: TypeAlias = Annotated[Path, make_path_type("PATH", parse_new_path)]
Folder: TypeAlias = Annotated[AnyPath | None, arg(metavar="PATH", help_behavior_hint="")]
File: TypeAlias = Annotated[NewName | None, arg(metavar="PATH", help_behavior_hint="")]
TaskName: TypeAlias = Annotated[str, arg(metavar="TASK")]
Trust: TypeAlias = Annotated[
    bool, arg(help="Import the Python code that the run names, module:attribute. Look at it first.")
]
RunFolder: TypeAlias = Annotated[AnyPath, arg(metavar="RUN")]
