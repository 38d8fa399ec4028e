"""Command `aggrevated draw`: a page in the browser to write algebra on."""

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
    """Open a page in the browser to write algebra on, by mouse, finger or pen.

    Symbols, labels and the tree appear as you write. You can correct labels and heads, and save the page for
    'aggrevated train reader --corrected-pages FOLDER'. You can play the parse step by step; after you confirm
    the tree, it shows the cost of every transition. The server listens on the loopback address only, behind
    the printed address.

    Try:
      aggrevated draw
      aggrevated draw --policy runs/reader-aggrevated-regular --corrected-pages corrected --port 8000
    """

    command = "draw"
    policy: Folder = None
    """The reader: the folder of a run of 'train reader' or 'train algebra', or a reader's file. Default: the builtin
    reader."""
    corrected_pages: AnyPath = Path("pages")
    """The folder to save corrected pages in, as InkML; created with the first page."""
    port: Port = 0
    no_browser: NoBrowser = False
    json: bool = False
    """Print the address as a JSON object."""

    def run(self) -> None:
        """Serve until Ctrl-C."""
        from aggrevated_reader.cli.serve import serve_application

        serve_application(self._make_app, self.port, not self.no_browser, self.json)

    def _make_app(self) -> ASGIApp:
        from aggrevated_reader.pages_report import load_reader
        from aggrevated_reader.web.draw_page import make_draw_app
        from aggrevated_reader.web.drawings import Drawings

        drawings = Drawings(load_reader(self.policy), self.corrected_pages)
        drawings.warm_up()
        return make_draw_app(drawings)
