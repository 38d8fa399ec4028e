"""Films of policies beside their experts, and commands: made by processes beside the server, which have torch.

The server itself stays small and quick. Films lie in a folder that is removed with it, never beside a run.
"""

from __future__ import annotations

import asyncio
import json
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import IO, Any

import anyio
import anyio.to_thread
from starlette.exceptions import HTTPException

from aggrevated.errors import AggrevatedError, DataError
from aggrevated.files import Facts, in_short
from aggrevated.runs.names import CHOSEN

MOST_FILMS = 20  # that are kept
UNDER_WAY = 4  # that are made, or wait for it
TO_ANSWER = 300.0  # seconds that a film may take, with all imports
TO_END = 2.0  # seconds in which whoever waits for a process notices that it was ended
AT_ONCE = 1 << 16  # bytes
WORKER = "aggrevated.server.films_worker"


class Workshop:
    """A process that does one thing after the other: begun when it is first needed, and again where it died."""

    def __init__(self, trust: bool) -> None:
        self.trust = trust
        self._process: subprocess.Popen[bytes] | None = None
        self._lock, self._closed = Lock(), False
        self._turns = anyio.CapacityLimiter(1)  # who waits for his turn holds no thread of the server's

    async def ask(self, **request: Any) -> Facts:
        """Its answer; a mistake in the sentence that a command would print. Who asks may be cancelled."""
        work = partial(self._ask, {**request, "trust": self.trust})
        return await anyio.to_thread.run_sync(work, limiter=self._turns, abandon_on_cancel=True)

    def _ask(self, request: Facts) -> Facts:
        with self._lock:
            try:
                answer = self._asked(request)
            except (OSError, ValueError) as error:
                self._end()
                raise AggrevatedError("what makes films and commands ended in the middle; try again") from error
        if "error" in answer:
            raise DataError(str(answer["error"]))
        return answer

    def _asked(self, request: Facts) -> Facts:
        process = self._begun()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(line_of(process.stdout, time.monotonic() + TO_ANSWER))
        if not isinstance(answer, dict):
            raise ValueError("no answer of ours")
        return answer

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None and not self._closed:
            self._process = subprocess.Popen(
                [sys.executable, "-m", WORKER],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
                start_new_session=True,  # Ctrl-C is for the server, which ends it
            )  # fmt: skip
        if self._process is None or self._closed:  # closed before, or in just this moment
            raise ChildProcessError("closed")
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        self._process = None

    def close(self) -> None:
        """End it, whatever it is doing, and begin no other."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()  # whoever waits for it is told that it ended, and lets go of the lock
        if self._lock.acquire(timeout=TO_END):
            self._end()
            self._lock.release()


def line_of(pipe: IO[bytes], until: float) -> bytes:
    """One line; an `OSError` where it does not come in time."""
    data = b""
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
        piece = pipe.read(AT_ONCE) if ready else b""
        if not piece or len(data) > 1 << 20:
            raise TimeoutError("no answer")
        data += piece
    return data


@dataclass
class Film:
    """One that is made, or will be."""

    number: int
    path: Path
    facts: Facts = field(default_factory=lambda: {"state": "making"})

    def told(self) -> Facts:
        return {"film": self.number, **self.facts}


class Films:
    """All films of a server, by number; asked for the same twice, it is the same one."""

    def __init__(self, folder: Path, workshop: Workshop) -> None:
        self.folder, self.workshop = folder, workshop
        self.made: dict[int, Film] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._tasks = set[asyncio.Task[None]]()  # else they could be collected before they are done

    def begin(self, run: Path, seed: int) -> Film:
        """Begin to make it, unless it is there or on its way already; a policy that learned more is another film."""
        which = (run, seed, age_of(run / CHOSEN))
        film = self.made.get(self._numbers.get(which, 0))
        if film is not None and film.facts["state"] != "failed":
            return film
        if sum(one.facts["state"] == "making" for one in self.made.values()) >= UNDER_WAY:
            raise HTTPException(503, f"{UNDER_WAY} films are being made already; wait for one of them")
        number = self._numbers[which] = max(self.made, default=0) + 1
        film = self.made[number] = Film(number, self.folder / f"{number}.gif")
        task = asyncio.get_running_loop().create_task(self._make(film, run, seed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._forget()
        return film

    async def _make(self, film: Film, run: Path, seed: int) -> None:
        try:
            asked = {"what": "film", "folder": str(run), "seed": seed, "path": str(film.path)}
            film.facts = {"state": "ready", **await self.workshop.ask(**asked)}
        except AggrevatedError as error:
            film.facts = {"state": "failed", "error": in_short(error, 400)}

    def _forget(self) -> None:
        done = [number for number, film in self.made.items() if film.facts["state"] != "making"]
        for number in done[: max(0, len(self.made) - MOST_FILMS)]:
            self.made.pop(number).path.unlink(missing_ok=True)
        self._numbers = {which: number for which, number in self._numbers.items() if number in self.made}


def age_of(path: Path) -> int:
    """When the file was written; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
