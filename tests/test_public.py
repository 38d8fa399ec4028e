"""Public API: names of one module, documented and imported lazily."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import aggrevated

ROOT = Path(__file__).parent.parent
STUB = ast.parse(Path(aggrevated.__file__).with_suffix(".pyi").read_text())


@pytest.mark.parametrize("name", aggrevated.__all__)
def test_public_names_exist_and_have_docstrings(name: str) -> None:
    value = getattr(aggrevated, name)
    assert isinstance(value, str | dict) or name == "Loss" or inspect.getdoc(value)
    assert name in dir(aggrevated)


def test_public_stub_lists_the_same_names() -> None:
    imports = [node for node in STUB.body if isinstance(node, ast.ImportFrom)]
    stub_homes = {alias.asname: node.module for node in imports for alias in node.names}
    assert stub_homes == aggrevated.HOMES


def test_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        aggrevated.nonsense  # noqa: B018


@pytest.mark.parametrize("command", ["import aggrevated", "import aggrevated.cli", "from aggrevated import UsageError"])
def test_package_import_loads_no_heavy_package(command: str) -> None:
    code = f"{command}\nimport sys\nprint([name for name in ('torch', 'numpy', 'gymnasium') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["evaluate", "--help"], ["--version"]])
def test_command_help_loads_no_torch_and_no_numpy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom aggrevated.cli import main\ntry:\n"
        f"    main({arguments!r})\nfinally:\n    assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_readme_examples_have_at_most_three_import_lines() -> None:
    text = (ROOT / "README.md").read_text()
    for example in (part.split("```")[0] for part in text.split("```python\n")[1:]):
        imports = [node for node in ast.parse(example).body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert 1 <= sum(node.end_lineno - node.lineno + 1 for node in imports) <= 3
