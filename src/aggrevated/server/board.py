"""The page of `aggrevated board`: runs as they go. It only reads, and no run waits for it."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from aggrevated.errors import AggrevatedError, UsageError
from aggrevated.runs.names import TRIALS
from aggrevated.server.answers import Turns, answer, application, facts_of
from aggrevated.server.board_runs import Board
from aggrevated.server.films import Films, Workshop
from aggrevated.server.following_runs import Followed
from aggrevated.settings import SEED

FILES = (
    "board.html", "board.css", "common.css", "common.js", "scales.js", "board.js", "board-following.js",
    "board-model.js", "board-curves.js", "board-table.js", "board-details.js",
)  # fmt: skip
MOST_COMPARED = 12  # runs whose settings stand side by side
MOST_BODY = 1_000  # bytes
SLICE, REST, IDLE = 0.01, 0.04, 0.25  # seconds of work in the background, and between
FIRST = 1.0  # seconds that a new page has for itself
LOOKED_AT = 10.0  # seconds after which nobody looks any more, and nothing is read


class Pages:
    """What the page asks for."""

    def __init__(self, board: Board, films: Films, commands: Workshop) -> None:
        self.board, self.films, self.commands, self.turns = board, films, commands, Turns()

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/runs", self.runs),
            Route("/settings", self.settings),
            Route("/command", self.command),
            Route("/film", self.begin_film, methods=["POST"]),
            Route("/film", self.film),
            Route("/film.gif", self.gif),
        ]

    async def runs(self, request: Request) -> Response:
        """What changed since a stamp."""
        stamp = request.query_params.get("since", "")
        return Response(await self.turns(self._since, stamp), media_type="application/json")

    def _since(self, stamp: str) -> bytes:
        self.board.look()
        return json.dumps(self.board.since(stamp), ensure_ascii=False, allow_nan=False).encode()

    async def settings(self, request: Request) -> Response:
        """Settings side by side, and in which of them the runs differ."""
        keys = request.query_params.get("runs", "").split(",")[:MOST_COMPARED]
        tables = [self._run(key).settings() for key in keys]
        names = list(dict.fromkeys(name for table in tables for name in table))
        rows = [{"name": name, "values": [table.get(name) for table in tables]} for name in names]
        return answer([row | {"differs": len(set(row["values"])) > 1} for row in rows])

    async def command(self, request: Request) -> Response:
        """What to type to make such a run again, and to go on with it where it stopped."""
        key = request.query_params.get("run", "")
        run, trials = self._run(key), self.board.trials_of(as_key(key))
        told = {"command": f"aggrevated train --config {shlex.quote(str(run.config.path))}"}
        with suppress(AggrevatedError):  # what cannot be said shorter
            told = await self.commands.ask(what="command", folder=str(run.folder))
        folder = run.folder
        if trials and (folder.parent / TRIALS).is_file():
            folder, told["command"] = folder.parent, f"{told['command']} --trials {trials}"
        return answer({**told, "resume": f"aggrevated resume {shlex.quote(str(folder))}"})

    async def begin_film(self, request: Request) -> Response:
        """Begin to make a film of a run."""
        facts = await facts_of(request, MOST_BODY)
        seed = facts.get("seed", 0)
        if type(seed) is not int:
            raise UsageError("seed must be a whole number")
        SEED.require("seed", seed)
        return answer(self.films.begin(self._run(str(facts.get("run"))).folder, seed).told())

    async def film(self, request: Request) -> Response:
        """Whether it is ready."""
        number = as_key(request.query_params.get("film", ""))
        if number not in self.films.made:
            raise HTTPException(404)
        return answer(self.films.made[number].told())

    async def gif(self, request: Request) -> Response:
        """The film itself."""
        film = self.films.made.get(as_key(request.query_params.get("film", "")))
        if film is None or film.facts["state"] != "ready":
            raise HTTPException(404)
        return FileResponse(film.path, media_type="image/gif")

    def _run(self, key: str) -> Followed:
        run = self.board.run_of(as_key(key))
        if run is None:
            raise HTTPException(404)
        return run


def as_key(text: str) -> int:
    """The number that a run or a film is known by; 0, which none is, for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


@contextmanager
def watching(root: Path, trust: bool) -> Iterator[Starlette]:
    """The application, with what works beside it: ended, and its films removed, when the block is left."""
    board, stop = Board(root), Event()
    making, commanding = Workshop(trust), Workshop(trust)  # a command does not wait for a film
    beside = Thread(target=look_closer, args=(board, stop), daemon=True)
    with TemporaryDirectory(prefix="aggrevated-board-") as folder:
        beside.start()
        try:
            yield application(Pages(board, Films(Path(folder), making), commanding).routes(), *FILES)
        finally:
            stop.set()
            making.close()
            commanding.close()
            beside.join(5)


def look_closer(board: Board, stop: Event) -> None:
    """Read what is there before the first tab asks; then intervals and seals, little by little, if somebody looks."""
    board.look()
    while board.behind and not stop.is_set():
        board.look()
    while not stop.is_set():
        now = time.monotonic()
        busy = now - board.asked < LOOKED_AT and now - board.opened > FIRST and board.work(SLICE)
        stop.wait(REST if busy else IDLE)
