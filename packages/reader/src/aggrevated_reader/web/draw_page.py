"""Endpoints of the page of `aggrevated draw`, and the validation of its requests."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aggrevated.core.errors import DataError
from aggrevated.storage import JsonDict, truncate_message
from aggrevated_reader.web.drawings import Drawings
from aggrevated_reader.web.ink import parse_drawing
from aggrevated_reader.web.requests import WorkQueue, make_application, make_json_response, read_body, read_json_body

MAX_DRAWING = 4 << 20  # bytes; 50,000 points take less
MAX_FILE = 32 << 20  # bytes of a picture; a phone's camera makes a third of that
SIDES = 100.0, 20_000.0  # minimum and maximum side of the page in a browser, in pixels
FILES = (
    "draw.html", "draw.css", "common.css", "common.js", "player.js", "draw.js", "draw-paper.js", "draw-store.js",
    "draw-steps.js", "draw-tree.js",
)  # fmt: skip


def make_draw_app(drawings: Drawings) -> Starlette:
    """Return the application with the page and its endpoints."""
    return make_application(DrawEndpoints(drawings).list_routes(), *FILES)


class DrawEndpoints:
    """Endpoints of the page; drawings are read one after the other."""

    def __init__(self, drawings: Drawings) -> None:
        self.drawings = drawings
        self.turns = WorkQueue()

    def list_routes(self) -> list[Route]:
        """Return the routes of all endpoints."""
        posts = (self.read, self.steps, self.inkml, self.keep, self.look)
        routes = [Route("/state", self.state), Route("/example", self.example)]
        return [*routes, *(Route(f"/{endpoint.__name__}", endpoint, methods=["POST"]) for endpoint in posts)]

    async def state(self, request: Request) -> Response:
        """Return what the page needs before the first drawing."""
        return make_json_response(self.drawings.describe_state())

    async def example(self, request: Request) -> Response:
        """Return a generated page."""
        seed = request.query_params.get("seed", "0")
        number = int(seed) if seed.isascii() and seed.isdigit() and len(seed) < 10 else 0
        return make_json_response(await self.turns(self.drawings.make_example, number, *parse_sides(request)))

    async def read(self, request: Request) -> Response:
        """Return the symbols, labels and tree of a drawing."""
        body = await read_json_body(request, MAX_DRAWING)
        return make_json_response(await self.turns(lambda: self.drawings.read(parse_drawing(body)).to_dict()))

    async def steps(self, request: Request) -> Response:
        """Return the parse of a drawing step by step."""
        body = await read_json_body(request, MAX_DRAWING)
        return make_json_response(
            await self.turns(lambda: self.drawings.list_steps(parse_drawing(body), is_confirmed(body)))
        )

    async def inkml(self, request: Request) -> Response:
        """Return the page as an InkML file."""
        body = await read_json_body(request, MAX_DRAWING)
        data = await self.turns(lambda: self.drawings.export_inkml(parse_drawing(body), is_confirmed(body)))
        return Response(data, media_type="application/inkml+xml")

    async def keep(self, request: Request) -> Response:
        """Save the corrected page."""
        body = await read_json_body(request, MAX_DRAWING)
        return make_json_response(await self.turns(lambda: self.drawings.keep(parse_drawing(body), body.get("seen"))))

    async def look(self, request: Request) -> Response:
        """Return the ink in a picture or an InkML file."""
        name = Path(unquote(request.headers.get("x-name", "")).replace("\\", "/")).name
        sides = parse_sides(request)
        data = await read_body(request, MAX_FILE)
        return make_json_response(
            await self.turns(self.drawings.import_file, data, truncate_message(name or "the file", 60), *sides)
        )


def is_confirmed(body: JsonDict) -> bool:
    """Return whether the user has confirmed the tree."""
    return body.get("confirmed") is True


def parse_sides(request: Request) -> tuple[float, float]:
    """Return width and height of the page in the browser, in pixels."""
    return parse_side(request.query_params.get("width")), parse_side(request.query_params.get("height"))


def parse_side(text: str | None) -> float:
    """Return one side of the page in the browser, in pixels."""
    try:
        side = float(text or "")
    except ValueError:
        side = float("nan")
    if not SIDES[0] <= side <= SIDES[1]:
        raise DataError(f"a side of the page must be from {SIDES[0]:.0f} to {SIDES[1]:,.0f} pixels; reload the page")
    return side
