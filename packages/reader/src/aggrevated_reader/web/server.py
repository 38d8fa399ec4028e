"""A server on the loopback address, at a port that is free, behind a token; and the browser that it opens."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe
from threading import Thread

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from aggrevated.core.errors import StorageError
from aggrevated.storage import reraise_storage_errors
from aggrevated_reader.web.request_guard import Guard

LOOPBACK = "127.0.0.1"
TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")
AT_ONCE = 500  # connections
PATIENCE = 5.0  # seconds that a connection has to say what it wants
LONGEST_HEAD = 16 << 10  # bytes of a request before its body
TO_END = 2  # seconds that requests have when the server ends


@dataclass(frozen=True)
class Address:
    """Where a server is reached; the socket is bound to it already, so that nobody else can take it."""

    listener: socket.socket
    token: str

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def __str__(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/{self.token}/"


def bind(port: int = 0) -> Address:
    """A free port, and a new token. A port that is asked for keeps its token, so that its address can be kept, too."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if port and os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what closed a moment ago is no hindrance
        listener.bind((LOOPBACK, port))
        token = load_token(port) if port else token_urlsafe(24)
        listener.listen()  # before anybody is told of it: who comes early waits
    except OSError as error:
        listener.close()
        if isinstance(error, StorageError):
            raise
        sentence = f"port {port} of {LOOPBACK} cannot be used: {error.strerror}"
        raise StorageError(
            f"{sentence}; choose another --port, or leave it out and one that is free is taken"
        ) from error
    return Address(listener, token)


def load_token(port: int) -> str:
    """The token of a port, from a file that only its owner can read; a new one where there is none such."""
    path = get_token_folder() / f"port-{port}.token"
    with reraise_storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for _ in range(2):
            with suppress(FileExistsError):
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(file, "w") as new:
                    new.write(token_urlsafe(24))
            known = path.read_text(errors="replace")
            if TOKEN.fullmatch(known) and path.stat().st_mode & 0o077 == 0:
                return known
            path.unlink()  # damaged, or open to others: no secret
    sentence = f"{path.parent} keeps no secrets: what is written there can be read by others"
    raise StorageError(f"{sentence}; leave --port out, or set $AGGREVATED_CACHE to a folder of your own")


def get_token_folder() -> Path:
    """Where tokens are kept: in a folder of the user's own that does not outlive the login, else in the cache."""
    if chosen := os.environ.get("AGGREVATED_CACHE"):
        return Path(chosen) / "server"
    own = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(own).expanduser() / "aggrevated" / "server"


def serve(app: ASGIApp, address: Address, browser: bool, ready: Callable[[], None]) -> None:
    """Answer until somebody stops it; `ready` is called once it does, and then the browser opened, if wanted."""
    guarded = Guard(app, address.port, address.token)
    config = uvicorn.Config(
        guarded,
        http=IdleTimeoutProtocol,
        ws="none",
        lifespan="off",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=AT_ONCE,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_graceful_shutdown=TO_END,
    )

    def report_ready() -> None:
        ready()
        if browser:  # some browsers are waited for until they are closed
            Thread(target=open_browser, args=(address,), daemon=True).start()

    NotifyingServer(config, report_ready).run(sockets=[address.listener])


class IdleTimeoutProtocol(H11Protocol):
    """Connections that say nothing, or do not come to the end of a request's head, are closed: others want to come."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self.close_if_idle, self.cycle)

    def on_response_complete(self) -> None:
        self.loop.call_later(PATIENCE, self.close_if_idle, self.cycle)  # before what may wait behind it begins
        super().on_response_complete()

    def close_if_idle(self, then: object) -> None:
        """Close it, unless a request has come since `then`."""
        if self.cycle is then and not self.transport.is_closing():
            self.transport.close()


class NotifyingServer(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()


def open_browser(address: Address) -> None:
    """The user's own, if there is one; whoever has none has the address."""
    with suppress(webbrowser.Error):
        webbrowser.open(str(address))
