"""How requests are answered: bodies up to a limit, work in turn, files of the package, mistakes in a sentence."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Any, TypeVar

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aggrevated.core.errors import AggrevatedError, DataError
from aggrevated.storage import decode_utf8, parse_json, truncate_message

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

PATIENCE = 30.0  # seconds for a body to come
WAITING = 8  # requests that may wait for one that is worked on
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}


async def read_body(request: Request, most: int) -> bytes:
    """The body, if it has no more than so many bytes and comes in time."""
    data = bytearray()
    too_large = HTTPException(413, f"that is more than {most:,} bytes; send less")
    said = request.headers.get("content-length", "0")
    if not said.isascii() or not said.isdigit() or int(said) > most:
        raise too_large
    try:
        async with asyncio.timeout(PATIENCE):
            async for piece in request.stream():
                data += piece
                if len(data) > most:
                    raise too_large
    except TimeoutError as error:
        raise HTTPException(408, "the request did not come to its end; send it again") from error
    return bytes(data)


async def read_json_body(request: Request, most: int) -> dict[str, Any]:
    """The JSON object in the body, of no more than so many bytes, and no deeper or longer than any that is needed."""
    data = await read_body(request, most)
    try:
        facts = parse_json(decode_utf8(data))
    except DataError:
        raise
    except ValueError as error:
        raise DataError("the request is no JSON; reload the page") from error
    if not isinstance(facts, dict):
        raise DataError("the request is no JSON object; reload the page")
    return facts


class WorkQueue:
    """Work that is done one after the other beside the server; more than a few that wait are sent away."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0

    async def __call__(self, work: Callable[..., T], *arguments: Any) -> T:
        """What the work gives."""
        if self.waiting >= WAITING:
            raise HTTPException(503, "there is too much to do at the moment; try again")
        self.waiting += 1
        try:
            async with self.lock:
                return await anyio.to_thread.run_sync(partial(work, *arguments))
        finally:
            self.waiting -= 1


def make_application(routes: Sequence[Route], *files: str) -> Starlette:
    """Routes and files of `static/`, of which the first is the page itself."""
    shown = [Route("/" if place == 0 else f"/{name}", make_file_endpoint(name)) for place, name in enumerate(files)]
    handlers: dict[Any, Any] = {
        AggrevatedError: handle_user_error,
        HTTPException: handle_http_error,
        ClientDisconnect: handle_disconnect,
        Exception: handle_internal_error,
    }
    return Starlette(routes=[*shown, *routes], exception_handlers=handlers)


def make_file_endpoint(name: str) -> Endpoint:
    """Gives a file of `static/`. Names are fixed here: no request says which file is read."""
    place = files("aggrevated_reader.web").joinpath("static", name)
    kind = KINDS[name.rpartition(".")[2]]

    async def send_file(request: Request) -> Response:
        return Response(place.read_bytes(), media_type=kind)

    return send_file


def make_json_response(facts: object, status: int = 200) -> Response:
    """As JSON, which has no number that is none."""
    return Response(
        json.dumps(facts, ensure_ascii=False, allow_nan=False).encode(), status, media_type="application/json"
    )


async def handle_user_error(request: Request, error: Exception) -> Response:
    """A mistake of the user's, in the sentence that a command would print."""
    return JSONResponse({"error": str(error)}, 422)


async def handle_http_error(request: Request, error: Exception) -> Response:
    """What cannot be asked for."""
    assert isinstance(error, HTTPException)
    words = {404: "there is nothing of that name here", 405: "that cannot be done here"}
    return JSONResponse({"error": words.get(error.status_code, error.detail)}, error.status_code)


async def handle_disconnect(request: Request, error: Exception) -> Response:
    """Nobody is there any more to be answered."""
    return Response(status_code=400)


async def handle_internal_error(request: Request, error: Exception) -> Response:
    """A mistake of ours: the terminal is told what it was, the browser only that it was."""
    told = truncate_message(f"{request.method} {request.url.path} failed: {type(error).__name__}: {error}", 300)
    print(told, file=sys.stderr, flush=True)
    return JSONResponse({"error": "that went wrong; the terminal says how"}, 500)
