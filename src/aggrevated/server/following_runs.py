"""A run's folder as it is now: what it was asked to do, how far it is, what is wrong with it. Without torch."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

from aggrevated.errors import AggrevatedError
from aggrevated.files import Facts, in_short, unseal_json
from aggrevated.files.sealed_json import digest_of
from aggrevated.methods import METHODS
from aggrevated.runs.names import CONFIG, METRICS, RESULT
from aggrevated.server.following import Place, Point, Tail, number, whole_number, words
from aggrevated.server.following_folders import is_held, lock_tells
from aggrevated.server.following_seals import Seals

MOST_JSON = 256 << 10  # bytes; config.json has some 1,500, a result of parsing some 10,000
YOUNG = 15.0  # seconds: a line that came so lately was written by somebody who is still there
ITERATIONS = 3  # or so many times what an iteration takes
REMEDIES = {
    CONFIG: "undo that, or start a new run with 'aggrevated train'",
    RESULT: "remove it, and 'aggrevated resume' makes it again",
}
LENGTHS = ("seed", "iterations", "budget", "queries", "checkpoint_every")  # in which runs that belong together differ
MEASURED = ("validation_episodes", "test_episodes")  # settings of a world that change no expert


class Sealed:
    """A sealed JSON file, read again where it changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place: Place | None = None
        self.facts: Facts | None = None
        self.sentence = ""

    def look(self) -> None:
        """Read it, if it is not as it was."""
        try:
            found = os.lstat(self.path)
        except OSError:
            self.place, self.facts, self.sentence = None, None, ""
            return
        place = Place.of(found)
        if place == self.place:
            return
        self.place, self.facts, self.sentence = place, None, ""
        try:
            self.facts = self._read(found)
        except AggrevatedError as error:
            self.sentence = in_short(error, 400)

    def _read(self, found: os.stat_result) -> Facts | None:
        if not stat.S_ISREG(found.st_mode):
            self.sentence = f"{self.path} is not a regular file; restore it, or start a new run"
        elif found.st_size > MOST_JSON:
            self.sentence = f"{self.path} has more than {MOST_JSON >> 10} kB; restore it, or start a new run"
        else:
            return unseal_json(self.path, REMEDIES[self.path.name])
        return None


class Followed:
    """One run, and what was read of it so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config, self.result = Sealed(folder / CONFIG), Sealed(folder / RESULT)
        self.tail = Tail(folder / METRICS)
        self.seals = Seals(self.tail)
        self.held = self.was_held = False  # its lock, as far as this machine knows
        self.grew_unheld = False  # somebody writes whose lock is not seen here: in a container, or elsewhere
        self._lock_tells = False

    def look(self, until: float, held: set[tuple[int, int]] | None) -> None:
        """Read what is new, until that time at most; `held` are the locks of all processes."""
        self.config.look()
        self.result.look()
        offset, was_held = self.tail.offset, self.held
        self.tail.read(until)
        self.held = held is not None and is_held(self.folder, held)
        self.was_held = self.was_held or self.held
        self.grew_unheld = self.grew_unheld or (0 < offset < self.tail.offset and not self.held and not was_held)
        self._lock_tells = held is not None and lock_tells(self.folder)

    @property
    def asked(self) -> Facts:
        """The settings, by piece; nothing where they cannot be read."""
        return self.config.facts or {}

    @property
    def trajectories(self) -> int:
        """K, the episodes of an iteration."""
        return whole_number(self.asked, "loop", "trajectories") or 1

    @property
    def points(self) -> list[Point]:
        """Those that are kept, and the newest."""
        kept, newest = self.tail.kept, self.tail.newest
        return [*kept, newest] if newest is not None and (not kept or kept[-1] != newest) else kept

    @property
    def outcome(self) -> Facts | None:
        """The result, if the run has ended as it was asked to."""
        result, loop = self.result.facts, self.asked.get("loop")
        if result is None or not isinstance(loop, dict):
            return None
        reached = result.get("iterations") == loop.get("iterations")
        same = all(result.get(name) == loop.get(name) for name in ("budget", "queries"))
        return result if reached or (same and result.get("ended") in ("budget", "queries")) else None

    def state(self) -> tuple[str, str]:
        """(running, ended, stopped, waiting or unreadable; how that is known)."""
        if self.config.facts is None:
            return "unreadable", "its config.json"
        if self.held:
            return "running", "its lock"
        if self.outcome is not None:
            return "ended", "its result.json"
        if self.tail.place is None and not self.was_held:
            return "waiting", "that it has no metrics yet"
        if (self.was_held or self._lock_tells) and not self.grew_unheld:
            return "stopped", "its lock"
        return ("running" if self._is_young() else "stopped"), "the age of its newest line"

    def _is_young(self) -> bool:
        newest, pause = self.tail.newest, 0.0
        if newest is not None and newest.seconds is not None and newest.iteration:
            pause = newest.seconds / newest.iteration
        changed = self.tail.place.changed if self.tail.place else 0
        return time.time() - changed / 1e9 < max(YOUNG, ITERATIONS * pause)

    def damages(self) -> list[str]:
        """What is not as it was written, or cannot be read, in the library's sentences."""
        found = [self.config.sentence, self.result.sentence, self.tail.sentence, self.seals.sentence]
        if self.tail.lines and self.tail.newest is None:
            found.append(f"{self.tail.path} has no line of metrics; restore it, or start a new run")
        return [sentence for sentence in found if sentence]

    def warnings(self) -> list[str]:
        """What somebody who looks at the curve should know."""
        newest, found = self.tail.newest, list[str]()
        if self.tail.deaths:
            first, last = self.tail.deaths[0], self.tail.deaths[-1]
            still = newest is not None and last.iteration == newest.iteration
            how = "and still in the newest" if still else f"last in iteration {last.iteration}"
            found.append(
                f"learning has died: {last.reason}; first in iteration {first.iteration}, "
                f"in {self.tail.dead_lines} of {self.tail.lines} iterations, {how} (docs/which-method.md)"
            )
        outcome = self.outcome or {}
        for name, of in (
            ("diverged", "training"),
            ("validation_diverged", "validation"),
            ("test_diverged", "the test"),
        ):
            if count := whole_number(outcome, name):
                found.append(f"{count:,} episodes of {of} diverged")
        note = outcome.get("note")
        return [*found, in_short(note, 300)] if isinstance(note, str) and note else found

    @property
    def world(self) -> str:
        """Stands for task, world and expert: runs that have it in common are measured against the same."""
        world = self.asked.get("world")
        same = {name: value for name, value in world.items() if name not in MEASURED} if isinstance(world, dict) else 0
        return digest_of({"task": self.asked.get("task"), "world": same})[:12]

    @property
    def kind(self) -> str:
        """Stands for all settings but the seed and how long it takes: trials have it in common."""
        loop = self.asked.get("loop")
        same = {name: value for name, value in loop.items() if name not in LENGTHS} if isinstance(loop, dict) else loop
        return digest_of(self.asked | {"loop": same})

    def row(self, name: str) -> Facts:
        """What the list says of it, for JSON; `name` is its place below the root."""
        asked, outcome, newest = self.asked, self.outcome or {}, self.tail.newest
        (state, known_by), method = self.state(), words(asked, "method")
        title = METHODS[method].title if method in METHODS else method
        update = words(asked, "update", "name")
        planned = whole_number(asked, "loop", "iterations")
        limited = any(whole_number(asked, "loop", name) for name in ("budget", "queries"))
        return {
            "path": in_short(name, 200),
            "label": ", ".join(filter(None, (title, update))) or "unknown",
            "task": words(asked, "task"),
            "method": method,
            "update": update,
            "policy": words(asked, "policy", "name"),
            "seed": whole_number(asked, "loop", "seed"),
            "state": state,
            "known_by": known_by,
            "iterations": newest.iteration if newest else 0,
            "planned": None if limited else planned,
            "episodes": self.trajectories,
            "initial": number(outcome, "initial_return"),
            "current": newest.current if newest else None,
            "best": newest.best if newest else number(outcome, "best_return"),
            "steps": newest.steps if newest else None,
            "queries": newest.queries if newest else None,
            "seconds": newest.seconds if newest else None,
            "expert": number(outcome, "expert_return"),
            "test": number(outcome, "test_return"),
            "ratio": number(outcome, "ratio"),
            "world": self.world,
            "moves": self.moves,
            "warnings": self.warnings(),
            "damage": self.damages(),
            "checked": self.seals.done,
            "behind": self.tail.behind,
        }

    @property
    def moves(self) -> bool:
        """Whether there are episodes to make a film of; parses have none."""
        world = self.asked.get("world")
        return isinstance(world, dict) and "horizon" in world

    def settings(self) -> dict[str, Any]:
        """All that it was asked to do, by PIECE.SETTING."""
        flat: dict[str, Any] = {}
        for place, piece in self.asked.items():
            inner = piece.items() if isinstance(piece, dict) else [("", piece)]
            flat |= {in_short(f"{place}.{name}" if name else place, 80): shown(value) for name, value in inner}
        return flat


def shown(value: object) -> str:
    """A setting, for people: as much of it as fits."""
    if isinstance(value, list):
        return in_short(", ".join(map(str, value[:50])), 80)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return in_short(f"{value:g}" if isinstance(value, float) else value, 80)
