"""A reader of handwritten algebra, as a task, commands and a small server on `aggrevated`."""

from importlib import import_module
from typing import Any

PUBLIC = {"aggrevated_reader.pages_report": ("PageReader", "ParsedPage", "load_reader")}
HOMES = {name: module for module, names in PUBLIC.items() for name in names}
__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    """Import a public object when it is first used."""
    if name not in HOMES:
        raise AttributeError(f"module 'aggrevated_reader' has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)
