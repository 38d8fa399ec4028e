"""`aggrevated draw`: a page to write algebra on, in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aggrevated.cli.options import AnyPath, Folder
from aggrevated_reader.cli.serve import NoBrowser, Port

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@dataclass(frozen=True)
class Draw:
    """Open a page to write algebra on: symbols, labels and the tree appear as you write, by mouse, finger or pen.

    The parse can be played step by step, with what every transition would cost once you have confirmed the tree. Labels
    and heads can be corrected, and the page be kept: 'aggrevated train reader
    --corrected-pages FOLDER' learns from such pages.
    It is served on the loopback address only, for whoever has the address that is printed.

    Try:
      aggrevated draw
      aggrevated draw --policy runs/reader-aggrevated-regular --corrected-pages corrected --port 8000
    """

    command = "draw"
    policy: Folder = None
    """Who reads: the folder of a run of 'train reader' or 'train algebra', or a reader's file; default: the one in the
    package."""
    corrected_pages: AnyPath = Path("pages")
    """The folder that corrected pages are kept in, as InkML; made when the first one is."""
    port: Port = 0
    no_browser: NoBrowser = False
    json: bool = False
    """Print the address as a JSON object."""

    def run(self) -> None:
        """Serve until somebody stops it."""
        from aggrevated_reader.cli.serve import serve_application

        serve_application(self._make_app, self.port, not self.no_browser, self.json)

    def _make_app(self) -> ASGIApp:
        from aggrevated_reader.pages_report import load_reader
        from aggrevated_reader.web.draw_page import make_draw_app
        from aggrevated_reader.web.drawings import Drawings

        drawings = Drawings(load_reader(self.policy), self.corrected_pages)
        drawings.warm_up()
        return make_draw_app(drawings)
