"""`aggrevated board`: watch runs as they go, in a browser."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from aggrevated.cli.options import AnyPath, Trust
from aggrevated.cli.showing import PORT, NoBrowser, Port

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@dataclass(frozen=True)
class Board:
    """Show all runs below a folder in a browser, live: curves, experts, settings, warnings, films. It only reads.

    Try:
      aggrevated board runs
      aggrevated board runs --once --json
    """

    command = "board"
    runs: Positional[AnyPath] = Path("runs")
    """A folder with runs in it, at whatever depth; or one run."""
    once: bool = False
    """Print the runs as they are now, and serve nothing."""
    trust: Trust = False
    port: Port = 0
    no_browser: NoBrowser = False
    json: bool = False
    """Print the page's address as JSON; with --once, all rows with their curves and settings."""

    def run(self) -> None:
        """Serve, or print."""
        PORT.require("port", self.port)
        if self.once:
            self._print()
        else:
            self._serve()

    def _print(self) -> None:
        from aggrevated.cli.output import print_table
        from aggrevated.server.board_printing import table
        from aggrevated.server.board_runs import Board as Runs

        runs = Runs(self.runs)
        print_table(table(runs.finish(), runs.found.left_out), self.json)

    def _serve(self) -> None:
        from contextlib import ExitStack

        from aggrevated.cli.showing import show

        with ExitStack() as beside:

            def app() -> "ASGIApp":
                from aggrevated.server.board import watching

                return beside.enter_context(watching(self.runs, self.trust))

            show(app, self.port, not self.no_browser, self.json)
