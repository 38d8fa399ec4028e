"""Writes docs/settings.md from what the pieces declare: `python docs/make_settings.py`. A test keeps the two equal."""

from collections.abc import Iterable, Iterator
from inspect import getdoc
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

from aggrevated.config.loop import LoopSettings
from aggrevated.config.resolver import HEAD_REGISTRY, OPTION_NAMES, REGISTRIES
from aggrevated.core.registry import list_task_names
from aggrevated.core.settings import ANY_VALUE, WORDS_OF_TYPES, Settings, declared_settings, to_flag
from aggrevated.tasks import Task, find_task

HEAD = """# Settings

Every setting of every piece, with the default that the piece declares; a task tunes some of them, and
`aggrevated train TASK --help` shows what a run of it would use. Made by `python docs/make_settings.py` from the code.
"""
TABLE = "| option | what it is | type | default | must be |\n|---|---|---|---|---|"


def page() -> str:
    """The whole page."""
    tasks = [find_task(name) for name in list_task_names() if not name.startswith("_")]
    parts = [HEAD, "## The loop\n", table(LoopSettings), "\n## Worlds\n"]
    worlds = {type(task.world): [] for task in tasks}
    for task in tasks:
        worlds[type(task.world)].append(task.name)
    for world, names in worlds.items():
        parts.append(section(f"{world.name} ({', '.join(names)})", world))
        parts.append(section(f"`aggrevated evaluate` of {world.name}", world.evaluation))
    for place, option in OPTION_NAMES.items():
        parts.append(f"## {place.capitalize()}: `{to_flag(option)}`\n")
        parts += [section(name, piece) for name, piece in found(place, tasks)]
    parts.append("## Head: by the action space\n")
    parts += [section(name, HEAD_REGISTRY.get(name)) for name in HEAD_REGISTRY.names()]
    return "\n".join(parts).rstrip() + "\n"


def found(place: str, tasks: Iterable[Task]) -> Iterator[tuple[str, type[Settings]]]:
    """The pieces of a place, with those that tasks bring."""
    yield from REGISTRIES[place].shipped.items()
    for task in tasks:
        own = [piece for piece in task.components if issubclass(piece, REGISTRIES[place].base)]
        yield from ((f"{piece.name} (of {task.name})", piece) for piece in own)


def section(title: str, piece: type[Settings]) -> str:
    """One piece."""
    return f"**{title}.** {(getdoc(piece) or '').splitlines()[0]}\n\n{table(piece)}".rstrip() + "\n"


def table(piece: type[Settings]) -> str:
    """Its settings."""
    rows = []
    for name, declared in declared_settings(piece).items():
        kind = get_type_hints(piece)[name]
        rule = declared.metadata["rule"]
        words = WORDS_OF_TYPES[get_origin(kind) or kind] if get_args(kind) else kind.__name__
        must = "" if rule is ANY_VALUE else rule.words
        rows.append(
            f"| `{to_flag(name)}` | {declared.metadata['words']} | {words} | {shown(declared.default)} | {must} |"
        )
    return "\n".join([TABLE, *rows, ""]) if rows else ""


def shown(default: object) -> str:
    """A default, for people."""
    return " ".join(map(str, default)) if isinstance(default, tuple) else "" if default == "" else str(default)


if __name__ == "__main__":
    Path(__file__).with_name("settings.md").write_text(page())
