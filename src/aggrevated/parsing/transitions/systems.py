"""The transition systems, by name."""

from types import ModuleType

from aggrevated.parsing.transitions import arc_eager, arc_hybrid

SYSTEMS: dict[str, ModuleType] = {system.NAME: system for system in (arc_eager, arc_hybrid)}
