"""All runs below a folder, followed: what changed since somebody last asked. Reads only, and needs no torch."""

from __future__ import annotations

import os
import stat
import time
from bisect import bisect_right
from pathlib import Path
from secrets import token_hex
from threading import Lock

from aggrevated.errors import StorageError
from aggrevated.files import Facts, in_short, storage_errors
from aggrevated.server.board_trials import Intervals, curve, mean, row_of, together
from aggrevated.server.following import Point
from aggrevated.server.following_folders import Found, find, locks_held
from aggrevated.server.following_runs import Followed

PATIENCE = 0.3  # seconds of reading, before what was read so far is told
PAUSE = 0.2  # seconds in which nothing is looked at twice, however many ask
SLICE = 0.2  # seconds of work between two looks at the clock
SHARE = 10  # a search for runs waits so many times as long as the last one took
COLUMNS = Point._fields


class Entry:
    """One run and what was told of it. A stamp is the number of the look that found something."""

    def __init__(self, run: Followed, name: str) -> None:
        self.run, self.name = run, name
        self.row: Facts = {}
        self.stamp, self.beginnings, self.begun = 0, 0, 0
        self.marks: list[int] = []  # the stamp of each point

    def look(self, now: int) -> None:
        """Notice what is new of its points."""
        tail = self.run.tail
        if tail.beginnings != self.beginnings:
            self.beginnings, self.begun, self.marks = tail.beginnings, now, []
        self.marks += [now] * (len(tail.kept) - len(self.marks))

    def tell(self, row: Facts, now: int) -> None:
        """Notice what is new of its row."""
        if row != self.row:
            self.row, self.stamp = row, now

    def since(self, stamp: int) -> Facts:
        """Its row, and its points from the first that is new on."""
        first = 0 if stamp < self.begun else bisect_right(self.marks, stamp)
        tail = self.run.tail
        return self.row | {"from": first, "points": tail.kept[first:], "newest": tail.newest}


class Board:
    """The runs below a folder. One look at a time; whoever only asks gets what the last one found."""

    def __init__(self, root: Path) -> None:
        with storage_errors(root):
            kind = root.stat().st_mode
            self.root = Path(os.path.realpath(root))
            if not stat.S_ISDIR(kind):
                raise StorageError(f"{root} is not a folder; give one that has runs in it")
        self.life = token_hex(4)  # stamps of another server mean nothing here
        self.now, self.looked, self.asked, self.opened = 0, 0.0, 0.0, 0.0
        self.found, self._searched, self._search_took = Found(), 0.0, 0.0
        self.keys: dict[str, int] = {}  # by name; a key stays with its name
        self.runs: dict[int, Entry] = {}
        self.groups: dict[int, Facts] = {}
        self._group_stamps: dict[int, int] = {}
        self._intervals, self._lock, self._turn = Intervals(), Lock(), 0

    def look(self, seconds: float = PATIENCE) -> None:
        """Find and follow, for about so long at most."""
        with self._lock:
            self.asked = time.monotonic()
            if self.asked - self.looked < PAUSE and not self.behind:
                return
            self.now += 1
            self._search()
            self._follow(time.monotonic() + seconds)
            self._tell()
            self.looked = time.monotonic()

    @property
    def behind(self) -> bool:
        """Whether there is more to read than there was time for."""
        return any(entry.run.tail.behind for entry in self.runs.values())

    def _search(self) -> None:
        began = time.monotonic()
        if self._searched and began - self._searched < SHARE * self._search_took:
            return
        self.found = find(self.root)
        runs = {self._key(name): (name, folder) for name, folder in map(self._named, self.found.runs)}
        known = self.runs
        self.runs = {key: known.get(key) or Entry(Followed(path), name) for key, (name, path) in runs.items()}
        self._searched = time.monotonic()
        self._search_took = self._searched - began

    def _named(self, folder: Path) -> tuple[str, Path]:
        return self._shown(str(folder.relative_to(self.root))), folder

    def _shown(self, name: str) -> str:
        return self.root.name if name == "." else name

    def _key(self, name: str) -> int:
        return self.keys.setdefault(name, len(self.keys) + 1)

    def _follow(self, until: float) -> None:
        """Read what is new of all; where the time does not suffice, the next look begins with the others."""
        held, entries = locks_held(), list(self.runs.values())
        self._turn %= max(len(entries), 1)
        ordered = entries[self._turn :] + entries[: self._turn]
        for entry in ordered:
            entry.run.look(until, held)
            entry.look(self.now)
        late = next((place for place, entry in enumerate(ordered) if entry.run.tail.behind), 0)
        self._turn += late

    def _tell(self) -> None:
        rows = {key: entry.run.row(entry.name) for key, entry in self.runs.items()}
        experts, measures = experts_of(list(rows.values())), measures_of(list(rows.values()))
        groups = together({entry.name: entry.run for entry in self.runs.values()})
        group_of = {name: self._shown(folder) for folder, names in groups.items() for name in names}
        for key, row in rows.items():
            lent = row["expert"] is None and row["world"] in experts
            row |= {"key": key, "lent": lent, "group": group_of.get(self.runs[key].name, "")}
            row["measure"] = measures.get(row["task"], "")
            row["beside"] = beside_expert(row)
            row["damage"] = [one.replace(f"{self.root}/", f"{self.root.name}/") for one in row["damage"]]
            if lent:
                row["expert"] = experts[row["world"]]
            self.runs[key].tell(row, self.now)
        self._tell_groups(groups)

    def _tell_groups(self, groups: dict[str, list[str]]) -> None:
        told = {}
        for folder, names in groups.items():
            key, members = self._key(f"{folder}/"), [self.runs[self.keys[name]] for name in names]
            points = curve([one.run for one in members], self._intervals)
            row = row_of(in_short(self._shown(folder), 200), [one.row for one in members], points)
            told[key] = row | {"key": key, "members": [one.row["key"] for one in members]}
            if told[key] != self.groups.get(key):
                self._group_stamps[key] = self.now
        self.groups = told

    def since(self, stamp: str) -> Facts:
        """What changed since that stamp, for JSON; everything, where it is not one of ours."""
        with self._lock:
            life, _, number = stamp[:40].partition("-")
            before = int(number) if life == self.life and number.isascii() and number.isdigit() else 0
            if not before:
                self.opened = time.monotonic()
            return {
                "stamp": f"{self.life}-{self.now}",
                "root": in_short(self.root.name, 100),
                "columns": COLUMNS,
                "keys": [*self.runs, *self.groups],
                "runs": [one.since(before) for one in self.runs.values() if one.stamp > before],
                "groups": [one for key, one in self.groups.items() if self._group_stamps[key] > before],
                "left_out": self.found.left_out,
            }

    def run_of(self, key: int) -> Followed | None:
        """The run with that key; of trials the first. No look is waited for: what it changes, it replaces."""
        members = self._members(key) or [key]
        entry = self.runs.get(members[0])
        return entry.run if entry else None

    def trials_of(self, key: int) -> int:
        """How many trials there are behind a key; 0 behind that of a run."""
        return len(self._members(key))

    def _members(self, key: int) -> list[int]:
        found: list[int] = self.groups.get(key, {}).get("members", [])
        return found

    def work(self, seconds: float) -> bool:
        """Do a little of what has time: intervals first, then seals; whether there is more."""
        if self.behind or self._intervals.work():
            return True
        until = time.monotonic() + seconds
        for entry in list(self.runs.values()):
            if not entry.run.seals.done:
                entry.run.seals.look(until)
                if time.monotonic() >= until:
                    return True
        return False

    def finish(self, seconds: float = 20.0) -> list[Facts]:
        """Rows of all runs, trials first, once all is read and looked at; what takes longer is left unchecked."""
        until = time.monotonic() + seconds
        self.look(seconds)
        while self.work(SLICE) and time.monotonic() < until:
            pass
        self.looked = 0.0
        self.look(seconds)
        runs = {key: entry.since(0) | {"settings": entry.run.settings()} for key, entry in self.runs.items()}
        return [*self.groups.values(), *runs.values()]


def measures_of(rows: list[Facts]) -> dict[str, str]:
    """What runs are compared by, by task: ratio or gain, as `reports.groups.measure` has it.

    Which of them is known once a run of the task has ended: of worlds without a ratio, none has it.
    """
    ended = [row for row in rows if row["test"] is not None and row["expert"] is not None]
    rated = {row["task"] for row in ended if row["ratio"] is not None}
    return {row["task"]: "ratio" if row["task"] in rated else "gain" for row in ended}


def beside_expert(row: Facts) -> float | None:
    """That of a run, in its test; None before it has ended, whatever is known of others."""
    if row["measure"] != "gain":
        ratio: float | None = row["ratio"]
        return ratio
    return row["test"] - row["expert"] if None not in (row["test"], row["expert"]) else None


def experts_of(rows: list[Facts]) -> dict[str, float]:
    """What is known of the experts' returns, by world: the mean over runs that have ended."""
    worlds: dict[str, list[float]] = {}
    for row in rows:
        if row["expert"] is not None and row["state"] != "unreadable":
            worlds.setdefault(row["world"], []).append(row["expert"])
    return {world: mean(values) or 0.0 for world, values in worlds.items()}
