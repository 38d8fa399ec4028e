"""Films are made one after the other, a few at most, beside everything else; and end with the server."""

import asyncio
import json
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import board_folders as folders
import pytest
from starlette.applications import Starlette
from starlette.types import Message

from aggrevated.errors import AggrevatedError
from aggrevated.server import films
from aggrevated.server.board import watching
from aggrevated.server.films import UNDER_WAY, Workshop

SLEEPER = """
import os, pathlib, sys, time
pathlib.Path(os.environ["BEGUN"], str(os.getpid())).touch()
for line in sys.stdin:
    if '"film"' in line:
        time.sleep(600)
    elif '"die"' in line:
        sys.exit()
    print('{"command": "a command"}', flush=True)
"""


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Processes that make no film, for ever, in place of ours; a file for each that was begun, in this folder."""
    place = tmp_path / "begun"
    place.mkdir()
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("BEGUN", str(place))
    monkeypatch.setattr(films, "WORKER", "sleeper")
    yield place
    assert not [one.name for one in place.iterdir() if Path("/proc", one.name).exists()]


async def asked(app: Starlette, path: str, facts: Any = None) -> tuple[int, Any]:
    """(status, answer), without a server around the application."""
    said: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": json.dumps(facts).encode(), "more_body": False}

    async def send(message: Message) -> None:
        said.append(message)

    path, _, query = path.partition("?")
    head = {"type": "http", "method": "GET" if facts is None else "POST", "path": path, "headers": []}
    await app(head | {"query_string": query.encode()}, receive, send)
    return said[0]["status"], json.loads(b"".join(message.get("body", b"") for message in said[1:]))


def in_a_loop(work: Coroutine[Any, Any, Any]) -> Any:
    with ThreadPoolExecutor(1) as beside:  # in this thread Playwright may have a loop that runs
        return beside.submit(asyncio.run, work).result()


async def until(there: Path, count: int) -> None:
    async with asyncio.timeout(20):
        while len(list(there.iterdir())) < count:
            await asyncio.sleep(0.02)


def test_nothing_waits_for_films_and_they_end_with_the_server(tmp_path: Path, begun: Path) -> None:
    folders.begin(tmp_path / "runs" / "run")

    async def ask(app: Starlette) -> float:
        async with asyncio.timeout(20):
            (run,) = (await asked(app, "/runs"))[1]["runs"]
            for seed in range(UNDER_WAY):
                status, film = await asked(app, "/film", {"run": run["key"], "seed": seed})
                assert (status, film["state"]) == (200, "making")
            for seed in range(UNDER_WAY, 60):  # more than there are threads
                status, told = await asked(app, "/film", {"run": run["key"], "seed": seed})
                assert status == 503 and told["error"] == "4 films are being made already; wait for one of them"
            assert (await asked(app, "/film", {"run": run["key"], "seed": 0}))[1]["film"] == 1  # on its way already
            await until(begun, 1)
            assert (await asked(app, "/runs"))[0] == 200
            assert (await asked(app, f"/command?run={run['key']}"))[1]["command"] == "a command"
            return time.monotonic()

    with watching(tmp_path / "runs", trust=False) as app:
        ended = in_a_loop(ask(app))
    assert time.monotonic() - ended < 2 and len(list(begun.iterdir())) == 2  # of films, of commands


def test_whoever_waits_when_it_is_closed_begins_no_other(begun: Path) -> None:
    workshop = Workshop(trust=False)

    async def ask() -> list[Any]:
        waiting = [asyncio.create_task(workshop.ask(what="film")) for _ in range(3)]
        await until(begun, 1)
        began = time.monotonic()
        await asyncio.to_thread(workshop.close)
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert time.monotonic() - began < 2
        return found

    assert all(isinstance(one, AggrevatedError) for one in in_a_loop(ask()))
    assert len(list(begun.iterdir())) == 1


def test_a_process_that_died_is_begun_again_and_leaves_no_pipe(begun: Path) -> None:
    workshop = Workshop(trust=False)
    with pytest.raises(AggrevatedError, match="try again"):
        in_a_loop(workshop.ask(what="die"))
    assert in_a_loop(workshop.ask(what="command")) == {"command": "a command"}
    assert workshop._process is not None
    workshop._process.kill()  # between two requests
    workshop._process.wait()
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert in_a_loop(workshop.ask(what="command")) == {"command": "a command"}
    assert len(list(Path("/proc/self/fd").iterdir())) == before and len(list(begun.iterdir())) == 3
    workshop.close()
