"""Server on the loopback address, at a free port and behind a token, and the browser that it opens."""

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
AT_ONCE = 500  # concurrent connections
PATIENCE = 5.0  # seconds that a connection may be idle
LONGEST_HEAD = 16 << 10  # bytes of a request before its body
TO_END = 2  # seconds for running requests when the server ends


@dataclass(frozen=True)
class Address:
    """Address of a server, whose socket is bound already so that no other process can take the port."""

    listener: socket.socket
    token: str

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def __str__(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/{self.token}/"


def bind(port: int = 0) -> Address:
    """Bind a port and return its address with a token.

    Args:
        port: The port, whose token and so whose address stay the same; 0 for any free port with a new token.

    Raises:
        StorageError: The port cannot be used, or its token cannot be stored privately.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if port and os.name == "posix":
            listener.setsockopt(
                socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
            )  # a connection that closed just now does not block the port
        listener.bind((LOOPBACK, port))
        token = load_token(port) if port else token_urlsafe(24)
        listener.listen()  # before the address is printed: early requests wait
    except OSError as error:
        listener.close()
        if isinstance(error, StorageError):
            raise
        sentence = f"port {port} of {LOOPBACK} cannot be used: {error.strerror}"
        raise StorageError(f"{sentence}; choose another --port, or leave it out for a free one") from error
    return Address(listener, token)


def load_token(port: int) -> str:
    """Load the token of a port from a file that only its owner can read; create it if there is none."""
    path = get_token_folder() / f"port-{port}.token"
    with reraise_storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for _ in range(2):
            with suppress(FileExistsError):
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(file, "w") as stream:
                    stream.write(token_urlsafe(24))
            token = path.read_text(errors="replace")
            if TOKEN.fullmatch(token) and path.stat().st_mode & 0o077 == 0:
                return token
            path.unlink()  # damaged, or readable by others
    sentence = f"{path.parent} is not private: other users can read the files in it"
    raise StorageError(f"{sentence}; leave --port out, or set $AGGREVATED_CACHE to a private folder")


def get_token_folder() -> Path:
    """Return the folder of tokens: the user's runtime folder, which ends with the login, or the cache."""
    if chosen := os.environ.get("AGGREVATED_CACHE"):
        return Path(chosen) / "server"
    cache = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "aggrevated" / "server"


def serve(app: ASGIApp, address: Address, browser: bool, ready: Callable[[], None]) -> None:
    """Serve until Ctrl-C.

    Args:
        app: The application, which is guarded by the address's token.
        address: The bound address.
        browser: Whether to open the browser when the server answers.
        ready: A function to call when the server answers.
    """
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
        if browser:  # in a thread: some browsers block until they are closed
            Thread(target=open_browser, args=(address,), daemon=True).start()

    NotifyingServer(config, report_ready).run(sockets=[address.listener])


class IdleTimeoutProtocol(H11Protocol):
    """Protocol that closes connections which are idle or send an incomplete head of a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self.close_if_idle, self.cycle)

    def on_response_complete(self) -> None:
        self.loop.call_later(PATIENCE, self.close_if_idle, self.cycle)  # before a pipelined request begins
        super().on_response_complete()

    def close_if_idle(self, cycle: object) -> None:
        """Close the connection, unless a request has arrived since `cycle`."""
        if self.cycle is cycle and not self.transport.is_closing():
            self.transport.close()


class NotifyingServer(uvicorn.Server):
    """Server that calls a function when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()


def open_browser(address: Address) -> None:
    """Open the address in the user's browser, if there is one."""
    with suppress(webbrowser.Error):
        webbrowser.open(str(address))
