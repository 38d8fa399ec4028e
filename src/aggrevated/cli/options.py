"""Kinds of options; the annotations only tell `--help` what to call their values."""

from pathlib import Path
from typing import Annotated, TypeAlias

from tyro.conf import arg

Integer: TypeAlias = Annotated[int | None, arg(metavar="INT", help_behavior_hint="")]
Seconds: TypeAlias = Annotated[float | None, arg(metavar="FLOAT", help_behavior_hint="")]
Name: TypeAlias = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
Folder: TypeAlias = Annotated[Path | None, arg(metavar="PATH", help_behavior_hint="")]
TaskName: TypeAlias = Annotated[str, arg(metavar="TASK")]
RunFolder: TypeAlias = Annotated[Path, arg(metavar="RUN")]
