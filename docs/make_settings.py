"""Write docs/settings.md from the settings of the components: `python docs/make_settings.py`.

It needs all three distributions, which `make` installs. A test compares the page with the components.
"""

from collections.abc import Iterable, Iterator
from inspect import getdoc
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

from aggrevated.config.loop import LoopSettings
from aggrevated.config.resolver import HEAD_REGISTRY, OPTION_NAMES, REGISTRIES
from aggrevated.core.registry import list_task_names
from aggrevated.core.settings import ANY_VALUE, TYPE_DESCRIPTIONS, Settings, get_declared_settings, to_flag
from aggrevated.tasks import Task, find_task

HEADER = """# Settings

Every setting of every component, with the default that the component declares. A task has presets for some of them;
`aggrevated train TASK --help-all` shows what a run of it would use. `python docs/make_settings.py` makes this page
from the code. The tasks `reader`, `cliff`, `keys`, `lock` and `packing` come with the packages `aggrevated-reader` and
`aggrevated-experiments`.
"""
TABLE_HEADER = "| option | what it is | type | default | must be |\n|---|---|---|---|---|"


def make_page() -> str:
    """Return the whole page."""
    tasks = [find_task(name) for name in list_task_names() if not name.startswith("_")]
    sections = [HEADER, "## The loop\n", format_table(LoopSettings), "\n## Problems: by the task\n"]
    task_names: dict[type[Settings], list[str]] = {}
    for task in tasks:
        task_names.setdefault(type(task.problem), []).append(task.name)
    for problem, names in task_names.items():
        sections.append(format_section(f"{problem.name} ({', '.join(names)})", problem))
        sections.append(format_section(f"`aggrevated evaluate` of {problem.name}", problem.evaluation))
    for slot, option in OPTION_NAMES.items():
        sections.append(f"## {slot.capitalize()}: `{to_flag(option)}`\n")
        sections += [format_section(name, component) for name, component in iter_components(slot, tasks)]
    sections.append("## Head: by the action space\n")
    sections += [format_section(name, HEAD_REGISTRY.get(name)) for name in HEAD_REGISTRY.names()]
    return "\n".join(sections).rstrip() + "\n"


def iter_components(slot: str, tasks: Iterable[Task]) -> Iterator[tuple[str, type[Settings]]]:
    """Yield the components of a slot by name: the builtin ones, then those of single tasks."""
    yield from REGISTRIES[slot].builtin.items()
    for task in tasks:
        own = [component for component in task.components if issubclass(component, REGISTRIES[slot].base)]
        yield from ((f"{component.name} (of {task.name})", component) for component in own)


def format_section(title: str, component: type[Settings]) -> str:
    """Return the title, the first line of the docstring and the table of a component."""
    return f"**{title}.** {(getdoc(component) or '').splitlines()[0]}\n\n{format_table(component)}".rstrip() + "\n"


def format_table(component: type[Settings]) -> str:
    """Return the settings of a component as a table; an empty string if it has none."""
    rows = []
    for name, declared in get_declared_settings(component).items():
        kind = get_type_hints(component)[name]
        rule = declared.metadata["rule"]
        type_name = TYPE_DESCRIPTIONS[get_origin(kind) or kind] if get_args(kind) else kind.__name__
        limits = "" if rule is ANY_VALUE else rule.description
        description = declared.metadata["words"]
        rows.append(
            f"| `{to_flag(name)}` | {description} | {type_name} | {format_default(declared.default)} | {limits} |"
        )
    return "\n".join([TABLE_HEADER, *rows, ""]) if rows else ""


def format_default(default: object) -> str:
    """Return a default as people type it."""
    return " ".join(map(str, default)) if isinstance(default, tuple) else "" if default == "" else str(default)


if __name__ == "__main__":
    Path(__file__).with_name("settings.md").write_text(make_page())
