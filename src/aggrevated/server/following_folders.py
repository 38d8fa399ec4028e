"""Where runs are below a folder, and which of them some process holds. Links are not followed, nor is all of a disk."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from aggrevated.files.locks import LOCK
from aggrevated.runs.names import CHECKPOINTS, CONFIG

SEVERAL = re.compile(r"(trial|seed)-\d+")  # what the folders of runs are called that belong together

DEEPEST, MOST_FOLDERS, MOST_RUNS, MOST_ENTRIES = 6, 5_000, 1_000, 20_000
LOCKS = Path("/proc/locks")
HELD = re.compile(r"FLOCK +ADVISORY +WRITE +-?\d+ ([0-9a-f]+):([0-9a-f]+):(\d+) ")


@dataclass
class Found:
    """The folders of runs, nearest first and then by name, and what was left out."""

    runs: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # in sentences


def find(root: Path) -> Found:
    """All folders below the root, or itself, that have a config.json."""
    found, waiting, seen, closed = Found(), deque([(root, 0)]), 0, 0
    while waiting and seen < MOST_FOLDERS and len(found.runs) < MOST_RUNS:
        folder, depth = waiting.popleft()
        seen += 1
        try:
            names = dict(entries(folder))
        except OSError:
            closed += 1
            continue
        if CONFIG in names:
            found.runs.append(folder)
        elif depth < DEEPEST:
            waiting.extend((folder / name, depth + 1) for name in sorted(names) if names[name])
    if waiting:
        found.left_out.append(
            f"only {len(found.runs):,} runs in the first {seen:,} folders are shown; give a folder nearer to them"
        )
    if closed:
        found.left_out.append(f"{closed:,} folders cannot be read; check their permissions")
    return found


def entries(folder: Path) -> Iterator[tuple[str, bool]]:
    """(name, whether to look into it) of what lies in a folder."""
    with os.scandir(folder) as names:
        for entry in islice(names, MOST_ENTRIES):
            hidden = entry.name.startswith(".") or entry.name == CHECKPOINTS
            yield entry.name, not hidden and entry.is_dir(follow_symlinks=False)


def locks_held() -> set[tuple[int, int]] | None:
    """(device, node) of every file that is locked; None where the system does not tell.

    To try a lock is to hold it for a moment, in which a run that begins would be refused. So the kernel is asked.
    """
    try:
        text = LOCKS.read_text()
    except OSError:
        return None
    return {
        (os.makedev(int(major, 16), int(minor, 16)), int(node)) for major, minor, node in HELD.findall(text)
    }  # fmt: skip


def is_held(folder: Path, held: set[tuple[int, int]]) -> bool:
    """Whether some process has the folder's lock."""
    try:
        found = os.lstat(folder / LOCK)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) in held


def lock_tells(folder: Path) -> bool:
    """Whether a lock that is not held means that nobody runs it: not on file systems that other machines share."""
    try:
        return os.major(os.lstat(folder / LOCK).st_dev) != 0
    except OSError:
        return False
