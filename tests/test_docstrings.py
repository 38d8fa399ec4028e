"""Docstrings of the public API: every public name has the sections that its signature needs, and its examples run."""

import dataclasses
import doctest
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import jedi
import pytest

import aggrevated
from aggrevated import HOMES

SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Example|Examples):$", re.MULTILINE)
OBJECTS = {name: getattr(aggrevated, name) for name in HOMES}
CALLABLES = {name: value for name, value in OBJECTS.items() if inspect.isfunction(value) or inspect.isclass(value)}


def split_sections(docstring: str) -> dict[str, str]:
    """Return the text of each section by its title."""
    parts = SECTION.split(inspect.cleandoc(docstring))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def list_parameters(value: Any) -> list[str]:
    """Return the parameters of a function, or of the constructor of a class, that a caller passes."""
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.init]
    if inspect.isclass(value) and value.__init__ is object.__init__:
        return []
    parameters = inspect.signature(value).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in parameters if one.name != "self" and one.kind not in variadic]


def is_protocol_or_base(value: Any) -> bool:
    """Return whether a class is not constructed by its users: a protocol, an error, an enum or a base of settings."""
    return inspect.isclass(value) and (getattr(value, "_is_protocol", False) or issubclass(value, Exception | Enum))


def returns_value(value: Any) -> bool:
    """Return whether a function returns something."""
    return inspect.isfunction(value) and get_type_hints(value).get("return") not in (None, type(None))


def find_missing(name: str) -> list[str]:
    """Return the missing parts of the docstring of a public name."""
    value = CALLABLES[name]
    docstring = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
    if not docstring or docstring.startswith(f"{name}("):
        return ["a docstring"]
    sections = split_sections(docstring)
    missing = []
    if not is_protocol_or_base(value):
        described = sections.get("Args", "") + sections.get("Attributes", "")
        missing += [
            f"`{one}` in Args" for one in list_parameters(value) if not re.search(rf"^ *\**{one}\b.*:", described, re.M)
        ]
    if returns_value(value) and not {"Returns", "Yields"} & {*sections}:
        missing.append("Returns")
    return missing


@pytest.mark.parametrize("name", CALLABLES)
def test_docstring_of_public_name_has_the_sections_of_its_signature(name: str) -> None:
    assert find_missing(name) == []


def iter_public_methods() -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that public classes define."""
    for name, value in CALLABLES.items():
        if inspect.isclass(value):
            for key, member in vars(value).items():
                if not key.startswith("_") and (
                    inspect.isfunction(member) or isinstance(member, property | classmethod)
                ):
                    yield f"{name}.{key}", member


@pytest.mark.parametrize(
    ("name", "member"), iter_public_methods(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_docstring_of_public_method_begins_with_a_sentence(name: str, member: Any) -> None:
    owner, _, key = name.partition(".")
    docstring = inspect.getdoc(getattr(CALLABLES[owner], key)) or ""
    first = docstring.split("\n\n")[0]
    assert first.endswith((".", ":")) and not re.match(r"The same|What |Whether |Only |It ", first), first


@pytest.mark.parametrize("module", sorted({*HOMES.values()}))
def test_examples_of_public_modules_run(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert results.failed == 0


def test_first_line_of_no_docstring_needs_its_neighbor() -> None:
    root = Path(aggrevated.__file__).parents[2]
    files = [*(root / "src").rglob("*.py"), *(root / "packages").glob("*/src/**/*.py")]
    found = [f"{file}" for file in files if '"""The same' in file.read_text()]
    assert found == []


@pytest.mark.parametrize("name", sorted(HOMES))
def test_editor_completes_public_name(name: str) -> None:
    code = f"import aggrevated\naggrevated.{name}"
    completions = jedi.Script(code).complete(2, len(f"aggrevated.{name}") - 1)
    assert name in {completion.name for completion in completions}


HOVERED = ["train", "resume", "resolve_config", "Trainer", "NaturalUpdate", "as_expert", "CartPole"]


@pytest.mark.parametrize("name", HOVERED)
def test_editor_shows_docstring_of_public_name_on_hover(name: str) -> None:
    (hovered_name,) = jedi.Script(f"import aggrevated\naggrevated.{name}").help(2, len("aggrevated.") + 1)
    docstring = inspect.getdoc(OBJECTS[name])
    assert docstring and docstring in hovered_name.docstring()
