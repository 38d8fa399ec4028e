"""Server of pages for a browser: print the address, then serve until Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeAlias

from tyro.conf import arg

from aggrevated.core.errors import UsageError
from aggrevated.core.settings import between

if TYPE_CHECKING:
    from starlette.types import ASGIApp

PORT = between(0, 65_535)
Port: TypeAlias = Annotated[
    int, arg(help="Port on the loopback address; with a port, the address is the same every time. 0: any free port.")
]
NoBrowser: TypeAlias = Annotated[bool, arg(help="Print the address without opening the browser.")]


def serve_application(make: Callable[[], ASGIApp], port: int, browser: bool, as_json: bool) -> None:
    """Bind the port, make the application, print its address on standard output, and serve it."""
    from aggrevated.cli.console import print_note  # imported here because it imports NumPy, which --help avoids

    PORT.check("port", port)
    try:
        from aggrevated_reader.web.server import bind, serve
    except ImportError as error:
        raise UsageError(f"pages need {error.name}, which is not installed: pip install './packages/reader'") from error
    address = bind(port)
    with address.listener:

        def print_address() -> None:
            print(json.dumps({"address": str(address)}) if as_json else address, flush=True)
            print_note("the page is for this machine only; Ctrl-C ends it")

        serve(make(), address, browser, print_address)
