"""Guard of the server: it answers only requests from this machine's browser that know the server's token.

The token is the first part of every path. So the server needs no cookie, which other servers on this machine
could receive, and a page of another origin cannot make a browser send the token.
"""

from __future__ import annotations

import json
from secrets import compare_digest

from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "HEAD", "POST")
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
STRANGER = "access to this address is denied; use the one that the command printed"


class Guard:
    """Application behind a token; refused requests learn nothing about it."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app = app
        self.prefix = f"/{token}/"
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        if self._is_stranger(scope):
            await refuse(send_with_headers)
            return
        path = scope["path"].removeprefix(self.prefix.removesuffix("/"))
        await self.app({**scope, "path": path, "raw_path": path.encode()}, receive, send_with_headers)

    def _is_stranger(self, scope: Scope) -> bool:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        (host, *others) = headers.get("host", [""])
        (origin, *more) = headers.get("origin", [""])
        start = scope["path"][: len(self.prefix)]
        return (
            scope["method"] not in METHODS
            or bool(others or more)
            or host not in self.hosts
            or origin not in ("", f"http://{host}")
            or is_cross_site(headers)
            or not compare_digest(start.encode(), self.prefix.encode())
        )


def is_cross_site(headers: dict[str, list[str]]) -> bool:
    """Return whether a page of another origin sent the request; links to this server are allowed."""
    site, mode = (headers.get(f"sec-fetch-{name}", [""])[0] for name in ("site", "mode"))
    return site not in ("", "none", "same-origin") and mode != "navigate"


async def refuse(send: Send) -> None:
    """Answer with status 403 and one message for all refusals."""
    body = json.dumps({"error": STRANGER}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
