"""Handling of requests: bodies up to a limit, a queue of work, static files, and errors as messages."""

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

PATIENCE = 30.0  # seconds that a body may take
WAITING = 8  # requests that may wait for the running one
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}


async def read_body(request: Request, max_size: int) -> bytes:
    """Return the body of a request; refuse one that has more than `max_size` bytes or is too slow."""
    data = bytearray()
    too_large = HTTPException(413, f"the request has more than {max_size:,} bytes; send less")
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or int(length) > max_size:
        raise too_large
    try:
        async with asyncio.timeout(PATIENCE):
            async for chunk in request.stream():
                data += chunk
                if len(data) > max_size:
                    raise too_large
    except TimeoutError as error:
        raise HTTPException(408, "the request was not complete in time; send it again") from error
    return bytes(data)


async def read_json_body(request: Request, most: int) -> dict[str, Any]:
    """Return the JSON object in the body, limited in bytes, depth and length."""
    data = await read_body(request, most)
    try:
        value = parse_json(decode_utf8(data))
    except DataError:
        raise
    except ValueError as error:
        raise DataError("the request is not JSON; reload the page") from error
    if not isinstance(value, dict):
        raise DataError("the request is not a JSON object; reload the page")
    return value


class WorkQueue:
    """Queue of work in another thread, one task at a time; further requests are refused when it is full."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0

    async def __call__(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return the result of the work."""
        if self.waiting >= WAITING:
            raise HTTPException(503, "the server is busy; try again")
        self.waiting += 1
        try:
            async with self.lock:
                return await anyio.to_thread.run_sync(partial(work, *arguments))
        finally:
            self.waiting -= 1


def make_application(routes: Sequence[Route], *files: str) -> Starlette:
    """Return an application with these routes and files of `static/`; the first file is the page at /."""
    file_routes = [
        Route("/" if index == 0 else f"/{name}", make_file_endpoint(name)) for index, name in enumerate(files)
    ]
    handlers: dict[Any, Any] = {
        AggrevatedError: handle_user_error,
        HTTPException: handle_http_error,
        ClientDisconnect: handle_disconnect,
        Exception: handle_internal_error,
    }
    return Starlette(routes=[*file_routes, *routes], exception_handlers=handlers)


def make_file_endpoint(name: str) -> Endpoint:
    """Return an endpoint for one file of `static/`; a request cannot choose another file."""
    path = files("aggrevated_reader.web").joinpath("static", name)
    kind = KINDS[name.rpartition(".")[2]]

    async def send_file(request: Request) -> Response:
        return Response(path.read_bytes(), media_type=kind)

    return send_file


def make_json_response(content: object, status: int = 200) -> Response:
    """Return a response of strict JSON, without NaN and infinity."""
    return Response(
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode(), status, media_type="application/json"
    )


async def handle_user_error(request: Request, error: Exception) -> Response:
    """Return the message that a command would print for an error of the user."""
    return JSONResponse({"error": str(error)}, 422)


async def handle_http_error(request: Request, error: Exception) -> Response:
    """Return the message of a request that cannot be served."""
    assert isinstance(error, HTTPException)
    messages = {404: "this address does not exist", 405: "this method is not allowed here"}
    return JSONResponse({"error": messages.get(error.status_code, error.detail)}, error.status_code)


async def handle_disconnect(request: Request, error: Exception) -> Response:
    """Return an empty response, because the client has left."""
    return Response(status_code=400)


async def handle_internal_error(request: Request, error: Exception) -> Response:
    """Print the error on the terminal, and return only that there was one."""
    message = truncate_message(f"{request.method} {request.url.path} failed: {type(error).__name__}: {error}", 300)
    print(message, file=sys.stderr, flush=True)
    return JSONResponse({"error": "internal error; see the terminal for details"}, 500)
