"""The page of `aggrevated tree`: the server plays the game, the page shows it."""

from __future__ import annotations

from dataclasses import asdict

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from aggrevated.server.answers import Turns, answer, application, facts_of
from aggrevated.theory.game import Game, Settings

MOST_BODY = 1_000  # bytes
FILES = (
    "tree.html", "common.css", "common.js", "player.js", "scales.js", "tree.css", "tree.js", "tree-curves.js",
    "tree-settings.js", "tree-tree.js",
)  # fmt: skip


def tree_app(first: Settings) -> Starlette:
    """The page, which begins with these settings, and the games that it asks for, played one after the other."""
    turns = Turns()

    async def state(request: Request) -> Response:
        return answer(asdict(first))

    async def game(request: Request) -> Response:
        facts = await facts_of(request, MOST_BODY)
        return answer(await turns(lambda: Game(Settings.of(facts)).facts()))

    return application([Route("/state", state), Route("/game", game, methods=["POST"])], *FILES)
